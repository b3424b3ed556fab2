"""What one running server is made of. Built once by `create_app`; routes reach it through `services`."""

import asyncio
from dataclasses import dataclass, field

from fastapi import Request

from app.capabilities.probing import Probing
from app.control.dispatcher import Dispatcher
from app.control.reconciler import Reconciler
from app.datasets.service import DatasetService
from app.db import migrate
from app.db.engine import reading_engine, writing_engine
from app.db.reader import Reader
from app.db.writer import Writer
from app.engines.all import Engines, build_engines
from app.files import Files
from app.jobs.admission import Admission
from app.jobs.service import JobService
from app.keys.service import KeyService
from app.kit.briefly import Briefly
from app.kit.changes import Changes
from app.kit.children import Children
from app.settings import Settings
from app.sources.service import SourceService
from app.training.asking import Asking


@dataclass
class Services:
    settings: Settings
    files: Files
    changes: Changes
    writer: Writer
    reader: Reader
    engines: Engines
    children: Children
    plots: Children
    jobs: JobService
    datasets: DatasetService
    sources: SourceService
    keys: KeyService
    probing: Probing
    dispatcher: Dispatcher
    reconciler: Reconciler
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    missing: Briefly[list[str]] = field(default_factory=lambda: Briefly(1.0))
    """Why a job submitted now could not run, see `app.capabilities.readiness`."""


def prepare(settings: Settings) -> None:
    """Make the storage's folders, and bring HOME's database up to this code. Raises DatabaseTooNew.

    For whoever holds the locks of both: it clears uploads that somebody else would still be sending.
    """
    Files.of(settings).prepare()
    prepare_database(settings)


def prepare_database(settings: Settings) -> None:
    """Bring HOME's database up to this code, and leave the storage alone. Raises DatabaseTooNew."""
    files = Files.of(settings)
    engine = writing_engine(files.database)
    migrate.upgrade(engine, files.database)
    engine.dispose()


def build(settings: Settings) -> Services:
    files = Files.of(settings)
    changes = Changes()
    writer = Writer(writing_engine(files.database), changes.publish)
    reader = Reader(reading_engine(files.database))
    engines = build_engines(settings, files.home)
    children = Children(settings.reader_memory_bytes, settings.reader_seconds)
    dispatcher = Dispatcher(reader, writer, changes, engines)
    return Services(
        settings=settings,
        files=files,
        changes=changes,
        writer=writer,
        reader=reader,
        engines=engines,
        children=children,
        plots=Children(settings.reader_memory_bytes, settings.reader_seconds),
        jobs=JobService(
            reader,
            writer,
            Admission(
                files,
                settings.max_job_bytes,
                settings.evidence_seconds,
                settings.training_allowed,
                settings.allow_source_upload,
            ),
            Asking(reader, engines, files, settings.training_allowed),
            settings.max_queue,
        ),
        datasets=DatasetService(reader, writer, files, children, settings),
        sources=SourceService(reader, writer, files, children, settings),
        keys=KeyService(reader, writer),
        probing=Probing(reader, writer, engines, settings.max_queue, settings.evidence_seconds),
        dispatcher=dispatcher,
        reconciler=Reconciler(reader, writer, engines, dispatcher, files, settings.worker_silence_seconds),
    )


def services(request: Request) -> Services:
    house: Services = request.app.state.services
    return house
