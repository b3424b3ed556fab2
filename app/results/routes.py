"""The HTTP side of results: the profile in four formats, the artifacts, the plot."""

import asyncio
import logging
import os
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel
from sqlmodel import Session

from app.callers import Caller
from app.db.tables import ArtifactRow, Job
from app.jobs import queries
from app.jobs.address import JobId
from app.jobs.problems import NotReady
from app.jobs.requests import PROBE
from app.jobs.series import sources_in
from app.jobs.states import State
from app.kit.catalogue import responses
from app.kit.children import ChildFailed
from app.kit.clock import Rfc3339
from app.kit.files import FileAnswer, Range
from app.kit.ids import new_id
from app.kit.negotiation import negotiated
from app.kit.pages import Cursor, CursorText, Limit, Page, link_next, page_of
from app.kit.problems import CursorInvalid, Internal, NotAcceptable, NotFound, RangeNotSatisfiable
from app.results.so_far import so_far
from app.services import Services, services
from workers.contract import Source
from workers.operations import OPERATIONS

log = logging.getLogger(__name__)
router = APIRouter(prefix="/jobs/{job_id:job}", tags=["results"])
House = Annotated[Services, Depends(services)]

RESULT_FILES = {
    "application/json": "result.json",
    "text/csv": "result.csv",
    "application/vnd.apache.parquet": "result.parquet",
    "application/x-npz": "result.npz",
}
MOST_PLOTS = 8
"""Kept of one job, in all sizes and formats."""
PLOT_FORMATS = {"image/png": "png", "image/svg+xml": "svg"}
BINARY = {"schema": {"type": "string", "format": "binary"}}
ANY_FILE: dict[str, dict[str, Any]] = {"*/*": {}}


class ArtifactView(BaseModel):
    """A file that a job left."""

    name: str
    bytes: int
    sha256: str
    media_type: str
    created_at: Rfc3339
    link: str


def succeeded(db: Session, job_id: str, owner: str) -> None:
    """Raise NotReady unless the job has a result, and NotFound where it is not of a kind that leaves one."""
    state = queries.state_of(db, job_id, owner)
    if queries.kind_of(db, job_id) == PROBE:
        raise NotFound(
            f"A job that probes leaves no file and no plot: what it found is in `result` of `GET /jobs/{job_id}`, and in "
            "`GET /capabilities`."
        )
    if state is not State.SUCCEEDED:
        raise NotReady(f"The job is {state}; only a succeeded one has a result.")


@router.get("/artifacts", responses=responses(NotFound, CursorInvalid))
async def list_artifacts(
    job_id: JobId, request: Request, response: Response, house: House, caller: Caller, limit: Limit, cursor: CursorText
) -> Page[ArtifactView]:
    """The files the job left, by name, each with its size and hash."""
    after = "" if cursor is None else str(Cursor.decode(cursor, {"job": job_id}, types=(str,)).key[0])

    def query(db: Session) -> list[ArtifactRow]:
        queries.state_of(db, job_id, caller.name)
        return [row for row in queries.artifacts_of(db, job_id) if row.name > after]

    page = page_of((await house.reader.run(query))[: limit + 1], limit, lambda row: (row.name,), {"job": job_id})
    link_next(request, response, page.next)
    views = [ArtifactView(**row.model_dump(), link=f"/jobs/{job_id}/artifacts/{row.name}") for row in page.rows]
    return Page(items=views, next=page.next)


@router.get(
    "/artifacts/{name:path}",
    response_class=FileAnswer,
    dependencies=[Range],
    responses={
        200: {"content": ANY_FILE},
        206: {"content": ANY_FILE, "description": "The `Range` that was asked for."},
        **responses(NotFound, RangeNotSatisfiable),
    },
)
async def get_artifact(
    job_id: JobId, name: Annotated[str, Path(description="The artifact's name.")], house: House, caller: Caller
) -> FileAnswer:
    """One of its files, or a `Range` of it."""

    def query(db: Session) -> ArtifactRow | None:
        queries.state_of(db, job_id, caller.name)
        return db.get(ArtifactRow, (job_id, name))

    return file_of(house, job_id, await house.reader.run(query), name)


def file_of(house: Services, job_id: str, row: ArtifactRow | None, name: str) -> FileAnswer:
    if row is None:
        raise NotFound(f"The job has no artifact {name!r}; `GET /jobs/{job_id}/artifacts` lists those it has.")
    fields = {"ETag": f'"{row.sha256[:32]}"', "X-Content-Type-Options": "nosniff", "Vary": "Accept"}
    file_name = f"{job_id}-{row.name.rpartition('/')[2]}"
    return FileAnswer(house.files.job(job_id) / row.path, media_type=row.media_type, headers=fields, filename=file_name)


@router.get(
    "/result",
    response_class=FileAnswer,
    responses={
        200: {"content": {**dict.fromkeys(RESULT_FILES, BINARY), "application/json": {"schema": {"type": "object"}}}},
        **responses(NotFound, NotReady, NotAcceptable),
    },
)
async def get_result(
    job_id: JobId,
    request: Request,
    house: House,
    caller: Caller,
    partial: Annotated[
        bool,
        Query(
            description="Before the job has succeeded, the profile so far, of a `matrix_profile` in tiles: distances from above, with "
            "`coverage`, the share of the distance matrix that they are made of."
        ),
    ] = False,
) -> FileAnswer:
    """The whole result, in the format that `Accept` asks for: JSON, CSV, Parquet or NPZ; tables of a training job are its predictions,
    or else what it logged. The header `Tidemill-Coverage` of a profile so far says its coverage too."""
    if partial and (found := await so_far(house, request, job_id, caller.name, RESULT_FILES)):
        return found
    await house.reader.run(lambda db: succeeded(db, job_id, caller.name))
    name = RESULT_FILES[negotiated(request, tuple(RESULT_FILES))]
    return file_of(house, job_id, await house.reader.run(lambda db: db.get(ArtifactRow, (job_id, name))), name)


@router.get(
    "/plot",
    response_class=FileAnswer,
    responses={200: {"content": dict.fromkeys(PLOT_FORMATS, BINARY)}, **responses(NotFound, NotReady, NotAcceptable)},
)
async def get_plot(
    job_id: JobId,
    request: Request,
    house: House,
    caller: Caller,
    width: Annotated[int, Query(ge=200, le=4000, description="Pixels.")] = 1200,
    height: Annotated[int, Query(ge=150, le=4000, description="Pixels.")] = 700,
) -> FileAnswer:
    """A picture of the result: the series with what was found in them, and the profile where the kind has one; of a training job, what
    it logged.

    Over time where the dataset has times; motifs, discords and consensus are marked.
    """
    await house.reader.run(lambda db: succeeded(db, job_id, caller.name))
    media_type = negotiated(request, tuple(PLOT_FORMATS))
    kind = PLOT_FORMATS[media_type]
    path = house.files.job(job_id) / "plots" / f"{width}x{height}.{kind}"
    if not path.exists():
        job = await house.jobs.get(job_id, caller.name)
        await _draw(house, job, kind, width, height, path)
    return FileAnswer(path, media_type=media_type, headers={"Vary": "Accept"})


async def _draw(house: Services, job: Job, kind: str, width: int, height: int, path: FilePath) -> None:
    operation = OPERATIONS.get(job.kind)  # None of a training job, whose series are no part of the picture
    drawn = "result.npz" if operation else "metrics.csv"

    def query(db: Session) -> tuple[ArtifactRow, dict[str, list[Source]]]:
        row = db.get(ArtifactRow, (job.id, drawn))
        if row is None:
            raise NotFound(f"The job left no {drawn} to draw.")
        return row, sources_in(db, house.files, operation, job.params) if operation else {}

    row, sources = await house.reader.run(query)
    folder = path.parent
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    # Drawn under a name of its own and then renamed, so that two who ask at once never see half a file.
    partial = str(folder / f"{new_id('plot')}.{kind}")
    request = {
        "kind": job.kind,
        "params": {name: value for name, value in job.params.items() if name not in operation.series}
        if operation
        else {},
        "sources": {name: [source.model_dump(mode="json") for source in each] for name, each in sources.items()},
        "result": str(house.files.job(job.id) / row.path),
        "summary": job.result,
        "format": kind,
        "width": width,
        "height": height,
        "output": partial,
        "max_memory_bytes": house.plots.memory_bytes,
    }
    try:
        answer = await house.plots.run("workers.plot", request)
        if error := answer.get("error"):
            log.error("drawing %s failed: %s", path, error)
            raise Internal(error["detail"])
        await asyncio.to_thread(_keep, partial, path)
    except ChildFailed as failure:
        log.error("drawing %s failed: %s", path, failure)
        raise Internal("Drawing the plot failed; the server's log says why.") from None
    finally:
        FilePath(partial).unlink(missing_ok=True)


def _keep(partial: str, path: FilePath) -> None:
    """Put a new plot into its place; the oldest beyond `MOST_PLOTS` go."""
    os.replace(partial, path)
    kept = sorted(path.parent.glob("[0-9]*x[0-9]*.*"), key=lambda plot: plot.stat().st_mtime, reverse=True)
    for plot in kept[MOST_PLOTS:]:
        plot.unlink(missing_ok=True)
