"""JSON: one list, lists by name, or a list of rows."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from workers.datasets.contract import Format, ReadRequest
from workers.datasets.options import Settings
from workers.datasets.refusals import Damaged, Unfit, quoted
from workers.datasets.source import Batch, checked
from workers.datasets.strays import remedy
from workers.datasets.timecolumn import Field

INFINITE: Final = {"inf": math.inf, "+inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
SHAPES: Final = '`[1, 2, null]`, `{"a": [1, 2], "b": [3, 4]}` and `[{"a": 1, "b": 3}, {"a": 2, "b": 4}]`'
STRING_OR_CONSTANT: Final = re.compile(r'"(?:\\.|[^"\\])*"|(-?Infinity|NaN)', re.DOTALL)


class JsonColumns:
    """A JSON document, as a source of columns. It is held in memory, many times its size."""

    format: Format = "json"
    written: Mapping[str, str | int | bool] = {}

    def __init__(self, path: Path, request: ReadRequest, settings: Settings) -> None:
        columns = _columns(_parsed(path.read_text("utf-8")), request.max_columns)
        self.rows = min(map(len, columns.values()), default=0)
        self.values = [_array(name, values, settings) for name, values in columns.items()]
        self.fields = [Field(name, values.type) for name, values in zip(columns, self.values, strict=True)]
        checked(self.fields, self.rows, request.max_columns, request.max_unpacked_bytes)

    def place(self, record: int) -> int:
        """The element, counted from 1."""
        return record + 1

    def batches(self, time: int | None) -> Iterator[Batch]:
        """Numbers as float64 (int64 where all are whole), the rest as strings."""
        for index, values in enumerate(self.values):
            yield index, 0, values


def _parsed(text: str) -> Any:
    def no_constant(name: str) -> Any:
        found = next((m for m in STRING_OR_CONSTANT.finditer(text) if m[1]), None)
        row = text.count("\n", 0, found.start()) + 1 if found else None
        instead = 'null for NaN, "inf" or "-inf" for infinity'
        raise Unfit(f"`{name}` is no JSON. Write {instead}.", row=row)

    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as wrong:
        lines = " JSON Lines are not read: put the rows into one list." if wrong.msg == "Extra data" else ""
        raise Damaged(
            f"The JSON cannot be read: {wrong.msg} in line {wrong.lineno}, column {wrong.colno}.{lines}",
            row=wrong.lineno,
        ) from None
    except RecursionError:
        raise Unfit(f"The JSON is nested too deeply. What is read: {SHAPES}.") from None
    except ValueError as wrong:  # a whole number of thousands of digits
        raise Unfit(f"The JSON holds a number that cannot be read ({str(wrong)[:80]}).") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Unfit(f"An object names {quoted(name)} twice. Rename one.", column=name)
    return found


def _columns(document: Any, max_columns: int) -> dict[str, Sequence[Any]]:
    """The columns by name. Raises Unfit, with the row where there is one, for any other shape."""
    if isinstance(document, dict) and document and all(isinstance(values, list) for values in document.values()):
        lengths = {name: len(values) for name, values in document.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{quoted(name)} has {length:,}" for name, length in list(lengths.items())[:10])
            raise Unfit(f"The lists have different lengths: {told}. Fill up with null.")
        return document
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return _from_rows(document, max_columns)
    if isinstance(document, list) and not any(isinstance(value, list | dict) for value in document):
        return {"column_0": document}
    raise Unfit(f"The JSON is of another shape than what is read: {SHAPES}.")


def _from_rows(rows: list[Any], max_columns: int) -> dict[str, Sequence[Any]]:
    names = rows[0].keys()
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise Unfit(f"Row {number + 1} is {quoted(row)}, not an object as the first one.", row=number + 1)
        if row.keys() != names:
            odd = min(row.keys() ^ names)
            does = "has" if odd in row else "lacks"
            raise Unfit(
                f"Row {number + 1} {does} {quoted(odd)}, unlike the first. Give every row the same names, with null "
                "where there is no value.",
                row=number + 1,
                column=odd,
            )
    return {name: [row[name] for row in rows] for name in list(names)[: max_columns + 1]}


def _array(name: str, values: Sequence[Any], settings: Settings) -> pa.Array:
    """int64 or float64 where there are numbers or nothing but signs for them, else strings; null where missing."""
    markers = settings.missing
    if name in settings.text:
        return pa.array([_text(name, row, value) for row, value in enumerate(values, 1)], pa.string())
    if all(type(value) is int and -(2**63) <= value < 2**63 for value in values):
        return pa.array(values, pa.int64())
    if any(type(value) in (int, float) for value in values) or all(
        _sign(value, markers) is not None for value in values
    ):
        return pa.array(
            np.array([_number(name, row, value, markers) for row, value in enumerate(values, 1)], np.float64)
        )
    return pa.array([_text(name, row, value) for row, value in enumerate(values, 1)], pa.string())


def _sign(value: object, markers: frozenset[str]) -> float | None:
    """What a value that is no JSON number says of one: infinite, or missing."""
    if isinstance(value, str):
        return math.nan if value in markers else INFINITE.get(value.lower())
    return math.nan if value is None else None


def _number(name: str, row: int, value: object, markers: frozenset[str]) -> float:
    if (sign := _sign(value, markers)) is not None:
        return sign
    if isinstance(value, bool) or not isinstance(value, int | float):
        advice, option = remedy(str(value))
        raise Unfit(
            f"{quoted(value)} in column {quoted(name)} is not a number. {advice} A column of text can be named in `text`.",
            row=row,
            column=name,
            option=option,
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):  # the literal was too large; an infinity that is meant is a string
        raise Unfit(
            f"A number in column {quoted(name)} is beyond the range of a float64. Correct it.", row=row, column=name
        )
    return number


def _text(name: str, row: int, value: object) -> str | None:
    if isinstance(value, list | dict):
        raise Unfit(
            f"Row {row} of column {quoted(name)} is a list or an object. What is read: {SHAPES}.", row=row, column=name
        )
    if value is None or isinstance(value, str):
        return value and value.encode("utf-8", "replace").decode()
    return str(value).lower()
