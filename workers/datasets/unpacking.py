"""From the bytes as uploaded to the file itself: gzip is taken off while counting what comes out."""

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, Final

from workers.datasets.contract import ReadRequest
from workers.datasets.refusals import Contradiction, Damaged, TooLarge, Unfit, quoted

GZIP_MAGIC: Final = b"\x1f\x8b"
GZIP_CODINGS: Final = frozenset({"gzip", "x-gzip"})
CHUNK_BYTES: Final = 1 << 20
MAX_LAYERS: Final = 2
"""A `.csv.gz` sent with `Content-Encoding: gzip` is honest; a third layer is not."""


class Budget:
    """How many bytes may still come out of an upload. Counted as they come, whatever headers claim."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = self.left = max_bytes

    def spend(self, count: int) -> None:
        """Take `count` bytes off; raises TooLarge when they are more than is left."""
        self.left -= count
        if self.left < 0:
            raise TooLarge(
                f"The file unpacks to more than {self.max_bytes:,} bytes, which is the limit here. "
                "Send fewer rows or columns, or split it into several files."
            )


def unpacked(request: ReadRequest) -> tuple[Path, str]:
    """The file without gzip, and its name without `.gz`.

    The path is the upload itself, or a temporary file in the request's folder. Raises Contradiction where gzip was
    declared and is not there, Damaged where it is broken, TooLarge where it unpacks to too much.
    """
    path, name = Path(request.path), request.file_name or ""
    declared = _declared_gzip(request)
    for layer in range(MAX_LAYERS + 1):
        with path.open("rb") as file:
            packed = file.read(2) == GZIP_MAGIC
        if not packed:
            if declared and layer == 0:
                raise Contradiction(f"The file is declared to be gzip ({declared}), but its bytes are not.")
            return path, name
        if layer == MAX_LAYERS:
            raise Unfit("The file is gzip within gzip within gzip. Compress it once.")
        path = _without_gzip(path, Path(request.folder) / f"unpacked{layer}.tmp", request.max_unpacked_bytes)
        name = name[:-3] if name.lower().endswith(".gz") else name
    raise AssertionError("the loop returns or raises")


def copy_counted(source: BinaryIO, target: BinaryIO, budget: Budget) -> None:
    """Copy all of `source`, at most the budget."""
    while chunk := source.read(CHUNK_BYTES):
        budget.spend(len(chunk))
        target.write(chunk)


def _declared_gzip(request: ReadRequest) -> str | None:
    coding = (request.content_encoding or "").strip().lower()
    if coding in GZIP_CODINGS:
        return f"`Content-Encoding: {coding}`"
    if coding not in ("", "identity"):
        raise Unfit(f"The content encoding {quoted(coding)} cannot be read. Compress with gzip, or not at all.")
    return f"file name {quoted(request.file_name)}" if (request.file_name or "").lower().endswith(".gz") else None


def _without_gzip(packed: Path, target: Path, max_bytes: int) -> Path:
    try:
        with gzip.open(packed, "rb") as source, target.open("wb") as file:
            copy_counted(source, file, Budget(max_bytes))  # type: ignore[arg-type]
    except (gzip.BadGzipFile, EOFError, zlib.error) as broken:
        raise Damaged(f"The gzip data is cut short or broken ({broken}). Compress and send it again.") from None
    return target
