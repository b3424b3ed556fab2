"""The HTTP side of watching a job: why it waits, what happened, what it printed."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from sqlmodel import Session

from app.callers import Caller
from app.db.tables import Event
from app.jobs import queries
from app.jobs.address import JobId
from app.jobs.explain import explanation
from app.jobs.follow import LOG_FILE, EventLog, log_files, printed, printing
from app.jobs.schemas import EventPage, Explanation
from app.jobs.states import FINAL
from app.jobs.views import event_view
from app.kit import sse
from app.kit.catalogue import headers, responses
from app.kit.negotiation import negotiated
from app.kit.pages import Cursor, CursorText, Limit, link_next, page_of
from app.kit.problems import (
    CursorInvalid,
    NotAcceptable,
    NotFound,
)
from app.kit.sse import After
from app.kit.strict_json import StrictJSONResponse
from app.services import Services, services

router = APIRouter(prefix="/jobs", tags=["jobs"])
House = Annotated[Services, Depends(services)]


@router.get("/{job_id:job}/explain", responses=responses(NotFound))
async def explain_job(job_id: JobId, house: House, caller: Caller) -> Explanation:
    """Why it waits, or why it ran where it did."""
    away = set(house.engines) - house.engines.up()
    return await house.reader.run(lambda db: explanation(db, queries.job_of(db, job_id, caller.name), away))


@router.get(
    "/{job_id:job}/events",
    response_model=EventPage,
    responses={
        200: {
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": "A page, or a stream of the log.",
            "headers": headers("Link"),
        },
        **responses(NotFound, NotAcceptable, CursorInvalid),
    },
)
async def list_job_events(
    job_id: JobId, request: Request, house: House, caller: Caller, after: After, limit: Limit, cursor: CursorText
) -> Response:
    """The job's ordered log: a JSON page, or with `Accept: text/event-stream` a stream that ends with an `end` event."""
    await house.reader.run(lambda db: queries.state_of(db, job_id, caller.name))
    if negotiated(request, ("application/json", "text/event-stream")) == "text/event-stream":
        source = EventLog(house.reader, house.changes, job_id)
        return sse.stream(request, source, after=after, stopping=house.stopping)
    if cursor is not None:
        (seq,) = Cursor.decode(cursor, {"job": job_id}, types=(int,)).key
        after = int(seq or 0)

    def query(db: Session) -> list[Event]:
        return list(queries.events_after(db, job_id, after, limit + 1))

    page = page_of(await house.reader.run(query), limit, lambda event: (event.seq,), {"job": job_id})
    body = EventPage(items=[event_view(event) for event in page.rows], next=page.next)
    response = StrictJSONResponse(body.model_dump(mode="json"), headers={"Vary": "Accept"})
    link_next(request, response, page.next)
    return response


@router.get(
    "/{job_id:job}/logs",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **responses(NotFound)},
)
async def get_job_logs(
    job_id: JobId,
    house: House,
    caller: Caller,
    follow: Annotated[bool, Query(description="Stream until the job is final.")] = False,
    rank: Annotated[
        int | None, Query(ge=0, le=100_000, description="Of a training job: what this rank alone printed.")
    ] = None,
) -> StreamingResponse:
    """What the job printed; of a training job, what all its ranks did, each line with its rank."""
    state = await house.reader.run(lambda db: queries.state_of(db, job_id, caller.name))
    name = LOG_FILE if rank is None else f"rank-{rank}.log"
    if rank is not None and state in FINAL and not log_files(house.files, job_id, name):
        raise NotFound(f"The job has no log of a rank {rank}.")
    lines: AsyncIterator[bytes] = printed(house.files, job_id, name)
    if follow:
        log = EventLog(house.reader, house.changes, job_id)
        lines = printing(log, house.files, house.stopping, job_id, name)
    return StreamingResponse(lines, media_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-cache"})
