"""Whether a job submitted now could run, and if not, why."""

from sqlmodel import Session

from app.capabilities import queries
from app.engines.base import EngineDown
from app.kit.problems import Unavailable
from app.services import Services


async def what_is_missing(house: Services) -> list[str]:
    """Why a job submitted now could not run; empty when it could: on every engine that was named a worker is there."""
    missing = []
    if house.stopping.is_set():
        missing.append("the server is stopping")
    try:
        await house.writer.run(_write_nothing)
    except Unavailable as fault:
        missing.append(f"the database cannot be written ({fault.detail})")
    workers = await house.reader.run(queries.workers_up)
    for name, present in (await house.engines.present()).items():
        if isinstance(present, EngineDown):
            missing.append(f"the {name} cluster is not up ({present})")
        elif not any(worker.engine == name and worker.address in present for worker in workers):
            missing.append(f"no worker has joined the {name} cluster yet")
    return house.missing.keep(missing)


async def what_was_missing(house: Services) -> list[str]:
    """The same as it was within the last second: anybody may ask, and each look writes and asks the clusters."""
    if house.stopping.is_set():
        return await what_is_missing(house)
    return await house.missing.get(lambda: what_is_missing(house))


def _write_nothing(db: Session) -> None:
    """A write unit that changes nothing: its transaction shows that the database takes writes."""
    db.connection().exec_driver_sql("PRAGMA user_version = 0")
