"""The application: routers, handlers, lifespan; nothing else."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from importlib import metadata

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.datastructures import State

from app import docs
from app.capabilities import routes as capabilities
from app.control import door
from app.control.queries import open_attempts
from app.datasets import routes as datasets
from app.db import idempotency
from app.jobs import routes as jobs
from app.kit import catalogue, handlers, middleware
from app.results import routes as results
from app.services import Services, build
from app.settings import Settings

log = logging.getLogger(__name__)

DESCRIPTION = """
Matrix-profile jobs on a long-lived cluster: upload a series once, submit jobs, watch them, download results.

**Your first job:** open `POST /jobs`, the first line below, and press *Execute*: the example runs as it stands. Copy the `id` of the
answer into `GET /jobs/{job_id}/result` for the profile, or into `GET /jobs/{job_id}/plot` for a picture of it.

**Your own series:** `POST /datasets` takes a CSV, TSV, Parquet, NPY, NPZ or JSON file; a job then names it as
`{"dataset": "ds_…", "column": "…"}`.

Errors are `application/problem+json`; their `type` is a link that explains them, and `GET /problems` lists them all.
"""

TAGS = [
    {"name": "jobs", "description": "Submit, watch, cancel, retry, delete."},
    {"name": "results", "description": "The profile in four formats, the files, the plot."},
    {"name": "datasets", "description": "Upload a series once, refer to it in many jobs."},
    {"name": "capabilities", "description": "What this deployment has been proved to do."},
    {"name": "health", "description": "Whether a job submitted now could run."},
    {"name": "problems", "description": "What every error means, and what to do about it."},
]
"""The order of the documentation: what a newcomer does first comes first."""


def create_app(settings: Settings, when_ready: Callable[[Services], None] = lambda house: None) -> FastAPI:
    """The server's application. `when_ready` is called once a job submitted now could run."""
    app: FastAPI = FastAPIOffline(
        title="Tidemill",
        version=metadata.version("tidemill"),
        description=DESCRIPTION,
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        lifespan=lambda app: _lifespan(app.state, settings, when_ready),
        swagger_ui_parameters=docs.SWAGGER,
        redoc_url=None,
    )
    handlers.install(app)
    middleware.install(app, max_body_bytes=settings.max_body_bytes, exempt=lambda path: path == "/datasets")
    for room in (jobs, results, datasets, capabilities, door):
        app.include_router(room.router)
    catalogue.install(app)
    docs.install(app)
    return app


@contextlib.asynccontextmanager
async def _lifespan(state: State, settings: Settings, when_ready: Callable[[Services], None]) -> AsyncIterator[None]:
    """Open the database, bring the cluster up in the background, and on the way out stop everything in order."""
    house = build(settings)
    state.services = house
    house.changes.bind()
    house.writer.start()
    await house.writer.run(idempotency.forget_running)
    await house.datasets.sweep()
    await house.reconciler.recover()
    starting = asyncio.create_task(_start(house, when_ready), name="start")
    dispatching = asyncio.create_task(house.dispatcher.run(), name="dispatcher")
    hastening = asyncio.create_task(house.dispatcher.hasten_stops(), name="hasten-stops")
    reconciling = asyncio.create_task(house.reconciler.run(), name="reconciler")
    try:
        yield
    finally:
        house.stopping.set()
        await _end(starting, dispatching, hastening)
        await _drain(house)
        await _end(reconciling)
        await house.engine.stop()
        await house.reconciler.interrupt()
        await asyncio.to_thread(house.writer.close)


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _start(house: Services, when_ready: Callable[[Services], None]) -> None:
    """Workers call in while the cluster comes up, so the socket must be listening: `app.__main__` opens it first."""
    await house.engine.start(house.settings.public_url or house.settings.url)
    while missing := await capabilities.what_is_missing(house):
        log.debug("not ready: %s", "; ".join(missing))
        await asyncio.sleep(0.1)
    when_ready(house)


async def _drain(house: Services) -> None:
    """Give what runs a moment to finish; what does not is stopped, and runs again after the next start."""
    deadline = asyncio.get_running_loop().time() + house.settings.drain_seconds
    while await house.reader.run(open_attempts) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.1)
