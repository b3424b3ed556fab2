"""The HTTP side of jobs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from sqlmodel import Session

from app.callers import Caller, CallerIdentity
from app.db.idempotency import Keyed, remember
from app.db.tables import Event, Job
from app.db.writer import StorageUnavailable
from app.jobs import examples, queries
from app.jobs.address import JobId
from app.jobs.explain import explanation
from app.jobs.follow import EventLog, printed, printing, until_final
from app.jobs.problems import BackendUnavailable, JobIsFinal, JobNotFinal, NotRetryable, QueueFull
from app.jobs.queries import JobFilter
from app.jobs.schemas import Batch, BatchAnswer, EventPage, Explanation, JobRequest, JobView, Plan
from app.jobs.states import FINAL, State
from app.jobs.views import event_view, job_view, listed, retry_after
from app.kit import prefer, sse
from app.kit.catalogue import headers, responses
from app.kit.clock import Rfc3339, rfc3339
from app.kit.conditional import IfNoneMatch, etag, not_modified
from app.kit.cursors import time_cursor
from app.kit.idempotency import IdempotencyKey, StoredAnswer, fingerprint
from app.kit.json_bodies import StrictJSONRoute
from app.kit.middleware import json_only
from app.kit.negotiation import negotiated
from app.kit.pages import Cursor, CursorText, Limit, Page, link_next, page_of
from app.kit.prefer import Wait
from app.kit.problems import (
    CursorInvalid,
    IdempotencyKeyReused,
    InvalidInput,
    NotAcceptable,
    NotFound,
    RequestInFlight,
    UnsupportedMediaType,
)
from app.kit.sse import After
from app.kit.strict_json import StrictJSONResponse
from app.services import Services, services

router = APIRouter(prefix="/jobs", tags=["jobs"], dependencies=[Depends(json_only)], route_class=StrictJSONRoute)
House = Annotated[Services, Depends(services)]
ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {
        "model": JobView,
        "description": "Accepted, durably; follow `Location`.",
        "headers": headers("Location", "ETag", "Retry-After", "Preference-Applied", "Idempotency-Replayed"),
    },
    200: {
        "model": JobView,
        "description": "Final within the `Prefer: wait` that was asked for.",
        "headers": headers("Location", "ETag", "Preference-Applied", "Idempotency-Replayed"),
    },
}
CREATING = (QueueFull, IdempotencyKeyReused, RequestInFlight, BackendUnavailable, InvalidInput, StorageUnavailable)
SUBMITTING = responses(*CREATING, UnsupportedMediaType)


def answer_of(job: Job, status: int, wait: float | None = None) -> Response:
    """A job as a response, with all the headers it has at any address."""
    response = StrictJSONResponse(job_view(job).model_dump(mode="json"), status)
    response.headers.update({"ETag": etag(job.version), **retry_after(job, accepted=status == 202)})
    if wait is not None:
        response.headers["Preference-Applied"] = prefer.applied(wait)
    return response


def new_job(job: Job, status: int, wait: float | None = None) -> Response:
    """The answer to the request that made the job."""
    response = answer_of(job, status, wait)
    response.headers["Location"] = f"/jobs/{job.id}"
    return response


async def keyed_by(request: Request, caller: CallerIdentity, key: str | None) -> Keyed | None:
    if key is None:
        return None
    path = request.url.path
    return Keyed(caller.name, f"POST {path}", key, fingerprint("POST", path, await request.body()))


async def made(
    house: Services,
    owner: str,
    wait: float | None,
    keyed: Keyed | None,
    make: Callable[[Callable[[list[Job]], Response]], Awaitable[Response]],
) -> Response:
    """Run `make`, which creates one job, and wait for it as long as was asked."""
    response = await make(lambda jobs: new_job(jobs[0], 202))
    if wait is None or "idempotency-replayed" in response.headers:
        return response
    job_id = response.headers["location"].rpartition("/")[2]
    job = await until_final(house.reader, house.changes, house.stopping, job_id, owner, wait)
    response = new_job(job, 200 if job.state in FINAL else 202, wait)
    if keyed:  # what the caller gets now is the answer that a repeat will get again
        answer = StoredAnswer.of(response)
        await house.writer.run(lambda db: remember(db, keyed, answer))
    return response


@router.post("", status_code=202, response_model=JobView, responses={**ACCEPTED, **SUBMITTING})
async def submit_job(
    body: Annotated[JobRequest, Body(openapi_examples=examples.MATRIX_PROFILE)],
    request: Request,
    house: House,
    caller: Caller,
    key: IdempotencyKey,
    wait: Wait,
) -> Response:
    """Submit a job. 202 means it is on the disk: from here on it ends exactly once, whatever is restarted meanwhile.

    A series may be sent along as `{"values": […]}`, as the examples do, or be a stretch of an uploaded dataset:
    `{"kind": "matrix_profile", "params": {"series": {"dataset": "ds_…", "column": "co2", "start": 0, "stop": 2000}, "window": 52}}`.
    """
    keyed = await keyed_by(request, caller, key)
    return await made(
        house, caller.name, wait, keyed, lambda answer: house.jobs.submit([body], caller.name, keyed, answer)
    )


@router.post("/plan", responses=responses(InvalidInput, UnsupportedMediaType, BackendUnavailable))
async def plan_job(
    body: Annotated[JobRequest, Body(openapi_examples=examples.MATRIX_PROFILE)],
    house: House,
    caller: Caller,
) -> Plan:
    """Check a job and say where it would run, how long and with how much memory. Starts nothing."""
    return await house.jobs.plan(body, caller.name)


@router.post(
    "/batch",
    status_code=202,
    response_model=BatchAnswer,
    responses={202: {"headers": headers("Retry-After", "Idempotency-Replayed")}, **SUBMITTING},
)
async def submit_batch(
    body: Annotated[Batch, Body(openapi_examples=examples.BATCH)],
    request: Request,
    house: House,
    caller: Caller,
    key: IdempotencyKey,
) -> Response:
    """Submit up to 1,000 jobs, all or none."""

    def answer(jobs: list[Job]) -> Response:
        return StrictJSONResponse({"jobs": [{"id": job.id} for job in jobs]}, 202, {"Retry-After": "1"})

    keyed = await keyed_by(request, caller, key)
    return await house.jobs.submit(body.jobs, caller.name, keyed, answer, batch=True)


@router.get("", response_model=Page[JobView], responses={200: {"headers": headers("Link")}, **responses(CursorInvalid)})
async def list_jobs(
    request: Request,
    response: Response,
    house: House,
    caller: Caller,
    limit: Limit,
    cursor: CursorText,
    state: Annotated[list[State] | None, Query(description="Only jobs in these states.")] = None,
    kind: Annotated[list[str] | None, Query(description="Only jobs of these kinds.", max_length=16)] = None,
    label: Annotated[
        list[str] | None, Query(description="Only jobs with these labels, each `name:value`.", max_length=16)
    ] = None,
    created_after: Annotated[Rfc3339 | None, Query(description="Only jobs made after this moment.")] = None,
    created_before: Annotated[Rfc3339 | None, Query(description="Only jobs made before it.")] = None,
) -> Page[JobView]:
    """Your jobs, newest first. Of long `values` sent along, a list shows the first 20, and `values_total` says how many there are."""
    labels = [_label(text) for text in label or ()]
    filters = {"state": state, "kind": kind, "label": label, "after": created_after, "before": created_before}
    after = time_cursor(cursor, filters)
    wanted = JobFilter(tuple(state or ()), tuple(kind or ()), labels, created_after, created_before)
    rows = await house.reader.run(lambda db: queries.newest_jobs(db, caller.name, wanted, limit, after))
    page = page_of(rows, limit, lambda job: (rfc3339(job.created_at), job.id), filters)
    link_next(request, response, page.next)
    return Page(items=[listed(job) for job in page.rows], next=page.next)


def _label(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name:
        raise InvalidInput(f"A label filter is `name:value`, not {text!r}.", pointer="/query/label")
    return name, value


@router.get(
    "/{job_id:job}",
    response_model=JobView,
    dependencies=[IfNoneMatch],
    responses={
        200: {"headers": headers("ETag", "Retry-After", "Preference-Applied")},
        304: {"description": "Not modified since the `ETag` in `If-None-Match`.", "headers": headers("ETag")},
        **responses(NotFound),
    },
)
async def get_job(job_id: JobId, request: Request, house: House, caller: Caller, wait: Wait) -> Response:
    """A job as it is; with `Prefer: wait=N`, as it is once it is final."""
    job = await until_final(house.reader, house.changes, house.stopping, job_id, caller.name, wait or 0)
    answer = answer_of(job, 200, wait)
    kept = {name: answer.headers[name] for name in ("Retry-After", "Preference-Applied") if name in answer.headers}
    return not_modified(request, answer.headers["ETag"], kept) or answer


@router.get("/{job_id:job}/explain", responses=responses(NotFound))
async def explain_job(job_id: JobId, house: House, caller: Caller) -> Explanation:
    """Why it waits, or why it ran where it did."""
    return await house.reader.run(lambda db: explanation(db, queries.job_of(db, job_id, caller.name)))


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
) -> StreamingResponse:
    """What the job printed."""
    await house.reader.run(lambda db: queries.state_of(db, job_id, caller.name))
    lines: AsyncIterator[bytes] = printed(house.files, job_id)
    if follow:
        lines = printing(EventLog(house.reader, house.changes, job_id), house.files, house.stopping, job_id)
    return StreamingResponse(lines, media_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-cache"})


@router.post(
    "/{job_id:job}/cancel",
    status_code=202,
    response_model=JobView,
    responses={
        202: {"description": "It is being stopped.", "headers": headers("ETag", "Retry-After")},
        200: {"model": JobView, "description": "It had been cancelled already.", "headers": headers("ETag")},
        **responses(NotFound, JobIsFinal, StorageUnavailable),
    },
)
async def cancel_job(job_id: JobId, house: House, caller: Caller) -> Response:
    """Stop a job. Its work ends within ten seconds, whatever it is doing."""
    job, before = await house.jobs.cancel(job_id, caller.name)
    return answer_of(job, 200 if before else 202)


@router.post(
    "/{job_id:job}/retry",
    status_code=202,
    response_model=JobView,
    responses={**ACCEPTED, **responses(NotFound, NotRetryable, *CREATING)},
)
async def retry_job(
    job_id: JobId, request: Request, house: House, caller: Caller, key: IdempotencyKey, wait: Wait
) -> Response:
    """A new job with the same body as this failed or cancelled one."""
    keyed = await keyed_by(request, caller, key)
    return await made(
        house, caller.name, wait, keyed, lambda answer: house.jobs.retry(job_id, caller.name, keyed, answer)
    )


@router.delete("/{job_id:job}", status_code=204, responses=responses(NotFound, JobNotFinal, StorageUnavailable))
async def delete_job(job_id: JobId, house: House, caller: Caller) -> None:
    """Delete a final job, with its log and its files."""
    await house.jobs.delete(job_id, caller.name)
