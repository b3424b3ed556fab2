"""Short-lived children for work this process must not do itself: one JSON request in, one JSON answer out.

The child limits its own memory and time before it touches what a stranger sent; a crash of it is an answer like any other.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import Any

AT_ONCE = 2
"""Children at the same time; further ones wait their turn."""


class ChildFailed(Exception):
    """The child ended without an answer: out of memory or time, most often. `words` is the end of what it printed."""

    def __init__(self, module: str, code: int, words: str) -> None:
        super().__init__(f"{module} ended with code {code}: {words}")
        self.code, self.words = code, words

    @property
    def exhausted(self) -> bool:
        """Whether it ran into its limits: killed by a signal, or out of memory; else it is a fault of ours."""
        return self.code < 0 or "MemoryError" in self.words or "bad_alloc" in self.words


class Children:
    """Runs modules as children, a few at a time."""

    def __init__(self, memory_bytes: int, seconds: int) -> None:
        self.memory_bytes, self.seconds = memory_bytes, seconds
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self, module: str, request: dict[str, Any]) -> dict[str, Any]:
        """`python -m module`, with `request` on its standard input. Raises ChildFailed; kills the child when cancelled."""
        async with self._turns:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
            try:
                # The child counts seconds of CPU; one that sleeps is ended by the clock.
                async with asyncio.timeout(self.seconds * 2):
                    out, err = await process.communicate(json.dumps(request).encode())
            except TimeoutError:
                raise ChildFailed(module, -signal.SIGKILL, "it took too long") from None
            finally:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
        try:
            answer: dict[str, Any] = json.loads(out)
        except ValueError:
            raise ChildFailed(module, process.returncode or 0, err.decode(errors="replace")[-2000:]) from None
        return answer
