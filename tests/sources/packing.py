"""Zips and wheels for the tests, honest ones and others."""

import io
import stat
import zipfile
from collections.abc import Mapping
from zipfile import ZipInfo

DIST_INFO = {
    "mill-1.2.dist-info/WHEEL": "Wheel-Version: 1.0\n",
    "mill-1.2.dist-info/METADATA": "Name: mill\nVersion: 1.2\n",
}


def packed(files: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def special(name: str, kind: int, content: str = "/etc/passwd") -> bytes:
    """A package and beside it an entry of another kind: a link, a pipe, a device."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mill.py", "")
        info = ZipInfo(name)
        info.create_system, info.external_attr = 3, (kind | 0o777) << 16
        archive.writestr(info, content)
    return out.getvalue()


def link(name: str = "passwords.py") -> bytes:
    return special(name, stat.S_IFLNK)


def renamed(archive: bytes, old: bytes, new: bytes) -> bytes:
    """The archive with another name, of the same length, in both places that hold it."""
    assert len(old) == len(new)
    assert archive.count(old) == 2
    return archive.replace(old, new)


def encrypted(archive: bytes) -> bytes:
    """The archive with the flag of encryption on its first entry."""
    changed = bytearray(archive)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        changed[archive.index(magic) + offset] |= 1
    return bytes(changed)


def wheel(files: Mapping[str, str | bytes]) -> bytes:
    return packed({**files, **DIST_INFO})
