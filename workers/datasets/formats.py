"""Which format a file is: what its sender declared, else its name, held against what its bytes say."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from workers.datasets.contract import Format, ReadRequest
from workers.datasets.refusals import Contradiction, Unfit, quoted


@dataclass(frozen=True)
class Kind:
    """One format: how it is declared, how files of it are named, how their bytes begin."""

    format: Format
    title: str
    media_types: tuple[str, ...]
    suffixes: tuple[str, ...]
    magic: bytes = b""


KINDS: Final = (
    Kind("csv", "CSV", ("text/csv", "text/x-csv", "application/csv", "text/comma-separated-values"), (".csv",)),
    Kind("tsv", "TSV", ("text/tab-separated-values", "text/tsv"), (".tsv", ".tab")),
    Kind(
        "parquet",
        "Parquet",
        ("application/vnd.apache.parquet", "application/x-parquet", "application/parquet"),
        (".parquet", ".pq"),
        b"PAR1",
    ),
    Kind("npy", "NPY", ("application/x-npy",), (".npy",), b"\x93NUMPY"),
    Kind("npz", "NPZ", ("application/x-npz",), (".npz",), b"PK\x03\x04"),
    Kind("json", "JSON", ("application/json", "text/json"), (".json",)),
)

OF_TABLES: Final = frozenset(
    (*(s for kind in KINDS if not kind.magic for s in kind.suffixes), ".parquet", ".txt", ".dat")
)
"""How files are named that people zip and send."""

GENERIC: Final = frozenset(
    (
        *("", "application/octet-stream", "binary/octet-stream", "text/plain"),
        *("multipart/form-data", "application/gzip", "application/x-gzip", "application/zip", "*/*"),
        *("application/x-zip-compressed", "application/vnd.ms-excel"),  # what Windows browsers say of a .csv
    )
)
"""Media types that say nothing of the format."""

FOREIGN: Final = (
    (b"\xd0\xcf\x11\xe0", "an old Excel or Office file", "save the sheet as CSV"),
    (b"PK\x05\x06", "an empty zip archive", "send the file itself"),
    (b"BZh", "compressed with bzip2", "compress with gzip, or not at all"),
    (b"\xfd7zXZ\x00", "compressed with xz", "compress with gzip, or not at all"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "compress with gzip, or not at all"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "send the file itself"),
    (b"Rar!", "a RAR archive", "send the file itself"),
    (b"%PDF", "a PDF document", "send the data behind it as CSV"),
    (b"\x89PNG", "an image", "send the data behind it as CSV"),
    (b"\xff\xd8\xff", "an image", "send the data behind it as CSV"),
    (b"\x89HDF", "an HDF5 file", "save the arrays as NPZ or Parquet"),
    (b"CDF\x01", "a NetCDF file", "save the arrays as NPZ or Parquet"),
    (b"CDF\x02", "a NetCDF file", "save the arrays as NPZ or Parquet"),
    (b"MATLAB 5.0", "a MATLAB file", "save the arrays as NPZ or CSV"),
    (b"ARROW1", "an Arrow (Feather) file", "save the table as Parquet"),
    (b"ORC", "an ORC file", "save the table as Parquet"),
    (b"PARE", "an encrypted Parquet file", "save it without encryption"),
    (b"SQLite format 3\x00", "a SQLite database", "export the table as CSV"),
    (b"\x80\x04\x95", "a Python pickle, which is never opened", "save the array with numpy.save"),
    (b"\x80\x05\x95", "a Python pickle, which is never opened", "save the array with numpy.save"),
    (b"<!DOCTYPE", "a web page", "download the data itself, not the page around it"),
    (b"<!doctype", "a web page", "download the data itself, not the page around it"),
    (b"<html", "a web page", "download the data itself, not the page around it"),
    (b"<?xml", "an XML document", "save the data as CSV"),
)
"""Beginnings of files we know and do not read: what they are, and what to do instead."""

READABLE: Final = "CSV, TSV, Parquet, NPY, NPZ and JSON, and gzip of these"


def decide(head: bytes, request: ReadRequest, file_name: str) -> Format:
    """The file's format. head: its first bytes, unpacked.

    An explicit media type counts before the name, the name before the bytes; but whatever was declared has to agree
    with the bytes. Raises Unfit for what we do not read, Contradiction where declaration and bytes disagree.
    """
    for magic, what, advice in FOREIGN:
        if head.startswith(magic):
            raise Unfit(f"The file is {what}; {advice}. What can be read: {READABLE}.")
    _refuse_other_zips(head)
    declared, said = _declared(request, file_name)
    shown = next((kind for kind in KINDS if kind.magic and head.startswith(kind.magic)), None)
    if declared is None:
        return shown.format if shown else _of_text(head)
    if shown not in (None, declared):
        raise Contradiction(
            f"The file is declared to be {declared.title} ({said}), but its bytes begin with "
            f"{quoted(shown.magic.decode('latin-1'))}, as in {shown.title}. Correct the declaration or the file."
        )
    if declared.magic and shown is None:
        raise Contradiction(
            f"The file is declared to be {declared.title} ({said}), but does not begin with "
            f"{quoted(declared.magic.decode('latin-1'))}, as such files do. Correct the declaration or the file."
        )
    return declared.format


def _refuse_other_zips(head: bytes) -> None:
    """A workbook and a zipped CSV begin as an NPZ does; the name of the first member tells them apart."""
    if not head.startswith(b"PK\x03\x04"):
        return
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")].decode("utf-8", "replace")
    if name in ("[Content_Types].xml", "_rels/.rels", "docProps/app.xml") or name.startswith("xl/"):
        raise Unfit(f"The file is an Excel workbook; save the sheet as CSV. What can be read: {READABLE}.")
    if PurePosixPath(name.lower()).suffix in OF_TABLES:
        raise Unfit(f"The file is a zip archive; unzip it and send {quoted(PurePosixPath(name).name)}.")


def charset(request: ReadRequest) -> str | None:
    """The charset the media type names, as in `text/csv; charset=windows-1252`."""
    for parameter in (request.media_type or "").split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip():
            return value.strip().strip('"')
    return None


def _declared(request: ReadRequest, file_name: str) -> tuple[Kind | None, str]:
    media_type = (request.media_type or "").partition(";")[0].strip().lower()
    for kind in KINDS:
        if media_type in kind.media_types:
            return kind, media_type
    if media_type not in GENERIC:
        raise Unfit(f"The media type {quoted(media_type)} is none that can be read. What can be read: {READABLE}.")
    suffix = PurePosixPath(file_name.lower().replace("\\", "/")).suffix
    return next(((kind, f"file name {quoted(file_name)}") for kind in KINDS if suffix in kind.suffixes), (None, ""))


def _of_text(head: bytes) -> Format:
    """JSON announces itself by its first bracket; no line of a table begins with one."""
    return "json" if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{") else "csv"
