"""The life of an attempt in the database: placed, claimed, ended; and what its end means for the job.

Every function here runs inside a write unit. What an execution reports is taken only under the claim it was granted (decision 4).
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session

from app.control.placing import Choice, after, next_of
from app.control.queries import candidates, free_leases, head_of, waiting_demands
from app.db.tables import ArtifactRow, Attempt, Job, Lease
from app.db.writer import touch
from app.jobs import queries, states
from app.jobs.estimates import estimate_error
from app.jobs.states import FINAL, State
from app.kit.clock import now
from app.kit.ids import new_id
from app.kit.problems import Conflict, NotFound
from workers.contract import Claim, EventType, Outcome, ReportedEvent, Running

EVENT_OF_END = {
    "succeeded": states.Event.SUCCEEDED,
    "failed": states.Event.FAILED,
    "stopped": states.Event.STOPPED,
}


class ClaimRefused(Conflict):
    """This attempt is not to be run by whoever asked: another execution holds it, or it has ended."""


def place_waiting(db: Session, engines: Collection[str]) -> list[Attempt]:
    """Give waiting jobs to workers of these engines: the highest priority first, the oldest among equals, of those that have room.

    A job that no worker has room for now is passed by, so that one which waits for a GPU keeps nobody else waiting.
    """
    workers = candidates(db, engines)
    heads = {demand: head for demand in waiting_demands(db) if (head := head_of(db, demand))}
    placed: list[Attempt] = []
    while found := next_of(heads, workers):
        demand, choice = found
        placed.append(_place(db, db.get_one(Job, heads[demand].job_id), choice))
        workers = after(choice, workers)
        if head := head_of(db, demand):
            heads[demand] = head
        else:
            del heads[demand]
    return placed


def _place(db: Session, job: Job, choice: Choice) -> Attempt:
    """All of it or nothing: an attempt and its leases on every worker of its gang are one transaction."""
    job.attempt += 1
    job.started_at = job.started_at or now()
    job.phase = "starting"
    home = choice.worker_id
    attempt = Attempt(
        id=new_id("att"), job_id=job.id, number=job.attempt, worker_id=home, state="placed", placed_at=now()
    )
    db.add(attempt)
    db.flush()
    db.add_all(
        Lease(attempt_id=attempt.id, worker_id=share.worker_id, resource=resource, amount=amount, node=node)
        for node, share in enumerate(choice.shares)
        for resource, amount in share.needs.items()
        if amount
    )
    several = len(choice.shares) > 1
    gang: dict[str, Any] = {"workers": [share.worker_id for share in choice.shares]} if several else {}
    queries.apply(db, job, states.Event.DISPATCHED, attempt=job.attempt, worker=home, **gang)
    return attempt


def claim(db: Session, attempt_id: str, asked: Claim) -> tuple[Attempt, Job]:
    """Grant the one claim of an attempt; asking again with the same nonce is granted again. Raises ClaimRefused."""
    attempt = db.get(Attempt, attempt_id)
    if attempt is None:
        raise NotFound(f"There is no attempt {attempt_id!r}.")
    job = db.get_one(Job, attempt.job_id)
    if attempt.state == "claimed" and attempt.claim == asked.nonce:
        return attempt, job
    if attempt.state != "placed":
        raise ClaimRefused(f"The attempt is {attempt.state}; another execution ran or runs it.")
    if job.state != State.RUNNING:
        raise ClaimRefused(f"The job is {job.state}.")
    if attempt.worker_id != asked.worker:
        raise ClaimRefused(f"The attempt was placed on worker {attempt.worker_id}.")
    attempt.state, attempt.claim, attempt.claimed_at = "claimed", asked.nonce, now()
    db.add(attempt)
    return attempt, job


def refuse(db: Session, attempt: Attempt, job: Job, why: str) -> None:
    """What a claimed attempt needs is gone: there is nothing to run, now or later, and the job fails."""
    error = {
        "type": "/problems/invalid-input",
        "title": "Invalid input",
        "status": 422,
        "detail": f"{why} It was there when the job was accepted, and has been deleted since.",
        "instance": f"/jobs/{job.id}",
    }
    end(db, attempt, "failed")
    queries.apply(db, job, states.Event.FAILED, error=error, attempt=attempt.number)


def _held(db: Session, attempt_id: str, nonce: str) -> Attempt | None:
    """The attempt, if it runs under this very claim."""
    attempt = db.get(Attempt, attempt_id)
    return attempt if attempt and attempt.state == "claimed" and attempt.claim == nonce else None


def attempt_held(db: Session, attempt_id: str, nonce: str) -> Attempt:
    """An attempt that runs under this claim. Raises ClaimRefused."""
    attempt = _held(db, attempt_id, nonce)
    if attempt is None:
        raise ClaimRefused("The attempt does not run under this claim.")
    return attempt


def job_held(db: Session, attempt_id: str, nonce: str) -> Job:
    """The job of such an attempt. Raises ClaimRefused."""
    return db.get_one(Job, attempt_held(db, attempt_id, nonce).job_id)


def accept_event(db: Session, event: ReportedEvent) -> None:
    """Take an event into the job's log, once, and only under the claim."""
    attempt = _held(db, event.attempt, event.claim)
    if attempt is None or event.number <= attempt.events_seen:
        return
    job = db.get_one(Job, attempt.job_id)
    attempt.events_seen = event.number
    db.add(attempt)
    if job.state in FINAL:
        return
    match event.type:
        case EventType.PHASE if job.state == State.RUNNING:
            job.phase = str(event.data.get("phase", job.phase))
        case EventType.PROGRESS:
            job.progress = event.data
    queries.append_event(db, job, event.type, event.data, at=event.at)


def accept_outcome(db: Session, outcome: Outcome) -> None:
    """Take an outcome: the attempt ends, and the job with it. One without the claim changes nothing."""
    attempt = _held(db, outcome.attempt, outcome.claim)
    if attempt is None:
        return
    if outcome.end == "lost":
        lose(db, attempt, states.Event.WORKER_LOST, str((outcome.error or {}).get("detail", "Its worker gave it up.")))
        return
    end(db, attempt, outcome.end)
    job = db.get_one(Job, attempt.job_id)
    # Also of one that was stopped or failed, and of a job whose time ran out: checkpoints and metrics are worth having.
    if outcome.end != "succeeded" or job.state == State.RUNNING:
        _keep_artifacts(db, job, attempt, outcome)
    if job.state in FINAL:
        return
    event = EVENT_OF_END[outcome.end]
    if outcome.end == "succeeded" and job.state == State.RUNNING:
        job.result, job.provenance = outcome.summary, outcome.provenance
        job.progress = {**job.progress, "fraction": 1.0}
        job.plan = with_truth(job.plan, outcome.provenance)
    error = {**outcome.error, "instance": f"/jobs/{job.id}"} if outcome.error else None
    queries.apply(db, job, event, error=error, attempt=attempt.number)


def with_truth(plan: dict[str, Any], provenance: dict[str, Any] | None) -> dict[str, Any]:
    """A plan whose estimate says what it came to: `actual_seconds` of computing, and their `ratio` to the estimated ones."""
    error = estimate_error(plan, provenance)
    if error is None:
        return plan
    truth = {name: error[name] for name in ("actual_seconds", "ratio")}
    return {**plan, "estimate": {**plan["estimate"], **truth}}


def _keep_artifacts(db: Session, job: Job, attempt: Attempt, outcome: Outcome) -> None:
    """The files that the attempt left, in the place of those of the same names that an earlier one did."""
    for file in outcome.artifacts:
        row = ArtifactRow(job_id=job.id, path=f"{attempt.number}/{file.name}", created_at=now(), **file.model_dump())
        db.merge(row)
        if job.state not in FINAL:
            queries.append_event(db, job, "artifact", file.model_dump())


def to_stop(db: Session, running: Sequence[Running]) -> list[str]:
    """Which of the attempts that a worker runs, or runs a piece of, must not go on."""
    stop: list[str] = []
    for line in running:
        attempt = _held(db, line.attempt, line.claim)
        if attempt is None or db.get_one(Job, attempt.job_id).state != State.RUNNING:
            stop.append(line.attempt)
    return stop


def end(db: Session, attempt: Attempt, how: str) -> None:
    """End an attempt: its leases are free at once, and its running time counts."""
    attempt.state, attempt.end, attempt.ended_at = "ended", how, now()
    db.add(attempt)
    free_leases(db, attempt.id)
    job = db.get_one(Job, attempt.job_id)
    job.seconds_used += running_seconds(attempt, attempt.ended_at)
    db.add(job)
    touch(db, queries.QUEUE_TOPIC)


def withdraw_unclaimed(db: Session, job: Job) -> None:
    """Nobody has begun the job's attempt: it ends here and now."""
    attempt = queries.open_attempt(db, job.id)
    if attempt and attempt.state == "placed":
        end(db, attempt, "withdrawn")
        queries.apply(db, job, states.Event.STOPPED)


def lose(db: Session, attempt: Attempt, event: states.Event, reason: str) -> None:
    """An attempt is gone without an outcome. `event` says whether it counts: WORKER_LOST does, SERVER_STOPPED does not."""
    end(db, attempt, event)
    job = db.get_one(Job, attempt.job_id)
    if job.state in FINAL:
        return
    error = {
        "type": "/problems/worker-lost",
        "title": "Worker lost",
        "status": 500,
        "detail": f"{reason} It was attempt {attempt.number}, and max_attempts is {job.max_attempts}.",
        "instance": f"/jobs/{job.id}",
    }
    if job.state == State.RUNNING:
        queries.append_event(db, job, "log", {"message": f"Attempt {attempt.number} ended: {reason}"})
    queries.apply(db, job, event, error=error, attempt=attempt.number, reason=reason)


def time_out(db: Session, job: Job) -> None:
    """The job's time is used up. Its attempt is told to stop with the worker's next report."""
    detail = f"The job ran longer than its timeout_seconds of {job.timeout_seconds:g}, all attempts together."
    error = {
        "type": "/problems/timeout",
        "title": "Time limit exceeded",
        "status": 504,
        "detail": detail,
        "instance": f"/jobs/{job.id}",
    }
    queries.apply(db, job, states.Event.TIMED_OUT, error=error)
    withdraw = queries.open_attempt(db, job.id)
    if withdraw and withdraw.state == "placed":
        end(db, withdraw, "withdrawn")


def running_seconds(attempt: Attempt, at: datetime) -> float:
    """Since the claim; a clock that was set back meanwhile takes no time away."""
    return max(0.0, (at - attempt.claimed_at).total_seconds()) if attempt.claimed_at else 0.0
