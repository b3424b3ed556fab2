"""The story of a dataset: receive, recognise, read in a child, keep; or leave no trace."""

import asyncio
import json
import logging
import os
import shutil
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from python_multipart.multipart import parse_options_header
from sqlmodel import Session

from app.datasets import queries
from app.datasets.problems import DatasetInUse, UnreadableFile
from app.datasets.upload import Received, label, receive
from app.datasets.views import EPOCH, created
from app.db import idempotency
from app.db.idempotency import Keyed
from app.db.reader import Reader
from app.db.tables import Dataset
from app.db.writer import Writer
from app.files import Files, sync
from app.kit.children import ChildFailed, Children
from app.kit.clock import now
from app.kit.idempotency import StoredAnswer, fingerprint, replay
from app.kit.ids import new_id
from app.kit.problems import Internal, InvalidInput
from app.settings import Settings

log = logging.getLogger(__name__)

READER = "workers.datasets"


@dataclass(frozen=True)
class Upload:
    """A received file with everything that was said about it, from the form and from the query."""

    received: Received
    name: str
    options: dict[str, str]
    content_encoding: str | None
    named: bool
    """Whether the name was said, and is not only the file's."""

    @property
    def options_key(self) -> str:
        """Equal for equal options, so that the same bytes read the same way are one dataset."""
        _, parameters = parse_options_header(self.received.media_type)
        charset = parameters.get(b"charset", b"").decode("latin-1").lower()
        said = {"content_encoding": self.content_encoding, "charset": charset.replace("utf-8", "")}
        return json.dumps({**self.options, **{name: value for name, value in said.items() if value}}, sort_keys=True)


class DatasetService:
    def __init__(self, reader: Reader, writer: Writer, files: Files, children: Children, settings: Settings) -> None:
        self.reader, self.writer, self.files, self.children, self.settings = reader, writer, files, children, settings

    async def upload(self, request: Request, owner: str, said: dict[str, str], keyed: Keyed | None) -> Response:
        """Receive one file and answer 201 with the new dataset, or 200 with the same one that was there already."""
        await idempotency.reserve(self.writer, keyed)
        dataset_id = new_id("ds")
        path = self.files.incoming / dataset_id
        try:
            upload = _described(await receive(request, path, self.settings.max_upload_bytes), request, said)
            if keyed:
                content = {"sha256": upload.received.sha256, "options": upload.options_key, "name": upload.name}
                keyed = replace(keyed, fingerprint=fingerprint("POST", "/datasets", content))
            return await self._keep(dataset_id, upload, owner, keyed)
        except BaseException:
            await idempotency.give_back(self.writer, keyed)
            raise
        finally:
            path.unlink(missing_ok=True)

    async def _keep(self, dataset_id: str, upload: Upload, owner: str, keyed: Keyed | None) -> Response:
        answered = await self.reader.run(lambda db: idempotency.answered(db, keyed) if keyed else None)
        if answered:
            return replay(answered)
        sha256, key = upload.received.sha256, upload.options_key
        folder = self.files.dataset(dataset_id)
        there = await self.reader.run(lambda db: queries.same_content(db, owner, sha256, key))
        facts = None if there else await self._read(upload, folder)

        def unit(db: Session) -> Response:
            if keyed and (answer := idempotency.answered(db, keyed)):
                return replay(answer)
            same = queries.same_content(db, owner, sha256, key)
            if same is None and facts is None:  # deleted between the look and now
                raise UnreadableFile("The same dataset was just deleted; send the file again.")
            dataset = same or _row(dataset_id, upload, owner, facts or {})
            dataset.name = upload.name if upload.named else dataset.name
            db.add(dataset)
            response = created(dataset, new=same is None)
            if keyed:
                idempotency.remember(db, keyed, StoredAnswer.of(response))
            return response

        kept = False
        try:
            response = await self.writer.run(unit)
            kept = response.headers.get("location") == f"/datasets/{dataset_id}"
            return response
        finally:
            if not kept and facts is not None and not await self._exists(dataset_id, owner):
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _exists(self, dataset_id: str, owner: str) -> bool:
        return dataset_id in await self.reader.run(queries.ids)

    async def _read(self, upload: Upload, folder: Path) -> dict[str, Any]:
        """Have the child read the file into `folder`, which is whole when this returns and gone when it raises."""
        partial = folder.with_name(folder.name + ".partial")
        partial.mkdir(parents=True)
        try:
            facts = await self._ask_reader(upload, partial)
            os.replace(upload.received.path, partial / "content")
            await asyncio.to_thread(sync, partial)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return facts

    async def _ask_reader(self, upload: Upload, partial: Path) -> dict[str, Any]:
        options: dict[str, Any] = dict(upload.options)
        if "header" in options:
            options["header"] = _boolean("header", options["header"])
        request = {
            "path": str(upload.received.path),
            "media_type": upload.received.media_type,
            "content_encoding": upload.content_encoding,
            "file_name": upload.received.file_name or upload.name,
            "options": options,
            "folder": str(partial),
            "max_memory_bytes": self.children.memory_bytes,
            "max_unpacked_bytes": self.settings.max_unpacked_bytes,
            "max_cpu_seconds": self.children.seconds,
            "max_columns": self.settings.max_columns,
        }
        try:
            answer = await self.children.run(READER, request)
        except ChildFailed as failure:
            log.warning("reading %s failed: %s", upload.name, failure)
            if not failure.exhausted:
                raise Internal("Reading the file failed; the server's log says why.") from failure
            raise UnreadableFile(
                f"Reading {upload.name!r} took more memory or time than an upload may "
                f"({self.children.memory_bytes} bytes, {self.children.seconds} s); split the file, or send it as Parquet."
            ) from None
        if error := answer.get("error"):
            place = {name: error.get(name) for name in ("row", "column", "option") if error.get(name) is not None}
            pointer = f"/{error['option']}" if error.get("option") else "/file"
            raise UnreadableFile(error["detail"], pointer=pointer, **place)
        facts: dict[str, Any] = answer["ok"]
        return facts

    async def delete(self, dataset_id: str, owner: str) -> None:
        """Remove a dataset that no unfinished job needs. Raises DatasetInUse."""

        def unit(db: Session) -> None:
            dataset = queries.dataset_of(db, dataset_id, owner)
            if needed := queries.jobs_that_need(db, dataset_id):
                raise DatasetInUse(f"{needed} job(s) that have not ended need {dataset.name!r}.")
            db.delete(dataset)

        await self.writer.run(unit)
        await asyncio.to_thread(shutil.rmtree, self.files.dataset(dataset_id), ignore_errors=True)

    async def sweep(self) -> None:
        """At start-up: remove folders that no row knows, left by a crash between the two."""
        known = await self.reader.run(queries.ids)
        for folder in self.files.datasets.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)


def _described(received: Received, request: Request, said: dict[str, str]) -> Upload:
    options = {
        **{k: v for k, v in received.fields.items() if k != "name"},
        **{k: v for k, v in said.items() if k != "name"},
    }
    name = label(received, said.get("name"))
    encoding = request.headers.get("content-encoding", "").strip().lower()
    return Upload(received, name.text, options, None if encoding in ("", "identity") else encoding, name.said)


def _boolean(option: str, value: str) -> bool:
    try:
        return {"true": True, "false": False}[value.lower()]
    except KeyError:
        raise InvalidInput(f"{option} is {value!r}, but must be true or false.", pointer=f"/{option}") from None


def _row(dataset_id: str, upload: Upload, owner: str, facts: dict[str, Any]) -> Dataset:
    return Dataset(
        id=dataset_id,
        owner=owner,
        name=upload.name,
        format=facts["format"],
        media_type=upload.received.media_type or "application/octet-stream",
        bytes=upload.received.bytes,
        sha256=upload.received.sha256,
        options=upload.options_key,
        rows=facts["rows"],
        columns=facts["columns"],
        time_column=facts.get("time_column"),
        first_time=_moment(facts.get("first_time")),
        last_time=_moment(facts.get("last_time")),
        reading=facts["reading"],
        notes=facts["notes"],
        created_at=now(),
    )


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)
