"""Whether this worker has the server's storage as a folder: found out, not declared."""

import contextlib
import fcntl
import logging
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from workers.contract import STORAGE_MARK, StorageFacts
from workers.environment import cache_folder
from workers.link import Link, Refused, ServerAway
from workers.storage.base import Storage
from workers.storage.cache import Cache
from workers.storage.fetched import HttpStorage
from workers.storage.shared import SharedStorage

log = logging.getLogger(__name__)

NONE: Final = "none"
CACHE_BYTES: Final = 16 << 30


def settle(link: Link) -> Storage:
    """The server's storage, for this worker. Raises ServerAway, and Refused where `TIDEMILL_STORAGE` names another folder."""
    facts, wanted = link.storage(), os.environ.get("TIDEMILL_STORAGE", "").strip()
    why_not = None if wanted == NONE else obstacle(facts)
    if wanted == NONE or (why_not and not wanted):
        log.info("files go over HTTP (%s)", why_not or "TIDEMILL_STORAGE is none")
        cache_folder().mkdir(parents=True, exist_ok=True)
        cache = Cache(cache_folder() / "files", cache_bytes())
        return HttpStorage(link, facts, cache, spool(cache_folder() / "spool"))
    if why_not is None and wanted and not os.path.samefile(wanted, facts.path):
        why_not = f"TIDEMILL_STORAGE is {wanted} here, and the server's is {facts.path}"
    if why_not:
        raise Refused(
            409,
            f"{why_not}. Mount the server's folder at the same path, or leave TIDEMILL_STORAGE out: files then go over HTTP.",
        )
    return SharedStorage(facts)


def obstacle(facts: StorageFacts) -> str | None:
    """Why the server's folder cannot be used from here; None where it can."""
    folder = Path(facts.path)
    try:
        found = (folder / STORAGE_MARK).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as fault:
        return f"the server's storage is not at {folder} on this machine ({getattr(fault, 'strerror', None) or fault})"
    if found != facts.id:
        return f"{folder} on this machine is the storage of another server"
    missing = [each for each in (folder, folder / "jobs") if not os.access(each, os.W_OK | os.X_OK)]
    return f"this process may not write to {missing[0]}" if missing else None


def cache_bytes() -> int:
    """`TIDEMILL_CACHE_BYTES`: the most that fetched files may take on the disk between jobs, unless told half of what is free there now.
    Raises Refused."""
    told = os.environ.get("TIDEMILL_CACHE_BYTES", "").strip()
    if told and not (told.isascii() and told.isdigit()):
        raise Refused(422, f"TIDEMILL_CACHE_BYTES is {told!r}; say how many bytes, as {CACHE_BYTES}.")
    return int(told) if told else min(CACHE_BYTES, shutil.disk_usage(cache_folder()).free // 2)


def spool(folder: Path) -> Path:
    """A folder of this process alone; what processes that are gone left there goes."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.lock"):
        with contextlib.suppress(OSError), left.open("a", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left.with_suffix(""), ignore_errors=True)
            left.unlink()
    mine = folder / uuid.uuid4().hex[:12]
    # Never closed: it is held for as long as this process lives.
    fcntl.flock(os.open(mine.with_suffix(".lock"), os.O_CREAT | os.O_WRONLY, 0o600), fcntl.LOCK_EX)
    mine.mkdir()
    return mine


def settled(link: Link, wait: Callable[[], object]) -> Storage:
    """`settle`, tried again after each `wait` while the server is away."""
    while True:
        try:
            return settle(link)
        except ServerAway as away:
            log.info("the server is away (%s); trying again", away)
            wait()
