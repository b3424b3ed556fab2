"""Files as answers: `Range` is honoured, and what is wrong with it is a problem like any other."""

from typing import Annotated

from fastapi import Depends, Header
from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from app.kit.problems import RangeNotSatisfiable


async def _range(
    _header: Annotated[
        str | None, Header(alias="Range", description="Only these bytes, such as `bytes=0-1023`.")
    ] = None,
) -> None:
    """Only says in the schema what a `FileAnswer` looks at."""


Range = Depends(_range)


class _NoRange(Exception):
    """The `Range` header holds no range of bytes that we understand."""


class FileAnswer(FileResponse):
    """A file, whole or in part. A `Range` outside it is a problem; one that says nothing is passed over, RFC 9110."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def checked(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 416:
                length = Headers(raw=message["headers"]).get("content-range", "")
                said = Headers(scope=scope).get("range", "")[:100]
                raise RangeNotSatisfiable(
                    f"The range {said!r} lies outside the file, which has {length.removeprefix('bytes */')} bytes.",
                    headers={"Content-Range": length},
                )
            if message["type"] == "http.response.start" and message["status"] == 400:
                raise _NoRange
            await send(message)

        try:
            await super().__call__(scope, receive, checked)
        except _NoRange:
            headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
            await super().__call__({**scope, "headers": headers}, receive, send)
