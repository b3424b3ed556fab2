"""NPZ: NumPy's archive of arrays, read without unpacking more than it may hold."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from workers.datasets.contract import Format, ReadRequest
from workers.datasets.npy import pieces, read_header
from workers.datasets.options import Settings
from workers.datasets.refusals import Damaged, Unfit, quoted
from workers.datasets.source import Batch, checked
from workers.datasets.timecolumn import Field
from workers.datasets.unpacking import Budget

BROKEN_ZIP: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, struct.error, OSError),
    *(NotImplementedError, RuntimeError, ValueError, KeyError, OverflowError),
)
"""What zipfile raises over bytes that are not as they should be."""


class NpzArchive:
    """An .npz file, as a source of columns: one for each of its one-dimensional arrays."""

    format: Format = "npz"
    written: Mapping[str, str | int | bool] = {}

    def __init__(self, path: Path, request: ReadRequest, settings: Settings) -> None:
        self.path, self.max_bytes = path, request.max_unpacked_bytes
        self.fields, self.members, lengths = [], [], set()
        try:
            with zipfile.ZipFile(path) as archive:
                self.members = archive.infolist()
                Budget(self.max_bytes).spend(sum(member.file_size for member in self.members))
                for member in self.members[: request.max_columns + 1]:
                    name = _column_name(member)
                    with archive.open(member) as file:
                        header = read_header(file, member.file_size, f"The array {quoted(name)}")
                    if len(header.shape) != 1:
                        raise Unfit(
                            f"The array {quoted(name)} has two dimensions. Save each column as an array.", column=name
                        )
                    self.fields.append(Field(name, header.field_type))
                    lengths.add(header.shape[0])
        except BROKEN_ZIP as wrong:
            raise _broken_zip(wrong) from None
        if len(lengths) > 1:
            raise Unfit(
                f"The arrays have different lengths, from {min(lengths):,} to {max(lengths):,}. Save arrays of one "
                "length together, others as files of their own."
            )
        self.rows = lengths.pop() if lengths else 0
        checked(self.fields, self.rows, request.max_columns, request.max_unpacked_bytes)

    def place(self, record: int) -> int:
        """The row, counted from 1."""
        return record + 1

    def batches(self, time: int | None) -> Iterator[Batch]:
        """Integers as they are, floats as float64, datetime64 as timestamps."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                for index, member in enumerate(self.members):
                    with archive.open(member) as file:
                        header = read_header(file, member.file_size, f"The array {quoted(self.fields[index].name)}")
                        for _, first, values in pieces(file, header):
                            yield index, first, values
                        file.read(1)  # reaching the end is what checks the checksum
        except BROKEN_ZIP as wrong:
            raise _broken_zip(wrong) from None


def _column_name(member: zipfile.ZipInfo) -> str:
    name = member.filename
    if member.orig_filename != name or not re.fullmatch(r"[^/\\\x00]+\.npy", name, re.DOTALL) or name.startswith(".."):
        what = "an Excel workbook; save the sheet as CSV" if name == "[Content_Types].xml" else "no NPZ"
        raise Unfit(
            f"The zip archive holds {quoted(name)}, so it is {what}. An NPZ holds nothing but arrays, `<name>.npy`, "
            "without folders."
        )
    if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unfit(
            f"{quoted(name)} is encrypted, or compressed in a way NumPy does not write. Save it with numpy.savez."
        )
    return name.removesuffix(".npy")


def _broken_zip(why: object) -> Damaged:
    return Damaged(f"The NPZ archive is cut short or broken ({str(why)[:150]}). Write and send it again.")
