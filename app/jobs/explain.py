"""Why a job waits, or why it ran where it did, from the same rows the dispatcher decides by."""

from sqlmodel import Session

from app.capabilities import queries as capabilities
from app.control.placing import Candidate, choose, verdict
from app.db.tables import Job
from app.jobs import queries
from app.jobs.schemas import Explanation, WorkerConsidered
from app.jobs.states import State


def explanation(db: Session, job: Job) -> Explanation:
    workers = capabilities.workers_up(db)
    free = capabilities.free_resources(db, workers)
    candidates = [Candidate(worker.id, worker.facts["threads"], free[worker.id]) for worker in workers]
    ahead = queries.ahead_of(db, job) if job.state == State.QUEUED else 0
    considered = [
        WorkerConsidered(id=worker.id, host=worker.facts["host"], free=free[worker.id], verdict=verdict(candidate))
        for worker, candidate in zip(workers, candidates, strict=True)
    ]
    rules = [
        *job.plan["reasons"],
        "Higher priority runs first, and the oldest among equals.",
        "A job takes all computing threads of one worker.",
    ]
    return Explanation(
        state=State(job.state),
        summary=_summary(db, job, candidates, ahead),
        rules=rules,
        jobs_ahead=ahead,
        workers=considered,
    )


def _summary(db: Session, job: Job, candidates: list[Candidate], ahead: int) -> str:
    if job.state != State.QUEUED:
        attempts = queries.attempts_of(db, job.id)
        where = f"attempt {attempts[-1].number} went to worker {attempts[-1].worker_id}" if attempts else "it never ran"
        return f"The job is {job.state}; {where}."
    if not candidates:
        return "It waits because no worker is there; the server's log tells why none has joined."
    if ahead:
        return f"It waits behind {ahead} job(s) of higher priority or greater age."
    if choose(candidates) is None:
        return "It is the next one; it waits because every worker is taken."
    return "It is the next one, and a worker has room: it starts now."
