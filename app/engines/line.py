"""A child of the server's that answers questions: one JSON object a line each way, the answers in any order."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from app.engines.base import EngineDown
from app.engines.children import Child

LONGEST_LINE_BYTES = 16 << 20


class Line:
    """One such child. It says `{"ready": …}` once, or `{"failed": words}` and ends; then `{"id": …, "value": …}` or
    `{"id": …, "error": words}` to each question."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.ready: Any = None
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._count = 0
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, module: str, arguments: Sequence[str], environment: Mapping[str, str], seconds: float) -> Self:
        """Start the child and wait until it is ready. Raises EngineDown, TimeoutError."""
        child = await Child.start(module, arguments, environment, LONGEST_LINE_BYTES)
        line = cls(child)
        try:
            first = await asyncio.wait_for(line._hear(), seconds)
            if first is None:
                raise EngineDown(f"{module} ended with code {await child.process.wait()}")
            if "failed" in first:
                raise EngineDown(first["failed"])
        except BaseException:
            await child.stop()
            raise
        line.ready = first["ready"]
        line._listening = asyncio.create_task(line._listen(), name=f"line to {module}")
        return line

    @property
    def broken(self) -> bool:
        """The child has ended, or closed its end."""
        return self._listening is None or self._listening.done()

    async def ask(self, question: Mapping[str, Any], seconds: float) -> Any:
        """The answer's value. Raises EngineDown with the child's words, or when it ends; TimeoutError."""
        writer = self._child.process.stdin
        if writer is None or self.broken:
            raise EngineDown("the connection to the cluster is lost")
        self._count += 1
        number = self._count
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                writer.write(json.dumps({"id": number, **question}).encode() + b"\n")
                await writer.drain()
                return await answer
        except ConnectionError as fault:
            raise EngineDown("the connection to the cluster is lost") from fault
        finally:
            del self._asked[number]

    async def close(self) -> None:
        if self._listening:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._child.stop()

    async def _hear(self) -> dict[str, Any] | None:
        reader = self._child.process.stdout
        text = await reader.readline() if reader else b""
        said: dict[str, Any] | None = json.loads(text) if text.endswith(b"\n") else None
        return said

    async def _listen(self) -> None:
        try:
            while said := await self._hear():
                answer = self._asked.get(said["id"])
                if answer is None or answer.done():
                    continue  # nobody waits for it any more
                if "error" in said:
                    answer.set_exception(EngineDown(said["error"]))
                else:
                    answer.set_result(said["value"])
        finally:
            for answer in self._asked.values():
                with contextlib.suppress(asyncio.InvalidStateError):
                    answer.set_exception(EngineDown("the connection to the cluster is lost"))
