"""The files that a training attempt leaves behind: all that lies below its folder when its ranks have ended."""

import hashlib
import logging
import mimetypes
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from workers.contract import Artifact

log = logging.getLogger(__name__)

INPUTS: Final = "inputs"
OURS: Final = frozenset({"outcome.json"})
UNFINISHED: Final = (".partial", ".tmp")
MOST: Final = 2000
"""Files of one attempt that are kept as artifacts."""
MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".ckpt": "application/octet-stream",
    ".pt": "application/octet-stream",
    ".log": "text/plain",
    ".yaml": "application/yaml",
    ".parquet": "application/vnd.apache.parquet",
    ".npz": "application/x-npz",
    ".npy": "application/x-npy",
}


def artifacts_below(folder: Path, elsewhere: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """An artifact {name, bytes, sha256, media_type} for each; the newest `MOST` where there are more.

    elsewhere: those of other nodes, of which the ones with other names count as well.
    """
    found = sorted(_files(folder), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    if len(found) > MOST:
        log.warning("%s has %d files; the newest %d are kept as artifacts", folder, len(found), MOST)
    kept = [artifact for path in found[:MOST] if (artifact := _artifact(path, folder))]
    named = {str(artifact["name"]): artifact for artifact in (*elsewhere, *kept)}
    return [named[name] for name in sorted(named)]


def _files(folder: Path) -> Iterator[Path]:
    """Regular files; not what is hidden, unfinished, a link, or ours."""
    for parent, folders, names in os.walk(folder):
        here = Path(parent)
        top = here == folder
        folders[:] = [name for name in folders if not name.startswith(".") and not (top and name == INPUTS)]
        for name in names:
            path = here / name
            if name.startswith(".") or name.endswith(UNFINISHED) or (top and name in OURS):
                continue
            if path.is_file() and not path.is_symlink():
                yield path


def _artifact(path: Path, folder: Path) -> dict[str, Any] | None:
    name = path.relative_to(folder).as_posix()
    guessed = MEDIA_TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
            size = os.fstat(content.fileno()).st_size
        artifact = Artifact(name=name, bytes=size, sha256=digest, media_type=guessed)
        return artifact.model_dump(mode="json")
    except (OSError, ValidationError, UnicodeEncodeError) as fault:
        log.warning("%r is not kept as an artifact: %s", name, fault)
        return None
