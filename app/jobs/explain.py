"""Why a job waits, or why it ran where it did, from the same rows the dispatcher decides by."""

from sqlmodel import Session

from app.capabilities import queries as capabilities
from app.control import queries as running
from app.control.demand import ANYWHERE, Demand
from app.control.placing import Candidate, choose, unfit, verdict
from app.db.tables import Job
from app.jobs import queries
from app.jobs.schemas import Explanation, WorkerConsidered
from app.jobs.states import State


def explanation(db: Session, job: Job) -> Explanation:
    demand = Demand.parse(job.demand)
    candidates = running.candidates(db)
    hosts = {worker.id: worker.facts["host"] for worker in capabilities.workers_up(db)}
    ahead = queries.ahead_of(db, job) if job.state == State.QUEUED else 0
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
        summary=_summary(db, job, demand, candidates, ahead),
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


def _summary(db: Session, job: Job, demand: Demand, candidates: list[Candidate], ahead: int) -> str:
    if job.state != State.QUEUED:
        attempts = queries.attempts_of(db, job.id)
        where = f"attempt {attempts[-1].number} went to worker {attempts[-1].worker_id}" if attempts else "it never ran"
        return f"The job is {job.state}; {where}."
    if not candidates:
        return "It waits because no worker is there; the server's log tells why none has joined."
    reasons = {unfit(demand, candidate) for candidate in candidates}
    if None not in reasons:
        return f"It waits because no worker could take it: each {'; or '.join(sorted(map(str, reasons)))}."
    if short := _too_few(demand, candidates):
        return short
    if ahead:
        return f"It waits behind {ahead} job(s) of higher priority or greater age."
    if choose(demand, candidates) is None:
        if demand.nodes > 1:
            return f"It is the next one; it waits until {demand.nodes} workers of one cluster are free at once."
        able = "" if reasons == {None} else " that could take it"
        return f"It is the next one; it waits because every worker{able} is taken."
    return "It is the next one, and a worker has room: it starts now."


def _too_few(demand: Demand, candidates: list[Candidate]) -> str | None:
    """What to say of a gang for which no cluster has enough workers, even were they all free."""
    able = [candidate.engine for candidate in candidates if unfit(demand, candidate) is None]
    most = max((able.count(engine) for engine in able), default=0)
    if demand.nodes == 1 or most >= demand.nodes:
        return None
    return (
        f"It waits because it needs {demand.nodes} workers of one cluster at once, and no cluster has more than "
        f"{most} that could take it."
    )
