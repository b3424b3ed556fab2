"""Processes that live and die with the server: started, watched, started again, ended.

Each child's standard input is a pipe whose other end the server holds. However the server ends, kill -9 included, the pipe closes and
the child, which watches it (`workers.lifeline`), ends too.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.engines.base import EngineDown

log = logging.getLogger(__name__)

STOP_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 10.0
HEALTHY_SECONDS = 30.0
RETRY_SECONDS = 2.0


class Child:
    """One child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(
        cls, module: str, arguments: Sequence[str], environment: Mapping[str, str], longest_answer_bytes: int = 0
    ) -> "Child":
        """Start it. With `longest_answer_bytes`, its standard output is for us to read, in lines up to so long."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE if longest_answer_bytes else None,
            limit=longest_answer_bytes or 1 << 16,
            env={**os.environ, **environment},
            # A session of its own: a Ctrl-C in the server's terminal is for the server, which ends its children in order.
            start_new_session=True,
        )
        return cls(process)

    async def stop(self) -> None:
        """SIGTERM, a few seconds, SIGKILL."""
        if self.process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


async def keep_running(what: str, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a child until this is cancelled, starting it again when it ends, with longer pauses while it ends at once."""
    pause = 0.2
    while True:
        started = time.monotonic()
        try:
            child = await Child.start(module, arguments, environment)
        except OSError as fault:  # no memory, or no process to be had just now
            log.error("%s could not be started: %s", what, fault)
            await asyncio.sleep(LONGEST_PAUSE_SECONDS)
            continue
        try:
            code = await child.process.wait()
        finally:
            await child.stop()
        lived = time.monotonic() - started
        pause = 0.2 if lived > HEALTHY_SECONDS else min(pause * 2, LONGEST_PAUSE_SECONDS)
        log.warning("%s ended with code %s after %.1f s; starting it again in %.1f s", what, code, lived, pause)
        await asyncio.sleep(pause)


def keep_workers(
    count: int, arguments: Sequence[str], environment: Mapping[str, str], token: str | None
) -> list[asyncio.Task[None]]:
    """Keep `count` workers of this machine running. The first one has its GPUs: two must not take the same."""
    secret = {"TIDEMILL_JOIN_TOKEN": token} if token else {}
    return [
        asyncio.create_task(
            keep_running(
                f"worker {number}",
                "workers",
                [*arguments, "--lifeline", *(["--gpus", "0"] if number else [])],
                {**environment, **secret},
            )
        )
        for number in range(count)
    ]


async def keep_up(what: str, run_cluster: Callable[[], Awaitable[int]]) -> None:
    """A head and its workers, together: when the head ends, all of it starts anew. Until this is cancelled."""
    while True:
        try:
            code = await run_cluster()
            log.warning("%s ended with code %s; starting it and its workers again", what, code)
        except Exception as fault:  # whatever it is, without a cluster nothing runs: say it, and try again
            log.error("%s could not be started (%s: %s); trying again", what, type(fault).__name__, fault)
            await asyncio.sleep(RETRY_SECONDS)


async def noted(child: Child, what: str, note: Path, seconds: float) -> dict[str, Any]:
    """The note that a child writes once it is up, with its `address`. Ends the child, and raises, when that does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            while child.process.returncode is None:
                with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                    facts: dict[str, Any] = json.loads(note.read_text())
                    if "address" in facts:
                        return facts
                await asyncio.sleep(0.02)
    except BaseException:
        await child.stop()
        raise
    raise EngineDown(f"{what} ended with code {child.process.returncode} while starting")


async def cancel_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
