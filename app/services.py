"""What one running server is made of. Built once by `create_app`; routes reach it through `services`."""

import asyncio
from dataclasses import dataclass, field

from fastapi import Request

from app.control.dispatcher import Dispatcher
from app.control.reconciler import Reconciler
from app.datasets.service import DatasetService
from app.db import migrate
from app.db.engine import reading_engine, writing_engine
from app.db.reader import Reader
from app.db.writer import Writer
from app.engines.base import Engine
from app.engines.dask import DaskEngine
from app.files import Files
from app.jobs.service import JobService
from app.kit.changes import Changes
from app.kit.children import Children
from app.settings import Settings


@dataclass
class Services:
    settings: Settings
    files: Files
    changes: Changes
    writer: Writer
    reader: Reader
    engine: Engine
    children: Children
    plots: Children
    jobs: JobService
    datasets: DatasetService
    dispatcher: Dispatcher
    reconciler: Reconciler
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


def prepare(settings: Settings) -> None:
    """Make HOME's folders and bring its database up to this code. Raises DatabaseTooNew."""
    files = Files(settings.home.resolve())
    files.prepare()
    engine = writing_engine(files.database)
    migrate.upgrade(engine, files.database)
    engine.dispose()


def build(settings: Settings) -> Services:
    files = Files(settings.home.resolve())
    changes = Changes()
    writer = Writer(writing_engine(files.database), changes.publish)
    reader = Reader(reading_engine(files.database))
    engine = DaskEngine(
        settings.dask_scheduler, files.home / "dask", settings.workers, settings.worker_threads, settings.join_token
    )
    children = Children(settings.reader_memory_bytes, settings.reader_seconds)
    dispatcher = Dispatcher(reader, writer, changes, engine)
    return Services(
        settings=settings,
        files=files,
        changes=changes,
        writer=writer,
        reader=reader,
        engine=engine,
        children=children,
        plots=Children(settings.reader_memory_bytes, settings.reader_seconds),
        jobs=JobService(reader, writer, files, settings.max_queue),
        datasets=DatasetService(reader, writer, files, children, settings),
        dispatcher=dispatcher,
        reconciler=Reconciler(reader, writer, engine, dispatcher, files, settings.worker_silence_seconds),
    )


def services(request: Request) -> Services:
    house: Services = request.app.state.services
    return house
