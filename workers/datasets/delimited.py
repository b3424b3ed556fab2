"""CSV and TSV: sniffed, surveyed once from end to end, then read with what the survey settled."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
from workers.datasets.strays import has_digits, minus_in, most_telling, remedy, sign_beside
from workers.datasets.survey import ColumnSurvey, kinds_of
from workers.datasets.timecolumn import Field

NEXT_RECORDS: Final = 100
"""How many records below the first are looked at for years."""


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
        as_text = {i for i, name in enumerate(names) if name in settings.text}
        self._refuse_no_numbers(names, surveys, as_text)
        self.numeric = {
            i: survey.numbers
            for i, survey in enumerate(surveys)
            if survey.kind in ("number", "empty") and i not in as_text
        }
        self.convention = numbers.choose(
            {names[i]: survey for i, survey in self.numeric.items()}, self.dialect.delimiter, self.place
        )
        self.fields = [
            Field(name, pa.float64() if i in self.numeric else pa.string(), None if i in as_text else survey.times)
            for i, (name, survey) in enumerate(zip(names, surveys, strict=True))
        ]

    @property
    def written(self) -> dict[str, str | int | bool]:
        """What the sniffing and the survey settled."""
        said: dict[str, str | int | bool] = {
            "decimal": self.convention.decimal,
            "header": self.header_records > 0,
            "encoding": self.settings.encoding or "utf-8",
        }
        if self.dialect.width > 1:
            said["delimiter"] = self.dialect.delimiter
        if self.convention.thousands:
            said["thousands"] = self.convention.thousands
        if self.dialect.lines_before:
            said["lines_skipped"] = self.dialect.lines_before
        return said

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
        self.next_cells: list[list[str]] = [[]] * self.dialect.width
        for number, batch in self.records.batches():
            below = batch
            if number == 0:
                first, below = [column[0].as_py() for column in batch.columns], batch.slice(1)
                self.next_cells = [column.to_pylist() for column in below.slice(0, NEXT_RECORDS).columns]
            for survey, column in zip(surveys, below.columns, strict=True):
                self._refuse_blank(column, number + (number == 0))
                survey.add(column, number + (number == 0))
        return first, surveys

    def _settle_header(self, first: list[str], surveys: list[ColumnSurvey]) -> int:
        """1 where the first record is the header, 0 where it is a row, which then joins the survey."""
        kinds = kinds_of(cleaned(pa.array(first), self.markers), timecolumn.readings(self.settings))
        below = [survey.kind for survey in surveys]
        years = header.like_years(first, kinds, self.next_cells)
        if not header.is_header(self.settings.header, kinds, below, years, self.place(0)):
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

    def _refuse_no_numbers(self, names: list[str], surveys: list[ColumnSurvey], as_text: set[int]) -> None:
        if any(survey.kind == "number" for i, survey in enumerate(surveys) if i not in as_text):
            return
        found = sorted(zip(surveys, names, strict=True), key=lambda one: one[0].kind == "time")
        told = most_telling([(cell, name) for survey, name in found for cell in survey.numbers.strays])
        cell, name = told or (None, None)
        example = f"; {quoted(cell.text)} in column {quoted(name)} is none" if cell else ""
        advice = remedy(cell.text)[0] if cell and (sign_beside(cell.text) or minus_in(cell.text)) else ""
        raise Unfit(
            f"No column holds numbers{example}. "
            + (advice or "If they are written in a way of their own, set `delimiter`, `decimal` or `thousands`."),
            row=self.place(cell.record) if cell else None,
            column=name,
        )

    def _refuse_strays(self, time: int | None) -> None:
        astray = {i: survey.strays for i, survey in self.numeric.items() if survey.strays and i != time}
        if not astray:
            return
        i, strays = next(iter(astray.items()))
        name, line = self.fields[i].name, self.place(strays[0].record)
        alone = all([cell.record for cell in cells] == [self.header_records] for cells in astray.values())
        if alone and self.header_records and self.rows > 1 and not has_digits(strays[0].text):
            raise Unfit(
                f"{quoted(strays[0].text)} in column {quoted(name)} is not a number, and stands right below the header. If "
                f"line {line} holds units or is a second header, remove it, or set `skip_rows` to {(line or 1) - 1}, "
                "which makes it the header; if it stands for a missing value, name it in `missing`.",
                row=line,
                column=name,
                option="skip_rows",
            )
        advice, option = remedy(strays[0].text)
        others = " and ".join(f"{quoted(cell.text)} in line {self.place(cell.record)}" for cell in strays[1:])
        raise Unfit(
            f"{quoted(strays[0].text)} in column {quoted(name)} is not a number{f', nor is {others}' if others else ''}. "
            f"{advice} If the column is no numbers, name it in `text`.",
            row=line,
            column=name,
            option=option,
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
