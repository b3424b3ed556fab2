"""Whether the workers that are there could ever run a job, were they all free; and if not, what was asked and what there is. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from app.control.demand import CLUSTERS, SIMULATOR, TRAINING_CUDA, Demand
from app.control.placing import Candidate, choose, unfit, were_all_free

NEVER = "no worker that is there can ever run it"
"""Said of such a job wherever it is spoken of; the reason follows."""


def never(demand: Demand, candidates: Sequence[Candidate]) -> str | None:
    """What is missing for ever, unless another worker joins, as half a sentence. None where waiting helps, or nobody is there."""
    free = were_all_free(candidates)
    if not free or choose(demand, free) is not None:
        return None
    engine = demand.place if demand.place in CLUSTERS else demand.engine
    here = [candidate for candidate in free if engine in ("", candidate.engine)]
    if not here:
        return f"it runs on the {engine} cluster, and no worker of that is there"
    able = [candidate for candidate in here if unfit(demand, candidate) is None]
    if not able:
        return _of_one(demand, here)
    return _of_a_gang(demand, able)


def _of_one(demand: Demand, here: Sequence[Candidate]) -> str:
    """Why no single worker would do."""
    roomy = [candidate for candidate in here if unfit(Demand("cpu", gib=demand.gib), candidate) is None]
    if not roomy:
        most = max(candidate.memory_bytes for candidate in here) / (1 << 30)
        return f"it needs {demand.gib} GiB of memory or more, and the largest worker has {most:.1f}"
    if demand.place == SIMULATOR:
        return "it needs Numba's CUDA simulator, and no worker runs that"
    proved = [candidate for candidate in here if unfit(replace(demand, devices=1), candidate) is None]
    if proved and demand.place in ("cuda", TRAINING_CUDA):
        most_gpus = max(len(candidate.devices) for candidate in proved)
        devices = {device for candidate in proved for device in candidate.devices.values()}
        return short_of_devices(demand.devices, most_gpus, len(devices)) or "no worker has all that it asks for"
    reasons = sorted({str(unfit(demand, candidate)) for candidate in here})
    return f"every worker {'; or '.join(reasons)}"


def _of_a_gang(demand: Demand, able: Sequence[Candidate]) -> str:
    """Why those that would do are not enough."""
    most, engine = max(_most_at_once(demand, able, each) for each in {candidate.engine for candidate in able})
    there = sum(candidate.engine == engine for candidate in able)
    why = f"the {engine} cluster has {there} that could take part"
    if there > most:
        why += f", of which no more than {most} at once, since they share their CUDA devices"
    elsewhere = "" if demand.engine else ", and no other has more"
    return f"it needs {demand.nodes} workers of one cluster at once, and {why}{elsewhere}; let {demand.nodes - most} more join"


def _most_at_once(demand: Demand, able: Sequence[Candidate], engine: str) -> tuple[int, str]:
    there = [candidate for candidate in able if candidate.engine == engine]
    enough = (n for n in range(len(there), 0, -1) if choose(replace(demand, nodes=n), there) is not None)
    return next(enough, 0), engine


def short_of_devices(asked: int | Sequence[int], most: int, there: int, simulated: bool = False) -> str | None:
    """What to say of CUDA devices that no worker has: `asked` for, how many or which, while the largest worker has `most`, and all
    together have `there`. None where one has them."""
    if isinstance(asked, int):
        if asked <= most:
            return None
        needed, said = asked, f"{_devices(asked)} asked for"
    else:
        beyond = [index for index in asked if index >= most]
        if not beyond:
            return None
        needed, said = max(asked) + 1, f"device {beyond[0]} was asked for"
    if simulated:
        return f"{said}, and the simulator is {_devices(most)}"
    alone = f" (a job's are all of one worker, and {there} are there in all)" if there > most else ""
    return (
        f"{said}, and the largest worker that proved CUDA has {_devices(most)}{alone}; "
        f"start a worker with --gpus {needed} on a machine that has as many"
    )


def _devices(count: int) -> str:
    return {0: "no device", 1: "one device, number 0"}.get(count, f"{count} devices, numbers 0 to {count - 1}")
