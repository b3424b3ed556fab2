"""The metrics of a training: one row for each step in `metrics.csv`, whoever logged them, and an event for each value."""

import csv
import io
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workers.training.reporting import RankReporter

FLUSH_SECONDS = 1.0
FIXED = ("step", "epoch")


class MetricsTable:
    """Owned by rank 0. A value that the server has as an event, from this attempt or an earlier one, is not told again."""

    def __init__(self, path: Path, reporter: RankReporter, told: Mapping[str, int]) -> None:
        self.path, self.last = path, dict[str, float]()
        """`last`: the newest value of each metric."""
        self._reporter, self._told = reporter, dict(told)
        self._columns: list[str] = list(FIXED)
        self._warned: set[str] = set()
        self._row: dict[str, Any] = {}
        self._settled: list[str] = []
        self._descriptor, self._end, self._flushed = -1, 0, 0.0
        self._start_anew([])

    def note(self, step: int, epoch: int | None, values: Mapping[str, float]) -> None:
        """These values belong to `step`. To note a value twice does no harm."""
        # A metric of that name would take the place of the row's own.
        values = {name: value for name, value in values.items() if name not in FIXED}
        if not values:
            return
        if self._row and self._row["step"] != step:
            self._settled.append(self._line(self._row))
            self._row = {}
        if new := [name for name in values if name not in self._columns]:
            self._widen(new)
        self._row = self._row or {"step": step, "epoch": epoch}
        self._row.update(values)
        self._remember(step, epoch, values)
        for name, value in values.items():
            if "loss" in name.lower() and name not in self._warned and not math.isfinite(value):
                self._warn(name, value, step, epoch)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def adopt(self, earlier: Path, before: int) -> None:
        """Take over the rows of the attempt that wrote the checkpoint which this one goes on from, and which had seen `before` steps."""
        rows = [row for row in read(earlier) if row["step"] < before]
        for row in rows:
            values = {name: value for name, value in row.items() if name not in FIXED}
            self._remember(row["step"], row["epoch"], values)
        self._columns = list(dict.fromkeys([*self._columns, *(name for row in rows for name in row)]))
        self._start_anew(rows)

    def flush(self) -> None:
        """All that was noted is in the file."""
        self._settle()
        if self._row:
            # The newest row may still grow: it is written, and will be written over.
            os.pwrite(self._descriptor, self._line(self._row).encode(), self._end)
        self._flushed = time.monotonic()

    def close(self) -> None:
        self.flush()
        os.close(self._descriptor)

    def _remember(self, step: int, epoch: int | None, values: Mapping[str, float]) -> None:
        self.last.update(values)
        for name, value in values.items():
            if step > self._told.get(name, -1) and self._reporter.metric(name, value, step, epoch):
                self._told[name] = step

    def _warn(self, name: str, value: float, step: int, epoch: int | None) -> None:
        """Once of each metric: the loss that is trained by is judged elsewhere, and others may be NaN while it is a number."""
        self._warned.add(name)
        told = "NaN" if math.isnan(value) else "infinite"
        message = f"the metric {name} is {told} at step {step}; it is not told again"
        self._reporter.warning(message, step=step, epoch=epoch, value=told, metric=name)

    def _settle(self) -> None:
        data = "".join(self._settled).encode()
        os.ftruncate(self._descriptor, self._end)
        os.pwrite(self._descriptor, data, self._end)
        self._end += len(data)
        self._settled = []

    def _line(self, row: Mapping[str, Any]) -> str:
        return _text([[_cell(row.get(name)) for name in self._columns]])

    def _widen(self, names: list[str]) -> None:
        """A metric that was never logged before: its column comes last, and is empty in the rows above."""
        self._settle()
        self._columns += names
        self._start_anew(list(read(self.path)))

    def _start_anew(self, rows: list[dict[str, Any]]) -> None:
        # Written beside and moved: a reader, or the next attempt, never finds half of it.
        data = _text([self._columns, *([_cell(row.get(name)) for name in self._columns] for row in rows)]).encode()
        beside = self.path.with_name(f".{self.path.name}")
        beside.write_bytes(data)
        os.replace(beside, self.path)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._end = os.open(self.path, os.O_WRONLY), len(data)
        self._flushed = time.monotonic()


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a `metrics.csv`, without their empty cells. A row that a kill cut off is left out."""
    with open(path, encoding="utf-8", newline="") as file:
        whole, _, _ = file.read().rpartition("\n")
    lines = csv.reader(io.StringIO(whole))
    columns = next(lines, [])
    for cells in lines:
        if len(cells) != len(columns):
            continue
        row: dict[str, Any] = {"step": 0, "epoch": None}
        for name, cell in zip(columns, cells, strict=True):
            if cell:
                row[name] = int(cell) if name in FIXED else float(cell)
        yield row


def _text(rows: Iterable[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else repr(float(value)) if isinstance(value, float) else str(value)
