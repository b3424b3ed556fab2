"""CSV and TSV: sniffed, surveyed once from end to end, then read with what the survey settled."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from workers.datasets import header, numbers, timecolumn
from workers.datasets.cells import cleaned, matching
from workers.datasets.contract import Format, ReadRequest
from workers.datasets.dialect import sniff
from workers.datasets.options import Settings
from workers.datasets.records import Records
from workers.datasets.refusals import Unfit, quoted
from workers.datasets.source import Batch
from workers.datasets.survey import ColumnSurvey
from workers.datasets.timecolumn import Field


class DelimitedText:
    """A table of text, as a source of columns. Opening it reads it once and decides everything there is to decide."""

    def __init__(self, path: Path, request: ReadRequest, settings: Settings) -> None:
        self.settings, self.markers = settings, pa.array(sorted(settings.missing))
        self.dialect = sniff(path, settings, request.max_columns)
        self.format: Format = "tsv" if self.dialect.delimiter == "\t" else "csv"
        self.records = Records(path, self.dialect)
        self.place = self.records.lines.line
        first, surveys = self._survey()
        self.header_records = self._settle_header(first, surveys)
        names = self._names(first, surveys)
        self.rows = surveys[0].seen
        self._refuse_no_numbers(names, surveys)
        self.numeric = {i: survey.numbers for i, survey in enumerate(surveys) if survey.kind in ("number", "empty")}
        self.convention = numbers.choose(
            {names[i]: survey for i, survey in self.numeric.items()}, self.dialect.delimiter, self.place
        )
        self.fields = [
            Field(name, pa.float64() if i in self.numeric else pa.string(), survey.times)
            for i, (name, survey) in enumerate(zip(names, surveys, strict=True))
        ]

    def batches(self, time: int | None) -> Iterator[Batch]:
        """Numbers as float64; text and the time column as strings. Raises Unfit at text in a column of numbers."""
        self._refuse_strays(time)
        for first_record, batch in self.records.batches(self.header_records):
            for i, field in enumerate(self.fields):
                cells = batch.column(i)
                if i != time and pt.is_float64(field.type):
                    cells = self._floats(cleaned(cells, self.markers), field.name, first_record)
                yield i, first_record, cells

    def _new_surveys(self) -> list[ColumnSurvey]:
        conventions, readings = numbers.allowed(self.settings), timecolumn.readings(self.settings)
        return [ColumnSurvey(conventions, readings, self.markers) for _ in range(self.dialect.width)]

    def _survey(self) -> tuple[list[str], list[ColumnSurvey]]:
        """The first record, and a survey of each column below it."""
        surveys, first = self._new_surveys(), [""] * self.dialect.width
        for number, batch in self.records.batches():
            below = batch
            if number == 0:
                first, below = [column[0].as_py() for column in batch.columns], batch.slice(1)
            for survey, column in zip(surveys, below.columns, strict=True):
                self._refuse_blank(column, number + (number == 0))
                survey.add(column, number + (number == 0))
        return first, surveys

    def _settle_header(self, first: list[str], surveys: list[ColumnSurvey]) -> int:
        """1 where the first record is the header, 0 where it is a row, which then joins the survey."""
        cells = self._new_surveys()
        for survey, text in zip(cells, first, strict=True):
            survey.add(pa.array([text]), 0)
        kinds, below = [cell.kind for cell in cells], [survey.kind for survey in surveys]
        if not header.is_header(self.settings.header, kinds, below, self.place(0)):
            for survey, text in zip(surveys, first, strict=True):
                survey.add(pa.array([text]), 0)
            return 0
        if not surveys[0].seen:
            raise Unfit(
                "The file has a header and no rows. Send one with at least one row of numbers.", row=self.place(0)
            )
        return 1

    def _names(self, first: list[str], surveys: list[ColumnSurvey]) -> list[str]:
        """The columns' names. A last column of nothing, parted off by a delimiter at each line's end, is dropped."""
        nothing_last = surveys[-1].blank == surveys[-1].seen and not (self.header_records and first[-1].strip())
        if nothing_last and len(surveys) > 1:
            surveys.pop()
        width = len(surveys)
        return header.names(first[:width], self.place(0)) if self.header_records else header.numbered(width)

    def _refuse_blank(self, column: pa.Array, first_record: int) -> None:
        if not self.dialect.one_column or self.settings.blank_is_missing:
            return
        blank = matching(column, r"\s*")
        if blank.any():
            line = self.place(first_record + int(blank.argmax()))
            raise Unfit(
                f"Line {line} is blank: in a file of one column that is a missing value, or nothing. If it is a value, "
                "set `missing` to an empty marker (`missing=`); otherwise remove the line.",
                row=line,
                option="missing",
            )

    def _refuse_no_numbers(self, names: list[str], surveys: list[ColumnSurvey]) -> None:
        if any(survey.kind == "number" for survey in surveys):
            return
        strays = [(survey.numbers.stray, name) for survey, name in zip(surveys, names, strict=True)]
        cell, name = next(((cell, name) for cell, name in strays if cell), (None, None))
        example = f"; {quoted(cell.text)} in column {quoted(name)} is none" if cell else ""
        raise Unfit(
            f"No column holds numbers{example}. If they are written in a way of their own, set `delimiter`, `decimal` "
            "or `thousands`.",
            row=self.place(cell.record) if cell else None,
            column=name,
        )

    def _refuse_strays(self, time: int | None) -> None:
        for i, survey in self.numeric.items():
            if survey.stray and i != time:
                name = self.fields[i].name
                raise Unfit(
                    f"{quoted(survey.stray.text)} in column {quoted(name)} is not a number. Correct it, or if it "
                    "stands for a missing value, name it in `missing`.",
                    row=self.place(survey.stray.record),
                    column=name,
                    option="missing",
                )

    def _floats(self, cells: pa.Array, name: str, first_record: int) -> pa.Array:
        floats = self.convention.floats(cells)
        overflown = np.isinf(floats.to_numpy(zero_copy_only=False)) & ~matching(cells, numbers.INFINITE)
        if overflown.any():
            index = int(overflown.argmax())
            raise Unfit(
                f"{quoted(cells[index])} in column {quoted(name)} is beyond the range of a float64. Correct it.",
                row=self.place(first_record + index),
                column=name,
            )
        return floats
