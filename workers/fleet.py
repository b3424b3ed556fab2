"""Several workers by one command: a small parent that shares the machine out, and starts again whoever ends.

One worker for each GPU, where there are several; or as many as `--workers` says. Each child is the same command, with its own GPUs alone
in `CUDA_VISIBLE_DEVICES`. However the parent ends, its children are told to leave.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from workers.failures import CannotJoin

log = logging.getLogger(__name__)

REFUSED: Final = 2
"""The exit code of a worker that has no place as it was started: starting it again would not give it one."""
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 10.0
HEALTHY_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Wish:
    """What the command line says of how many, and how large; None where it says nothing."""

    workers: int | None = None
    gpus: int | None = None
    """Of one worker."""
    threads: int | None = None
    """Of one worker."""
    port: int = 0
    tied: bool = False
    """To the life of somebody, who then counts the workers: this command is one unless it says otherwise."""


@dataclass(frozen=True)
class Share:
    """One worker's part of the machine."""

    gpus: tuple[str, ...]
    """As `CUDA_VISIBLE_DEVICES` names them."""
    threads: int


def shares(wish: Wish, gpus: Sequence[str], cores: int) -> list[Share]:
    """How this machine is divided among the workers of one command. Raises CannotJoin where it cannot be.

    gpus: the names of those that this process may use.
    """
    each_one = len(gpus) > 1 and wish.gpus is None and not wish.tied
    count = wish.workers or (len(gpus) if each_one else 1)
    if wish.port and count > 1:
        raise CannotJoin(
            f"--port {wish.port} is for one worker, and this command starts {count}. Leave --port out, "
            "or start each worker by a command of its own, with --workers 1."
        )
    if count == 1:
        dealt = [tuple(gpus[: wish.gpus])]
    elif wish.gpus is None:
        dealt = [tuple(gpus[len(gpus) * n // count : len(gpus) * (n + 1) // count]) for n in range(count)]
    elif count * wish.gpus > len(gpus):
        raise CannotJoin(
            f"--workers {count} with --gpus {wish.gpus} asks for {count * wish.gpus} GPUs, and there are {len(gpus)}. "
            "Ask for fewer, or leave --gpus out: they are then shared out."
        )
    else:
        dealt = [tuple(gpus[wish.gpus * n : wish.gpus * (n + 1)]) for n in range(count)]
    return [Share(names, wish.threads or max(1, cores // count)) for names in dealt]


def command(share: Share) -> list[str]:
    """This very command again, for one worker: what is said last counts."""
    return [
        *(sys.executable, *sys.orig_argv[1:]),
        *("--workers", "1", "--threads", str(share.threads), "--parent", str(os.getpid())),
    ]


def run(parts: Sequence[Share], gpus_there: int) -> int:
    """Keep a worker running for each part, until SIGTERM, SIGINT, or all have left. Returns the exit code."""
    return asyncio.run(_keep([(command(part), hiding(part, gpus_there)) for part in parts]))


def hiding(share: Share, gpus_there: int) -> dict[str, str]:
    """What keeps a worker, and its children, from the GPUs that are not its own."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(share.gpus)} if len(share.gpus) < gpus_there else {}


async def _keep(children: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> int:
    leave = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leave.set)
    tended = [_tend(f"worker {n} of {len(children)}", *child, leave) for n, child in enumerate(children, 1)]
    return max(await asyncio.gather(*tended))


async def _tend(what: str, arguments: Sequence[str], environment: Mapping[str, str], leave: asyncio.Event) -> int:
    """Run one worker, starting it again when it ends, with longer pauses while it ends at once. Returns its exit code, 0 or REFUSED.

    One that is refused takes the others along: they are the same command.
    """
    leaving = asyncio.create_task(leave.wait())
    pause = FIRST_PAUSE_SECONDS
    while not leave.is_set():
        started = time.monotonic()
        # A session of its own: a Ctrl-C in the terminal is for the parent, which ends its children in order.
        child = await asyncio.create_subprocess_exec(
            *arguments, env={**os.environ, **environment}, start_new_session=True
        )
        ended = asyncio.ensure_future(child.wait())
        await asyncio.wait({ended, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leave.is_set() and not ended.done():
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
            await ended
            return 0
        if (code := ended.result()) == REFUSED:
            leave.set()
            return REFUSED
        if code == 0:
            log.info("%s has left: it was told to", what)
            break
        lived = time.monotonic() - started
        pause = FIRST_PAUSE_SECONDS if lived > HEALTHY_SECONDS else min(pause * 2, LONGEST_PAUSE_SECONDS)
        log.warning("%s ended with code %s after %.1f s; starting it again in %.1f s", what, code, lived, pause)
        await asyncio.wait({leaving}, timeout=pause)
    leaving.cancel()
    return 0
