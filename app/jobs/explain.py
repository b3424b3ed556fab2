"""Why a job waits, or why it ran where it did, from the same rows the dispatcher decides by."""

from collections.abc import Collection

from sqlmodel import Session

from app.capabilities import queries as capabilities
from app.control import queries as running
from app.control.demand import ANYWHERE, Demand
from app.control.never import NEVER, never
from app.control.placing import Candidate, choose, unfit, verdict
from app.db.tables import Job
from app.jobs import queries
from app.jobs.schemas import Explanation, WorkerConsidered
from app.jobs.states import State


def explanation(db: Session, job: Job, away: Collection[str]) -> Explanation:
    """`away`: the engines that cannot be given work now."""
    demand = Demand.parse(job.demand)
    candidates = running.candidates(db)
    waits = job.state == State.QUEUED
    hosts = {worker.id: worker.facts["host"] for worker in capabilities.workers_up(db)}
    ahead = queries.ahead_of(db, job) if waits else 0
    considered = [
        WorkerConsidered(
            id=candidate.worker_id,
            host=hosts[candidate.worker_id],
            free=dict(candidate.free),
            verdict=verdict(demand, candidate),
        )
        for candidate in candidates
    ]
    rules = [
        *job.plan["reasons"],
        "Higher priority runs first, and the oldest among equals; one that no worker has room for is passed by.",
        _room(demand),
    ]
    return Explanation(
        state=State(job.state),
        summary=_why_it_waits(demand, candidates, ahead, away) if waits else _where_it_went(db, job),
        never=never(demand, candidates) if waits else None,
        rules=rules,
        jobs_ahead=ahead,
        workers=considered,
    )


def _room(demand: Demand) -> str:
    """What it takes of a worker, as a rule."""
    if demand.place == ANYWHERE:
        return "It takes no room of any worker."
    home = "A job takes all computing threads of one worker"
    if demand.nodes > 1:
        devices = ", with CUDA devices that are its alone meanwhile" if demand.devices else ""
        return (
            f"It takes all computing threads of {demand.nodes} workers of one cluster, all at once or none{devices}; "
            "when it is its turn, workers that are free are kept for it until the others are free as well."
        )
    if demand.spreads:
        return f"{home}, its home; its pieces run on every worker of the {demand.place} cluster."
    return f"{home}, and CUDA devices that are its alone meanwhile." if demand.devices else f"{home}."


def _where_it_went(db: Session, job: Job) -> str:
    attempts = queries.attempts_of(db, job.id)
    where = f"attempt {attempts[-1].number} went to worker {attempts[-1].worker_id}" if attempts else "it never ran"
    return f"The job is {job.state}; {where}."


def _why_it_waits(demand: Demand, candidates: list[Candidate], ahead: int, away: Collection[str]) -> str:
    if not candidates:
        besides = f", and the {' and the '.join(sorted(away))} cluster cannot be reached now" if away else ""
        return f"It waits because no worker is there{besides}; the server's log tells why none has joined."
    if missing := never(demand, candidates):
        return f"It waits, and {NEVER}: {missing}. It starts when a worker joins that can."
    reached = [candidate for candidate in candidates if candidate.engine not in away]
    able = [candidate for candidate in candidates if unfit(demand, candidate) is None]
    if never(demand, reached) or not reached:
        names = " and ".join(sorted({candidate.engine for candidate in able} & set(away)))
        return f"It waits because the {names} cluster cannot be reached now; it is tried again and again."
    if ahead:
        return f"It waits behind {ahead} job(s) of higher priority or greater age."
    if choose(demand, reached) is None:
        if demand.nodes > 1:
            return (
                f"It is the next one; it waits for room, until {demand.nodes} workers of one cluster are free at once."
            )
        fit = "" if len(able) == len(candidates) else " that could take it"
        return f"It is the next one; it waits for room, because every worker{fit} is taken."
    return "It is the next one, and a worker has room: it starts now."
