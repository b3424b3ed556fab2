"""An ordered log as server-sent events: what was, then what comes, until it ends."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Final, NamedTuple, Protocol

import anyio
from fastapi import Depends, Header, Query, Request, Response
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.types import Message, Receive, Scope, Send

from app.kit.strict_json import dumps

KEEP_ALIVE_SECONDS: Final = 15.0
_LARGEST: Final = 2**63 - 1

# An EventSource comes back whenever its connection ends. After the last event there is nothing to come back for; the
# only thing that can be said to it here is to take its time.
_END: Final = format_sse_event(event="end", data_str="{}", retry=24 * 3600 * 1000)


class Event(NamedTuple):
    """One entry of the log. `data` is sent as JSON, `type` is the event's name, `seq` its id."""

    seq: int
    type: str
    data: object


class Source(Protocol):
    """A log which grows until it is finished."""

    async def read(self, after: int) -> Sequence[Event]:
        """Events with a greater `seq`, in order; some of them if there are many, none if there are none."""
        ...

    async def changed(self) -> None:
        """Return when there may be more to read. It is waiting before `read` is asked, so no event slips through."""
        ...

    async def finished(self) -> bool:
        """Whether all that will ever be written has been."""
        ...


async def _after(
    after: Annotated[int, Query(ge=0, le=_LARGEST, description="Only events with a greater `seq`.")] = 0,
    _last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", description="The `seq` of the last event seen; an event stream resumes there."),
    ] = None,
) -> int:
    return after


After = Annotated[int, Depends(_after)]


def stream(
    request: Request,
    source: Source,
    *,
    after: int = 0,
    stopping: asyncio.Event | None = None,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
) -> Response:
    """The events of `source` after `after`, or after `Last-Event-ID`, which knows better when a client comes back.

    Ends with an `end` event when the source has finished; ends without one when `stopping` is set, so that clients
    come back to whoever serves next. A `Last-Event-ID` that is not one of our numbers is passed over.
    """
    start = resumed(request.headers.get("last-event-id"), after)
    events = _events(source, start, stopping or asyncio.Event(), keep_alive_seconds)
    headers = {"Cache-Control": "no-cache", "Vary": "Accept", "X-Accel-Buffering": "no"}
    return _EventStream(events, headers=headers)


def resumed(last_event_id: str | None, after: int) -> int:
    """Where to resume: at the header where it holds a number of ours, else at `after`."""
    text = (last_event_id or "").strip()
    number = int(text) if re.fullmatch(r"[0-9]{1,19}", text) else _LARGEST + 1
    return number if number <= _LARGEST else after


class _EventStream(EventSourceResponse):
    """Notices at once when the client goes away, on any ASGI server, and leaves no generator behind."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks, aclosing(self.body_iterator):

            async def until_gone() -> None:
                await self.listen_for_disconnect(receive)
                tasks.cancel_scope.cancel()

            async def unless_gone(message: Message) -> None:
                try:
                    await send(message)
                except OSError:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(until_gone)
            await self.stream_response(unless_gone)
            tasks.cancel_scope.cancel()


async def _events(
    source: Source, after: int, stopping: asyncio.Event, keep_alive_seconds: float
) -> AsyncGenerator[bytes, None]:
    clock = asyncio.get_running_loop().time
    stopped = asyncio.create_task(stopping.wait())
    due = clock() + keep_alive_seconds
    try:
        while not stopping.is_set():
            changed = asyncio.create_task(_wait(source))
            await asyncio.sleep(0)  # it now waits
            try:
                finished = await source.finished()
                while not stopping.is_set() and (events := await source.read(after)):
                    for event in events:
                        yield format_sse_event(
                            id=str(event.seq), event=event.type, data_str=dumps(event.data).decode("utf-8")
                        )
                        after, due = max(after, event.seq), clock() + keep_alive_seconds
                if finished and not stopping.is_set():
                    yield _END
                    return
                await asyncio.wait((changed, stopped), timeout=due - clock(), return_when=asyncio.FIRST_COMPLETED)
                if changed.done():
                    changed.result()
                elif clock() >= due:
                    yield KEEPALIVE_COMMENT
                    due = clock() + keep_alive_seconds
            finally:
                changed.cancel()
    finally:
        stopped.cancel()


async def _wait(source: Source) -> None:
    await source.changed()
