"""Where the ranks of one node put what is temporary: what a rank that was killed could not remove goes with the folder."""

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator

log = logging.getLogger(__name__)


@contextlib.contextmanager
def private_folder() -> Iterator[str | None]:
    """A folder for as long as the context lasts, None where there can be none. Not below the attempt's own: the paths of the sockets that
    loaders make in it may have 107 bytes and no more."""
    try:
        folder = tempfile.mkdtemp(prefix="tidemill-")
    except OSError as fault:
        log.warning("no temporary folder for ranks: %s", fault)
        yield None
        return
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
