"""The workers' door for files: of workers that do not have the server's storage themselves. Not in the schema, as `door`.

Workers read below `datasets`, `sources` and `jobs`; they write into the folder of an attempt, under the claim that it runs under.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import AfterValidator
from sqlmodel import Session

from app.control import attempts
from app.control.admission import admitted
from app.control.protocol import same_version
from app.control.received import POSITIONS, Received, append, keep, move, remove
from app.kit.digests import sha256_of
from app.kit.files import FileAnswer
from app.kit.problems import NotFound
from app.services import Services, services
from workers.contract import FileFacts, Message, StorageFacts, below

router = APIRouter(prefix="/internal", include_in_schema=False, dependencies=[Depends(admitted), Depends(same_version)])
House = Annotated[Services, Depends(services)]
Name = Annotated[str, AfterValidator(below)]
Claimed = Annotated[str, Query(alias="claim")]
PART_BYTES: Final = 1 << 20
UNFINISHED: Final = (".arriving-", ".old_")
READABLE: Final = frozenset({"datasets", "sources", "jobs"})


@router.get("/storage")
async def storage(house: House) -> StorageFacts:
    """Where the files are, and how to know them."""
    return StorageFacts(path=str(house.files.storage), id=house.files.storage_id)


@router.get("/files/{name:path}")
async def read(name: Name, house: House) -> FileAnswer:
    """A file, with its hash and the time of its last change."""
    path = await asyncio.to_thread(_there, house.files.storage, name)
    facts = await asyncio.to_thread(_facts, path, name)
    fields = {"Tidemill-SHA256": facts.sha256, "Tidemill-Modified": str(facts.modified_ns)}
    return FileAnswer(path, media_type="application/octet-stream", headers=fields)


@router.get("/facts/{name:path}")
async def facts(name: Name, house: House) -> list[FileFacts]:
    """Of a file, or of all files below a folder: sizes, hashes, times. Names are relative to the storage. Nothing where nothing is."""

    def look() -> list[FileFacts]:
        root = house.files.storage
        try:
            there = _there(root, name)
        except NotFound:
            return []
        if there.is_file():
            return [_facts(there, name)]
        found = []
        for path in sorted(there.rglob("*")):
            below_it = path.relative_to(there)
            if path.is_file() and path.resolve().is_relative_to(there) and not _is_ours(below_it):
                with contextlib.suppress(NotFound):  # it went this very moment
                    found.append(_facts(path, f"{name}/{below_it}"))
        return found

    return await asyncio.to_thread(look)


@router.put("/attempts/{attempt}/files/{name:path}", status_code=204)
async def put(
    attempt: str,
    name: Name,
    claim: Claimed,
    request: Request,
    house: House,
    sha256: Annotated[str, Header(alias="Tidemill-SHA256")],
    modified_ns: Annotated[int, Header(alias="Tidemill-Modified", ge=0, lt=2**63)],
) -> None:
    """A whole file, in the place of the one of its name."""
    folder = await _folder(house, attempt, claim)
    received = await asyncio.to_thread(Received, folder, name, house.files.incoming)
    try:
        async for part in _gathered(request.stream()):
            await asyncio.to_thread(received.write, part)
        await _folder(house, attempt, claim)  # it may have ended meanwhile
        await asyncio.to_thread(keep, received, sha256, modified_ns)
    finally:
        await asyncio.to_thread(received.close)


async def _gathered(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in parts that are worth a thread's while."""
    held = bytearray()
    async for part in parts:
        held += part
        if len(held) >= PART_BYTES:
            yield bytes(held)
            held.clear()
    yield bytes(held)


@router.post("/attempts/{attempt}/files/{name:path}")
async def extend(
    attempt: str,
    name: Name,
    claim: Claimed,
    request: Request,
    house: House,
    offset: Annotated[int, Query(ge=0)],
    node: Annotated[int, Query(ge=0)] = 0,
) -> int:
    """More of what a node of the attempt has written to a log; several may write to the same one. Answers how much of that node's
    is here: what is sent twice counts once."""
    part = await request.body()
    folder = await _folder(house, attempt, claim)
    return await asyncio.to_thread(append, folder, name, node, offset, part)


class Move(Message):
    """A folder that is whole takes the place of another."""

    to: Name


@router.post("/attempts/{attempt}/moves/{name:path}", status_code=204)
async def rename(attempt: str, name: Name, claim: Claimed, asked: Move, house: House) -> None:
    """A folder of the attempt gets its final name."""
    folder = await _folder(house, attempt, claim)
    await asyncio.to_thread(move, folder, name, asked.to)


@router.delete("/attempts/{attempt}/files/{name:path}", status_code=204)
async def delete(attempt: str, name: Name, claim: Claimed, house: House) -> None:
    """A file, or a folder, that the attempt no longer has."""
    folder = await _folder(house, attempt, claim)
    await asyncio.to_thread(remove, folder, name)


async def _folder(house: Services, attempt_id: str, claim: str) -> Path:
    """The folder of an attempt that runs under this claim. Raises ClaimRefused."""

    def query(db: Session) -> Path:
        attempt = attempts.attempt_held(db, attempt_id, claim)
        return house.files.attempt(attempt.job_id, attempt.number)

    return await house.reader.run(query)


def _is_ours(path: Path) -> bool:
    """Whether it is something of this door's own, or not whole yet."""
    return path.name == POSITIONS or any(part.startswith(UNFINISHED) for part in path.parts)


def _there(root: Path, name: str) -> Path:
    """The path of a name. Raises NotFound where nothing is, or nothing for workers."""
    first = name.partition("/")[0]
    with contextlib.suppress(OSError):  # a name that is too long
        path = (root / name).resolve()
        if first in READABLE and path.is_relative_to((root / first).resolve()) and path.exists():
            return path
    raise NotFound(f"There is no {name!r} in the storage.")


def _facts(path: Path, name: str) -> FileFacts:
    try:
        status = path.stat()
        return FileFacts(name=name, bytes=status.st_size, sha256=sha256_of(path), modified_ns=status.st_mtime_ns)
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"There is no file {name!r} in the storage.") from None
