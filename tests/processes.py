"""Processes as tests look at them. One that ends while it is looked at has ended: none of this raises for it."""

import contextlib
import time
from collections.abc import Callable, Iterable

import psutil


def lives(process: psutil.Process | int) -> bool:
    """Whether it runs; what has ended and was not collected by its parent does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        there = _known(process)
        return there.is_running() and there.status() != psutil.STATUS_ZOMBIE
    return False


def _known(process: psutil.Process | int) -> psutil.Process:
    return process if isinstance(process, psutil.Process) else psutil.Process(process)


def all_gone(family: Iterable[psutil.Process]) -> bool:
    return not any(lives(each) for each in family)


def words(process: psutil.Process) -> list[str]:
    """Its command line; none of one that has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def below(process: psutil.Process | int) -> list[psutil.Process]:
    """Every process that it started, directly or not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return _known(process).children(recursive=True)
    return []


def children(process: psutil.Process | int, *has: str) -> list[psutil.Process]:
    """Those that it started itself, and that have `has` in their command lines, one word after the other."""
    with contextlib.suppress(psutil.NoSuchProcess):
        found = _known(process).children()
        return [each for each in found if says(each, *has)]
    return []


def says(process: psutil.Process, *has: str) -> bool:
    """Whether its command line has these words one after the other."""
    line = words(process)
    return any(tuple(line[at : at + len(has)]) == has for at in range(len(line)))


def at_work(family: Callable[[], Iterable[psutil.Process]], seconds: float = 0.3) -> bool:
    """Whether one of its processes, or of their threads, computes for most of so long."""

    def spent() -> float:
        total = 0.0
        for each in family():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(each.cpu_times()[:2])
        return total

    before, started = spent(), time.monotonic()
    time.sleep(seconds)
    return spent() - before > (time.monotonic() - started) / 2
