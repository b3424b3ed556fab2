"""What can be wrong with a job request, as problems with a page each."""

from app.kit.problems import Conflict, Problem, TooManyRequests


class BackendUnavailable(Problem):
    """The backend you asked for cannot run here, and you forbade a fallback.

    Ask `GET /capabilities` for what can, or send `"fallback": "allow"`.
    """

    status, title = 409, "Backend unavailable"


class JobIsFinal(Conflict):
    """The job has already ended, and a final state never changes.

    To run it again, `POST /jobs/{id}/retry` makes a new job of it.
    """

    title = "Job is final"


class JobNotFinal(Conflict):
    """The job has not ended yet, and this needs one that has.

    Cancel it first, or wait for it: `GET /jobs/{id}` with `Prefer: wait=60`.
    """

    title = "Job is not final"


class JobNeeded(Conflict):
    """Another job that has not ended goes on from this one's checkpoint.

    Wait for that job, or cancel it; then delete this one.
    """

    title = "Job is needed"


class NotRetryable(Conflict):
    """Only a failed or cancelled job can be tried again.

    Submit a new one for another result.
    """

    title = "Not retryable"


class NotReady(Conflict):
    """The job has no result (yet).

    While it runs, wait for it with `Prefer: wait=60`; where it failed or was cancelled, its `error` and its log say why.
    """

    title = "Not ready"


class QueueFull(TooManyRequests):
    """As many jobs wait as this server keeps in its queue.

    Send the job again after the seconds in `Retry-After`.
    """

    title = "Queue full"


# What a failed job's `error` names; raised by nobody here, they have their pages.


class Timeout(Problem):
    """The job ran longer than its `timeout_seconds`, all attempts together.

    Submit it again with a longer limit, or with a smaller series.
    """

    status, title = 504, "Time limit exceeded"


class WorkerLost(Problem):
    """The worker that ran the job was lost, as often as `max_attempts` allows.

    Look at the workers' logs, then `POST /jobs/{id}/retry`.
    """

    status, title = 500, "Worker lost"


class OutOfMemory(Problem):
    """The job needed more memory than its worker has.

    Use a shorter series, or a worker with more memory; `POST /jobs/plan` estimates the need beforehand.
    """

    status, title = 500, "Out of memory"


class Unverifiable(Problem):
    """The result did not agree with the definition on the rows that were compared, and could not be mended.

    No wrong result is ever handed out, so the job failed; its `detail` says what was seen. Series with one burst or sentinel far
    beyond all other values do this: send it as missing, or send a shorter stretch.
    """

    status, title = 500, "The result could not be verified"


class GpuFailed(Problem):
    """The GPU of the worker that ran the job, or its driver, failed.

    The `detail` says how, and what to do on that machine; `POST /capabilities/probes` shows whether it works again. Until then,
    `"backend": "cpu"` computes the same.
    """

    status, title = 500, "GPU failed"
