"""Jobs as responses, and the one way in which requests that make a job are answered, awaited and answered again."""

from collections.abc import Awaitable, Callable

from fastapi import Request, Response

from app.callers import CallerIdentity
from app.db.idempotency import Keyed, remember
from app.db.tables import Job
from app.jobs.follow import until_final
from app.jobs.states import FINAL
from app.jobs.views import job_view, retry_after
from app.kit import prefer
from app.kit.conditional import etag
from app.kit.idempotency import StoredAnswer, fingerprint
from app.kit.strict_json import StrictJSONResponse
from app.services import Services


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
