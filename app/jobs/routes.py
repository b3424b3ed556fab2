"""The HTTP side of jobs."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response

from app.callers import Caller, CallerIdentity, Scope, Submitter
from app.db.tables import Job
from app.db.writer import StorageUnavailable
from app.jobs import examples, queries
from app.jobs.address import JobId
from app.jobs.answers import answer_of, keyed_by, made
from app.jobs.follow import until_final
from app.jobs.problems import BackendUnavailable, JobIsFinal, JobNeeded, JobNotFinal, NotRetryable, QueueFull
from app.jobs.queries import JobFilter
from app.jobs.requests import Batch, JobRequest, TrainingJob
from app.jobs.schemas import BatchAnswer, JobView, Plan
from app.jobs.states import State
from app.jobs.views import listed
from app.kit.catalogue import headers, responses
from app.kit.clock import Rfc3339, rfc3339
from app.kit.conditional import IfNoneMatch, not_modified
from app.kit.cursors import time_cursor
from app.kit.idempotency import IdempotencyKey
from app.kit.json_bodies import StrictJSONRoute
from app.kit.middleware import json_only
from app.kit.pages import CursorText, Limit, Page, link_next, page_of
from app.kit.prefer import Wait
from app.kit.problems import (
    CursorInvalid,
    IdempotencyKeyReused,
    InvalidInput,
    NotFound,
    RequestInFlight,
    UnsupportedMediaType,
)
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


CODE = "A job with a `source`"


def refuse_code(caller: CallerIdentity, requests: Iterable[JobRequest]) -> None:
    """Raise Forbidden where a job would run uploaded code and the caller's key is not for that."""
    if any(isinstance(request, TrainingJob) and request.params.source is not None for request in requests):
        caller.demand(Scope.SOURCE, CODE)


@router.post("", status_code=202, response_model=JobView, responses={**ACCEPTED, **SUBMITTING})
async def submit_job(
    body: Annotated[JobRequest, Body(openapi_examples=examples.JOBS)],
    request: Request,
    house: House,
    caller: Submitter,
    key: IdempotencyKey,
    wait: Wait,
) -> Response:
    """Submit a job. 202 means it is on the disk: from here on it ends exactly once, whatever is restarted meanwhile.

    A series may be sent along as `{"values": […]}`, as the examples do, or be a stretch of an uploaded dataset:
    `{"kind": "matrix_profile", "params": {"series": {"dataset": "ds_…", "column": "co2", "start": 0, "stop": 2000}, "window": 52}}`.
    """
    refuse_code(caller, [body])
    keyed = await keyed_by(request, caller, key)
    return await made(
        house, caller.name, wait, keyed, lambda answer: house.jobs.submit([body], caller.name, keyed, answer)
    )


@router.post("/plan", responses=responses(InvalidInput, UnsupportedMediaType, BackendUnavailable))
async def plan_job(
    body: Annotated[JobRequest, Body(openapi_examples=examples.JOBS)],
    house: House,
    caller: Submitter,
) -> Plan:
    """Check a job and say where it would run, how long and with how much memory. Starts nothing."""
    refuse_code(caller, [body])
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
    caller: Submitter,
    key: IdempotencyKey,
) -> Response:
    """Submit up to 1,000 jobs, all or none."""

    def answer(jobs: list[Job]) -> Response:
        return StrictJSONResponse({"jobs": [{"id": job.id} for job in jobs]}, 202, {"Retry-After": "1"})

    refuse_code(caller, body.jobs)
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
async def cancel_job(job_id: JobId, house: House, caller: Submitter) -> Response:
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
    job_id: JobId, request: Request, house: House, caller: Submitter, key: IdempotencyKey, wait: Wait
) -> Response:
    """A new job with the same body as this failed or cancelled one."""
    if not caller.may(Scope.SOURCE) and await house.jobs.runs_code(job_id, caller.name):
        caller.demand(Scope.SOURCE, CODE)
    keyed = await keyed_by(request, caller, key)
    return await made(
        house, caller.name, wait, keyed, lambda answer: house.jobs.retry(job_id, caller.name, keyed, answer)
    )


@router.delete(
    "/{job_id:job}", status_code=204, responses=responses(NotFound, JobNotFinal, JobNeeded, StorageUnavailable)
)
async def delete_job(job_id: JobId, house: House, caller: Submitter) -> None:
    """Delete a final job, with its log and its files."""
    await house.jobs.delete(job_id, caller.name)
