"""Unpacking an archive that a stranger sent: looked through first, counted while it is written, never imported."""

import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from app.sources.archive import Entry, Unfit, apart, looked_through, quoted
from app.sources.layout import laid_out
from app.sources.names import modules, no_installed

MAX_RATIO: Final = 100
FREE_BYTES: Final = 16 << 20
"""So much may come out whatever the ratio: a small table of zeros is no bomb."""
CHUNK_BYTES: Final = 1 << 20


def unpack(path: Path, file_name: str, folder: Path, max_bytes: int) -> dict[str, Any]:
    """Write the package in `path` to `folder`; its format and its modules. Raises Unfit, with part of it written."""
    try:
        with path.open("rb") as file:
            if file.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
                raise Unfit("The file is not a zip. A source is a zip or a wheel; of a tar, make a zip.")
        with zipfile.ZipFile(path) as archive:
            form, entries = laid_out(looked_through(archive), file_name)
            apart(entries)
            no_installed(entries)
            names = modules(entries)
            _write(archive, entries, folder, min(max_bytes, max(FREE_BYTES, MAX_RATIO * path.stat().st_size)))
    # What zipfile raises of a damaged archive depends on where the damage is.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OverflowError, NotImplementedError) as broken:
        raise Unfit(f"The archive is cut short or damaged ({broken}). Pack and send it again.") from None
    return {"format": form, "modules": names}


def _write(archive: zipfile.ZipFile, entries: Iterable[Entry], folder: Path, max_bytes: int) -> None:
    left = max_bytes
    for entry in entries:
        target = folder.joinpath(*entry.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry.info) as packed, target.open("xb") as file:
            while chunk := packed.read(CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise Unfit(
                        f"The archive unpacks to more than {max_bytes:,} bytes, which is the limit for one of its size "
                        f"(it passed it in {quoted(entry.info.filename)}). Leave out what is not imported; data is uploaded as a dataset."
                    )
                file.write(chunk)
