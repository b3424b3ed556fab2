"""`metrics.csv` and the events of metrics: each step once, across columns that come late, kills and attempts."""

import math
import os
from pathlib import Path
from typing import Any

import pytest

from workers.pipe import PipeReporter
from workers.training.metrics import MetricsTable, read
from workers.training.reporting import BURST, RankReporter, strict


class Told:
    """Takes the place of a reporter; `metric` always has room."""

    def __init__(self) -> None:
        self.events: list[tuple[str, float, int]] = []
        self.warnings: list[tuple[str, int]] = []

    def metric(self, name: str, value: float, step: int, epoch: int | None) -> bool:
        self.events.append((name, value, step))
        return True

    def warning(self, message: str, **data: Any) -> None:
        self.warnings.append((data["metric"], data["step"]))


def table(folder: Path, told: Any = None, seen: dict[str, int] | None = None) -> MetricsTable:
    return MetricsTable(folder / "metrics.csv", told or Told(), seen or {})


def test_values_of_one_step_are_one_row(tmp_path: Path) -> None:
    metrics = table(tmp_path)
    metrics.note(0, 0, {"a": 1.0})
    metrics.note(1, 0, {"a": 2.0})
    metrics.note(1, 0, {"b": 3.0})
    metrics.note(2, 1, {"a": 4.0})
    metrics.close()
    assert (tmp_path / "metrics.csv").read_text() == "step,epoch,a,b\n0,0,1.0,\n1,0,2.0,3.0\n2,1,4.0,\n"
    assert metrics.last == {"a": 4.0, "b": 3.0}


def test_a_row_may_grow_after_it_was_written(tmp_path: Path) -> None:
    metrics = table(tmp_path)
    for step in range(3):
        metrics.note(step, 0, {"a": 1 / 3})
        metrics.flush()
        metrics.note(step, 0, {"a": 0.5})
        metrics.flush()
        assert [row["a"] for row in read(tmp_path / "metrics.csv")] == [0.5] * (step + 1)
    metrics.note(2, 0, {"late": 1.0})
    metrics.close()
    assert [row.get("late") for row in read(tmp_path / "metrics.csv")] == [None, None, 1.0]


def test_what_is_not_finite_is_kept_in_the_table(tmp_path: Path) -> None:
    metrics = table(tmp_path)
    metrics.note(0, 0, {"a": math.nan, "b": math.inf, "c": -math.inf})
    metrics.close()
    row = next(read(tmp_path / "metrics.csv"))
    assert math.isnan(row["a"])
    assert (row["b"], row["c"]) == (math.inf, -math.inf)


def test_a_loss_that_is_not_finite_is_told_once(tmp_path: Path) -> None:
    told = Told()
    metrics = table(tmp_path, told)
    for step in range(4):
        metrics.note(
            step, 0, {"a_Loss": math.nan if step else 1.0, "loss": -math.inf if step > 1 else 0.0, "a": math.nan}
        )
    metrics.close()
    assert told.warnings == [("a_Loss", 1), ("loss", 2)]


def test_an_attempt_takes_over_the_rows_up_to_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    first, told = table(tmp_path / "1"), Told()
    for step in range(10):
        first.note(step, step // 4, {"a": float(step)})
    first.close()
    second = table(tmp_path / "2", told, {"a": 4})
    second.adopt(tmp_path / "1" / "metrics.csv", before=7)
    for step in range(7, 12):
        second.note(step, step // 4, {"a": float(step), "b": 0.0})
    second.close()
    assert [row["step"] for row in read(tmp_path / "2" / "metrics.csv")] == list(range(12))
    assert [step for name, _, step in told.events if name == "a"] == list(range(5, 12))


def test_steps_that_are_made_again_are_not_told_again(tmp_path: Path) -> None:
    told = Told()
    metrics = table(tmp_path, told, {"a": 8})
    for step in range(6, 11):
        metrics.note(step, 0, {"a": 0.0, "b": 0.0})
        metrics.note(step, 0, {"a": 0.0})
    assert [step for name, _, step in told.events if name == "a"] == [9, 10]
    assert [step for name, _, step in told.events if name == "b"] == [6, 7, 8, 9, 10]


def test_a_row_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,epoch,a\n0,0,1.0\n1,0,2.")
    assert list(read(path)) == [{"step": 0, "epoch": 0, "a": 1.0}]
    path.write_text("")
    assert list(read(path)) == []


def test_names_with_anything_in_them(tmp_path: Path) -> None:
    name = 'val, "loss"/ü'
    metrics = table(tmp_path)
    metrics.note(0, None, {name: 1.0})
    metrics.close()
    assert list(read(tmp_path / "metrics.csv")) == [{"step": 0, "epoch": None, name: 1.0}]


@pytest.fixture
def pipe() -> Any:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_a_flood_of_metrics_is_thinned_and_blocks_nobody(pipe: Any) -> None:
    """The worker reads nothing here."""
    reporter = RankReporter(PipeReporter(pipe[1]), 0)
    taken = sum(reporter.metric("a", 0.0, step, 0) for step in range(50_000))
    assert BURST <= taken < 10_000


def test_messages_are_strict_json(pipe: Any) -> None:
    reporter = RankReporter(PipeReporter(pipe[1]), 1)
    reporter.metric("a", math.nan, 0, None)
    reporter.warning("odd", value=math.inf)
    reporter.close()
    lines = os.read(pipe[0], 1 << 16).decode().splitlines()
    assert lines == [
        '{"type": "metric", "data": {"name": "a", "value": null, "step": 0, "epoch": null}}',
        '{"type": "warning", "data": {"message": "odd", "rank": 1, "value": null}}',
    ]
    assert strict({"a": math.nan, "b": [1]}) == {"a": None, "b": [1]}
