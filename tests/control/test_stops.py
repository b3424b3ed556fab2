"""What must stop is told to whoever runs any of it: the driver's worker, and those that compute a piece."""

import asyncio
import contextlib

from app.jobs import queries
from tests.jobs.yard import Yard


def running_on(yard: Yard, backend: str):
    """A running job of this backend with its home on one of two workers of its engine; and the other worker."""
    engine = backend if backend in ("dask", "ray") else "dask"
    workers = [yard.join(engine=engine), yard.join(engine=engine)]
    yard.queue(backend=backend)
    [attempt] = yard.place()
    yard.claim(attempt.id, "nonce", attempt.worker_id)
    [other] = [worker for worker in workers if worker != attempt.worker_id]
    return attempt, other


def nudged(yard: Yard) -> dict[str, set[str]]:
    """Engine → workers that were told to report at once, after something was to stop."""

    async def hasten():
        hastening = asyncio.create_task(yard.dispatcher.hasten_stops())
        await asyncio.sleep(0)
        yard.changes.bind()
        yard.changes.publish({queries.STOP_TOPIC})
        for _ in range(200):
            if any(engine.asked for engine in yard.engines.values()):
                break
            await asyncio.sleep(0.01)
        hastening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await hastening

    yard.run(hasten())
    return {
        name: {
            address.removeprefix("tcp://") for function, address in engine.asked if function == "workers.agent:nudge"
        }
        for name, engine in yard.engines.items()
    }


def test_a_piece_stops_when_its_job_is_cancelled(yard):
    attempt, _ = running_on(yard, "dask")
    assert yard.to_stop({attempt.id: "nonce"}) == set()
    yard.cancel(attempt.job_id)
    assert yard.to_stop({attempt.id: "nonce"}) == {attempt.id}


def test_a_piece_stops_when_the_worker_of_its_driver_is_lost(yard):
    attempt, _ = running_on(yard, "dask")
    yard.vanish(attempt.worker_id)
    yard.sweep()
    assert yard.job(attempt.job_id).state == "queued"
    assert yard.to_stop({attempt.id: "nonce"}) == {attempt.id}


def test_a_piece_of_a_forged_claim_stops(yard):
    attempt, _ = running_on(yard, "dask")
    assert yard.to_stop({attempt.id: "forged"}) == {attempt.id}


def test_a_cancel_is_hastened_on_every_worker_of_the_engine_that_a_job_is_spread_over(yard):
    yard.join()
    attempt, other = running_on(yard, "ray")
    yard.cancel(attempt.job_id)
    assert nudged(yard) == {"dask": set(), "ray": {attempt.worker_id, other}}


def test_and_on_its_own_worker_alone_where_it_is_not_spread(yard):
    attempt, _ = running_on(yard, "cpu")
    yard.cancel(attempt.job_id)
    assert nudged(yard) == {"dask": {attempt.worker_id}, "ray": set()}
