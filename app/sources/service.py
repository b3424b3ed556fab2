"""The story of a source: receive, look through and unpack in a child, keep; or leave no trace. Nothing of it is imported here."""

import asyncio
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fastapi import Request, Response
from sqlmodel import Session

from app.datasets.upload import Label, Received, label, receive
from app.db import idempotency
from app.db.idempotency import Keyed
from app.db.reader import Reader
from app.db.tables import SourceRow
from app.db.writer import StorageUnavailable, Writer
from app.files import Files, sync
from app.kit.children import ChildFailed, Children
from app.kit.clock import now
from app.kit.idempotency import StoredAnswer, fingerprint, replay
from app.kit.ids import new_id
from app.kit.problems import Internal
from app.settings import Settings
from app.sources import queries
from app.sources.problems import SourceInUse, SourceUploadOff, UnfitSource
from app.sources.schemas import PACKAGES
from app.sources.views import created

log = logging.getLogger(__name__)

UNPACKER: Final = "app.sources"


class SourceService:
    def __init__(self, reader: Reader, writer: Writer, files: Files, children: Children, settings: Settings) -> None:
        self.reader, self.writer, self.files, self.children, self.settings = reader, writer, files, children, settings

    async def upload(self, request: Request, owner: str, name: str | None, keyed: Keyed | None) -> Response:
        """Receive one archive and answer 201 with the new source, or 200 with the same one that was there already."""
        if not self.settings.allow_source_upload:
            raise SourceUploadOff(
                "This server takes no code. Its operator allows it with TIDEMILL_ALLOW_SOURCE_UPLOAD=true and a new start."
            )
        await idempotency.reserve(self.writer, keyed)
        source_id = new_id("src")
        path = self.files.incoming / source_id
        try:
            received = await receive(request, path, self.settings.max_source_bytes, PACKAGES)
            named = label(received, name)
            if keyed:
                content = {"sha256": received.sha256, "name": named.text}
                keyed = replace(keyed, fingerprint=fingerprint("POST", "/sources", content))
            return await self._keep(source_id, received, named, owner, keyed)
        except BaseException:
            await idempotency.give_back(self.writer, keyed)
            raise
        finally:
            path.unlink(missing_ok=True)

    async def _keep(self, source_id: str, received: Received, name: Label, owner: str, keyed: Keyed | None) -> Response:
        """Unpack first, then look whether it is new: a package is small, and there is no moment between the look and the row."""
        folder = self.files.source(source_id)

        def unit(db: Session) -> Response:
            if keyed and (answer := idempotency.answered(db, keyed)):
                return replay(answer)
            same = queries.same_content(db, owner, received.sha256)
            source = same or _row(source_id, received, name.text, owner, facts)
            source.name = name.text if name.said else source.name
            db.add(source)
            response = created(source, new=same is None)
            if keyed:
                idempotency.remember(db, keyed, StoredAnswer.of(response))
            return response

        try:
            facts = await self._unpack(received, name.text, folder)
            return await self.writer.run(unit)
        finally:
            if source_id not in await self.reader.run(queries.ids):
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _unpack(self, received: Received, name: str, folder: Path) -> dict[str, Any]:
        """Have the child look through the archive and unpack it to `folder`/package."""
        package = folder / "package"
        package.mkdir(parents=True)
        request = {
            "path": str(received.path),
            "name": received.file_name or name,
            "folder": str(package),
            "max_unpacked_bytes": self.settings.max_source_unpacked_bytes,
            "max_memory_bytes": self.children.memory_bytes,
            "max_cpu_seconds": self.children.seconds,
        }
        try:
            answer = await self.children.run(UNPACKER, request)
        except ChildFailed as failure:
            log.warning("unpacking %s failed: %s", name, failure)
            if not failure.exhausted:
                raise Internal("Unpacking the package failed; the server's log says why.") from failure
            raise UnfitSource(
                f"Unpacking {name!r} took more memory or time than an upload may "
                f"({self.children.memory_bytes} bytes, {self.children.seconds} s); send less at once.",
                pointer="/file",
            ) from None
        if full := answer.get("full"):
            raise StorageUnavailable(f"The package could not be kept ({full}).")
        if refusal := answer.get("error"):
            raise UnfitSource(refusal, pointer="/file")
        await asyncio.to_thread(sync, folder)
        facts: dict[str, Any] = answer["ok"]
        return facts

    async def delete(self, source_id: str, owner: str) -> None:
        """Remove a source that no unfinished job needs. Raises SourceInUse."""

        def unit(db: Session) -> None:
            source = queries.source_of(db, source_id, owner)
            if needed := queries.jobs_that_need(db, source_id):
                raise SourceInUse(f"{needed} job(s) that have not ended need {source.name!r}.")
            db.delete(source)

        await self.writer.run(unit)
        await asyncio.to_thread(shutil.rmtree, self.files.source(source_id), ignore_errors=True)

    async def sweep(self) -> None:
        """At start-up: remove folders that no row knows, left by a crash between the two."""
        known = await self.reader.run(queries.ids)
        for folder in self.files.sources.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)


def _row(source_id: str, received: Received, name: str, owner: str, facts: dict[str, Any]) -> SourceRow:
    return SourceRow(
        id=source_id,
        owner=owner,
        name=name,
        format=facts["format"],
        bytes=received.bytes,
        sha256=received.sha256,
        modules=facts["modules"],
        created_at=now(),
    )
