"""Processes that live and die with the server: started, watched, started again, ended.

Each child's standard input is a pipe whose other end the server holds. However the server ends, kill -9 included, the pipe closes and
the child, which watches it (`workers.lifeline`), ends too.
"""

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence

log = logging.getLogger(__name__)

STOP_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 10.0
HEALTHY_SECONDS = 30.0


class Child:
    """One child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> "Child":
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
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
