"""The profile so far of a job that has not ended: what its attempt last kept, as a result of its own, with its coverage."""

import asyncio
import contextlib
import logging
import shutil
from pathlib import Path
from typing import Final

from fastapi import Request
from sqlmodel import Session
from starlette.background import BackgroundTask

from app.db.tables import Job
from app.files import Files
from app.jobs import queries
from app.jobs.problems import NotReady
from app.jobs.series import sources_in
from app.jobs.states import State
from app.kit.children import ChildFailed
from app.kit.files import FileAnswer
from app.kit.ids import new_id
from app.kit.negotiation import negotiated
from app.kit.problems import Internal
from app.services import Services
from workers.contract import Source
from workers.operations import CHECKPOINT, OPERATIONS

log = logging.getLogger(__name__)
KIND: Final = "matrix_profile"
"""The one whose tiles are rows of its result."""


async def so_far(
    house: Services, request: Request, job_id: str, owner: str, formats: dict[str, str]
) -> FileAnswer | None:
    """The profile so far, in the format that `Accept` asks for; None of a job that has its whole result.

    formats: media type → name of the file. Raises NotReady where nothing was kept yet, or the kind keeps nothing.
    """

    def query(db: Session) -> tuple[Job, dict[str, list[Source]]] | None:
        job = queries.job_of(db, job_id, owner)
        if job.state == State.SUCCEEDED:
            return None
        if job.kind != KIND or job.plan["implementation"] != "tiles":
            raise NotReady(
                f"The job is {job.state}, and only a {KIND} that is computed in tiles tells its profile so far; this is a "
                f"{job.kind} by {job.plan['implementation']}."
            )
        return job, sources_in(db, house.files, OPERATIONS[KIND], job.params)

    media_type = negotiated(request, tuple(formats))
    output = house.files.job(job_id) / new_id("part")
    await house.reader.run(lambda db: queries.state_of(db, job_id, owner))  # before anything of it is touched
    # Looked for first: a job that ends meanwhile takes it away, and has its whole result then.
    kept = await asyncio.to_thread(_copied, house.files, job_id, output.with_suffix(".checkpoint"))
    try:
        found = await house.reader.run(query)
        if found is None:
            return None
        job, sources = found
        if kept is None:
            raise NotReady(
                f"The job is {job.state} and has computed nothing that could be told yet; ask again in a second."
            )
        coverage = await _written(house, kept, sources, job, media_type, output)
    finally:
        if kept:
            kept.unlink(missing_ok=True)
    return FileAnswer(
        output,
        media_type=media_type,
        headers={"Tidemill-Coverage": f"{coverage:.6f}", "Cache-Control": "no-store", "Vary": "Accept"},
        filename=f"{job_id}-so-far-{formats[media_type]}",
        background=BackgroundTask(output.unlink, missing_ok=True),
    )


def _copied(files: Files, job_id: str, copy: Path) -> Path | None:
    """What the latest attempt kept, or the one before, whose work a new one goes on with, for us alone; None where nothing is there."""
    attempts = [int(each.name) for each in files.job(job_id).glob("*") if each.name.isdecimal()]
    for number in sorted(attempts, reverse=True):
        with contextlib.suppress(FileNotFoundError):
            return Path(shutil.copyfile(files.attempt(job_id, number) / CHECKPOINT, copy))
    return None


async def _written(
    house: Services, kept: Path, sources: dict[str, list[Source]], job: Job, media_type: str, output: Path
) -> float:
    """Have a child write the file. Returns the share of the distance matrix that it is made of."""
    request = {
        "checkpoint": str(kept),
        "params": {name: value for name, value in job.params.items() if name not in sources},
        "sources": {name: [source.model_dump(mode="json") for source in each] for name, each in sources.items()},
        "media_type": media_type,
        "threads": house.settings.worker_threads,
        "output": str(output),
        "max_memory_bytes": house.plots.memory_bytes,
    }
    try:
        answer = await house.plots.run("workers.so_far", request)
    except ChildFailed as failure:
        log.error("the profile so far of %s could not be written: %s", job.id, failure)
        raise Internal("The profile so far could not be written; the server's log says why.") from None
    if error := answer.get("error"):
        log.error("the profile so far of %s could not be written: %s", job.id, error)
        raise Internal(error["detail"])
    return float(answer["ok"]["coverage"])
