"""The application: routers, handlers, lifespan; nothing else."""

import contextlib
import re
import socket
from collections.abc import AsyncIterator, Callable
from importlib import metadata
from typing import Final
from urllib.parse import urlsplit

from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline
from starlette.datastructures import State

from app import docs
from app.capabilities import routes as capabilities
from app.control import door, files_door
from app.control.admission import admitted
from app.datasets import routes as datasets
from app.jobs import routes as jobs
from app.jobs import watching
from app.keys import routes as keys
from app.keys.doorkeeper import Doorkeeper
from app.kit import catalogue, handlers, middleware
from app.kit.known_query import only_known_query
from app.kit.own_hosts import is_loopback
from app.life import Life
from app.results import routes as results
from app.services import Services, build
from app.settings import Settings
from app.sources import routes as sources
from app.training import problems as problems  # what workers name has its page

MAX_REPORT_BYTES: Final = 256 << 20
"""Largest body at the workers' door: what they report is ours, and must not be refused for its size."""
FILES_OF_AN_ATTEMPT: Final = re.compile(r"/internal/attempts/[^/]+/files/")
"""What is sent there is of any size, and is written as it comes."""

DESCRIPTION = """
Matrix-profile and training jobs on a long-lived cluster: upload a series once, submit jobs, watch them, download results.

**Your first job:** open `POST /jobs`, the first line below, and press *Execute*: the example runs as it stands. Copy the `id` of the
answer into `GET /jobs/{job_id}/result` for the profile, or into `GET /jobs/{job_id}/plot` for a picture of it.

**Your own series:** `POST /datasets` takes a CSV, TSV, Parquet, NPY, NPZ or JSON file; a job then names it as
`{"dataset": "ds_…", "column": "…"}`.

**A model of it, without code:** the example *Train a forecaster* of `POST /jobs`; put your own reference in the place of its `values`.
`GET /jobs/{job_id}/plot` shows what it learned, and a job with `"stage": "predict"` and its checkpoint in `ckpt_path` says what comes next.

Errors are `application/problem+json`; their `type` is a link that explains them, and `GET /problems` lists them all.
"""

TAGS = [
    {"name": "jobs", "description": "Submit, watch, cancel, retry, delete."},
    {"name": "results", "description": "The profile in four formats, the files, the plot."},
    {"name": "datasets", "description": "Upload a series once, refer to it in many jobs."},
    {
        "name": "sources",
        "description": "Packages of your own code for training jobs, where the server's operator allows them.",
    },
    {"name": "keys", "description": "Who may use this server, where it runs with `AUTH=keys`."},
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
        dependencies=[Depends(only_known_query)],
    )
    handlers.install(app)
    app.add_middleware(Doorkeeper, asks=settings.auth == "keys", workers=admitted)
    middleware.install(
        app,
        max_body_bytes=settings.max_body_bytes,
        exempt=lambda path: path in ("/datasets", "/sources") or path.startswith("/internal/"),
        own_hosts=own_hosts(settings),
        page_hosts=page_hosts(settings),
        any_address=not is_loopback(settings.host),
    )
    app.add_middleware(
        middleware.BodyLimit,
        max_body_bytes=MAX_REPORT_BYTES,
        exempt=lambda path: not path.startswith("/internal/") or FILES_OF_AN_ATTEMPT.match(path) is not None,
    )
    for room in (jobs, watching, results, datasets, sources, keys, capabilities, door, files_door):
        app.include_router(room.router)
    catalogue.install(app)
    docs.install(app)
    if settings.auth == "off":
        docs.say_that_keys_are_optional(app)
    return app


def own_hosts(settings: Settings) -> list[str]:
    """The names under which the server answers, beside those of loopback."""
    here = None if is_loopback(settings.host) else socket.gethostname()
    return list(filter(None, [settings.host, here, *page_hosts(settings)]))


def page_hosts(settings: Settings) -> list[str]:
    """Those of them that somebody chose for a proxy, and whose pages are the server's own at any port."""
    said = [name.strip() for name in (settings.allowed_hosts or "").split(",")]
    return list(filter(None, [urlsplit(settings.public_url or "").hostname, *said]))


@contextlib.asynccontextmanager
async def _lifespan(state: State, settings: Settings, when_ready: Callable[[Services], None]) -> AsyncIterator[None]:
    """Everything between the first request and the last is `app.life`."""
    house = build(settings)
    life = Life(house)
    state.services, state.life = house, life
    await life.start(lambda: when_ready(house))
    try:
        yield
    finally:
        await life.end()
