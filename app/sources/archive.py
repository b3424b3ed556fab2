"""Looking through an archive before anything of it is written: its own list of what is in it must be harmless."""

import re
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final
from zipfile import ZipInfo

MAX_FILES: Final = 10_000
MAX_PART_BYTES: Final = 255
MAX_PATH_BYTES: Final = 1024
MAX_DEPTH: Final = 20
"""Folders cost a disk more than their names: without it, a small archive could ask for millions."""
ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""What every wheel is made of. Others can ask for gigabytes to unpack a few bytes."""


class Unfit(Exception):
    """The archive cannot be taken; the text says why, to the person who sent it."""


@dataclass(frozen=True)
class Entry:
    """A file in the archive, and where it goes."""

    info: ZipInfo
    path: tuple[str, ...]


def _file_type(info: ZipInfo) -> int:
    return stat.S_IFMT(info.external_attr >> 16)


def _long(info: ZipInfo) -> bool:
    name = info.filename.encode("utf-8", "replace")
    return len(name) > MAX_PATH_BYTES or any(len(part) > MAX_PART_BYTES for part in name.split(b"/"))


RULES: Final[tuple[tuple[Callable[[ZipInfo], object], str], ...]] = (
    (lambda info: re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", info.orig_filename), "has control characters in its name"),
    (lambda info: "\\" in info.filename, "has backslashes in its name; pack it with a tool that writes slashes"),
    (lambda info: re.match(r"/|[A-Za-z]:", info.filename), "has an absolute path; paths start at the archive's top"),
    (lambda info: not {".", ".."}.isdisjoint(info.filename.split("/")), "leads out of the archive with `.` or `..`"),
    (lambda info: "" in info.filename.removesuffix("/").split("/"), "has an empty part in its path"),
    (_long, f"has a name that is too long: {MAX_PART_BYTES} bytes a part and {MAX_PATH_BYTES} in all is the most"),
    (lambda info: info.filename.count("/") > MAX_DEPTH, f"lies deeper than {MAX_DEPTH} folders"),
    (lambda info: info.flag_bits & ENCRYPTED, "is encrypted; pack it without a password"),
    (
        lambda info: _file_type(info) not in (0, stat.S_IFREG, stat.S_IFDIR),
        "is a symbolic link or a special file; pack the file that it leads to",
    ),
    (
        lambda info: _file_type(info) == stat.S_IFDIR and not info.is_dir(),
        "says that it is a folder and has no folder's name",
    ),
    (
        lambda info: info.compress_type not in METHODS,
        "is compressed in another way than deflate; pack it as a plain zip",
    ),
    (
        lambda info: re.search(r"\.(so(\.\d+)*|pyd|dll|dylib)$", info.filename, re.IGNORECASE),
        "is compiled code. A source is Python only; have what is compiled installed on the workers",
    ),
)
"""What no entry may be, and what is said of one that is."""


def looked_through(archive: zipfile.ZipFile) -> list[Entry]:
    """The files of `archive`. Raises Unfit for the first entry that breaks a rule, and for too many."""
    infos = archive.infolist()
    if len(infos) > MAX_FILES:
        raise Unfit(
            f"The archive has {len(infos):,} entries; {MAX_FILES:,} is the most here. Leave out what is not imported."
        )
    for info in infos:
        for broken, words in RULES:
            if broken(info):
                raise Unfit(f"The entry {quoted(info.orig_filename)} {words}.")
    return [Entry(info, tuple(info.filename.split("/"))) for info in infos if not info.is_dir()]


def apart(entries: Iterable[Entry]) -> None:
    """Raise Unfit where two entries would be one file, or one would be a file and a folder.

    Names that differ by case or by how an accent is written are one file on some disks.
    """
    files: dict[tuple[str, ...], str] = {}
    for entry in entries:
        path = tuple(unicodedata.normalize("NFC", part).casefold() for part in entry.path)
        if other := files.get(path):
            raise Unfit(
                f"The archive has {quoted(entry.info.filename)} twice"
                + (f", the other time as {quoted(other)}." if other != entry.info.filename else ".")
            )
        files[path] = entry.info.filename
    for path, name in files.items():
        for depth in range(1, len(path)):
            if path[:depth] in files:
                raise Unfit(
                    f"The archive has {quoted(files[path[:depth]])} as a file, and as the folder of {quoted(name)}."
                )


def quoted(name: str) -> str:
    """A stranger's name, fit to be read: short and printable."""
    return ascii(name if len(name) <= 100 else name[:99] + "…") if not name.isprintable() else repr(name[:100])
