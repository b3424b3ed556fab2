"""Whether a job's memory fits on a worker, and if not, what would. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.jobs.checks.facts import SeriesFacts
from app.jobs.estimates import largest_memory, most_threads
from app.jobs.evidence import WorkerFacts
from app.kit.problems import FieldError
from workers.contract import Message, PanProfileParams
from workers.operations import Computation
from workers.sizes import Lengths, largest_pan_window, pan_windows


@dataclass(frozen=True)
class Limit:
    """Memory that a job may need, bytes, and who says so."""

    bytes: int
    said: str


def limit_of(setting: int | None, workers: Sequence[WorkerFacts]) -> Limit | None:
    """The setting, or else the memory of the largest worker; None while nobody knows."""
    if setting is not None:
        return Limit(setting, f"TIDEMILL_MAX_JOB_BYTES allows {shown(setting)}")
    largest = largest_memory(workers)
    return Limit(largest, f"the largest worker has {shown(largest)}") if largest else None


def refusal(
    computation: Computation,
    params: Any,
    given: Sequence[SeriesFacts],
    workers: Sequence[WorkerFacts],
    limit: Limit | None,
) -> FieldError | None:
    """What is wrong where the job needs more than `limit`, with every single change that would make it fit."""
    if limit is None:
        return None
    threads = most_threads(workers)

    def fits(params: Message, lengths: Lengths) -> bool:
        return computation.peak_bytes(params, lengths, threads) <= limit.bytes

    lengths = [each.length for each in given]
    if fits(params, lengths):
        return None
    offers = [*_offers(params, given, fits)]
    pointer = offers[0][0] if offers else max(given, key=lambda each: each.length).pointer
    advice = (
        f"It fits with {' or '.join(offer for _, offer in offers)}." if offers else "No single change makes it fit."
    )
    needed = shown(computation.peak_bytes(params, lengths, threads))
    return FieldError(pointer, f"This would need about {needed} of memory, and {limit.said}. {advice}")


Fits = Callable[[Any, Lengths], bool]


def _offers(params: Any, given: Sequence[SeriesFacts], fits: Fits) -> Iterator[tuple[str, str]]:
    """(pointer, what would fit), of which the first is the least loss."""
    lengths = [each.length for each in given]
    if isinstance(params, PanProfileParams):
        yield from _pan_offers(params, lengths, fits)
    if getattr(params, "k", None) and "against" in type(params).model_fields:
        k = most(lambda k: fits(params.model_copy(update={"k": k}), lengths), 1, params.k - 1)
        if k:
            yield "/params/k", f"k of at most {k}"
    least_length = _least_length(params)
    cap = most(lambda cap: fits(params, [min(cap, each) for each in lengths]), least_length, max(lengths) - 1)
    if cap:
        longest = max(given, key=lambda each: each.length)
        yield longest.pointer, f"{'a series' if len(given) == 1 else 'series'} of at most {cap} values"
    if not {"a", "against"} & set(type(params).model_fields):
        count = most(lambda count: fits(params, lengths[:count]), 2, len(lengths) - 1)
        if count:
            yield "/params/series", f"the first {count} of {len(lengths)} series"


def _pan_offers(params: PanProfileParams, lengths: Lengths, fits: Fits) -> Iterator[tuple[str, str]]:
    visited = pan_windows(params, lengths[0])
    last = visited[-1]
    step = least(
        lambda step: fits(params.model_copy(update={"step": step}), lengths),
        params.step + 1,
        last - params.min_window + 1,
    )
    if step:
        yield "/params/step", f"a step of at least {step}"
    largest = most(
        lambda last: fits(params.model_copy(update={"max_window": last}), lengths), params.min_window, last - 1
    )
    if largest:
        yield "/params/max_window", f"a max_window of at most {largest}"


def _least_length(params: Any) -> int:
    """The shortest series that the windows asked for still go into."""
    if not isinstance(params, PanProfileParams):
        return int(params.window)
    wanted = params.max_window or params.min_window
    return least(lambda length: largest_pan_window(length) >= wanted, wanted, 2 * wanted + 8) or wanted


def most(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest number from `low` to `high` that fits, where a smaller one always fits better."""
    if low > high or not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def least(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number from `low` to `high` that fits, where a larger one always fits better."""
    found = most(lambda negative: fits(-negative), -high, -low)
    return None if found is None else -found


def shown(size: int) -> str:
    """Bytes for people: `64.0 GB`."""
    for unit, name in ((10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
