"""Receiving a file: streamed to disk and hashed on the way, never held in memory, gone again when anything fails."""

import contextlib
import errno
import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, cast

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.datasets.schemas import MEDIA_TYPES, OPTIONS, OTHER_MEDIA_TYPES
from app.db.writer import StorageUnavailable
from app.kit.problems import BadRequest, InvalidInput, PayloadTooLarge, UnsupportedMediaType
from workers.contract import plain_text

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_FIELD_BYTES = 4096
ROOM_FOR_FORM_BYTES = 1 << 20
"""What boundaries, part headers and fields may add to the file itself."""


@dataclass
class Received:
    """A file on disk and what was said about it."""

    path: Path
    bytes: int = 0
    sha256: str = ""
    file_name: str | None = None
    media_type: str | None = None
    """As it was said, with its charset."""
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Taken:
    """What an address takes: media types beside a form, the first ones to be named, and parts beside `file` and `name`."""

    what: str
    media_types: tuple[str, ...]
    other_media_types: frozenset[str]
    parts: tuple[str, ...]
    advice: str
    """For whom curl told that a form was coming, and sent none."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Accept": ", ".join(("multipart/form-data", *self.media_types))}


TABLES = Taken(
    "A dataset",
    MEDIA_TYPES,
    OTHER_MEDIA_TYPES,
    tuple(OPTIONS),
    "Send `curl -F file=@data.csv`, or `curl --data-binary @data.csv -H 'Content-Type: text/csv'`.",
)


@dataclass(frozen=True)
class Label:
    """A name for people, never a path of ours; `said` where somebody gave it, and it is not only the file's."""

    text: str
    said: bool


def label(received: Received, said: str | None) -> Label:
    """The name in the query, in the form, or of the file. Raises InvalidInput."""
    own_name = said or received.fields.get("name")
    name = own_name or received.file_name or "unnamed"
    # A browser may send a whole path; the last part is the name.
    text = PurePosixPath(name.replace("\\", "/")).name or "unnamed"
    if len(text) > 255 or any(ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise InvalidInput("A name is at most 255 characters, none of them control characters.", pointer="/name")
    return Label(text, bool(own_name))


class _Sink:
    """The file being written: limited, and hashed."""

    def __init__(self, path: Path, limit: int) -> None:
        self._file: IO[bytes] = path.open("wb")
        self._limit, self._hash, self.size = limit, hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._limit:
            raise PayloadTooLarge(f"The file is larger than the {self._limit} bytes taken here.")
        self._hash.update(data)
        with _storage():
            self._file.write(data)

    def close(self) -> str:
        with _storage():
            self._file.close()
        return self._hash.hexdigest()


@contextlib.contextmanager
def _storage() -> Iterator[None]:
    """A full disk is no fault of the request's, nor of ours."""
    try:
        yield
    except OSError as fault:
        if fault.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StorageUnavailable(f"The upload could not be kept ({fault.strerror}).") from None


async def receive(request: Request, path: Path, limit: int, taken: Taken = TABLES) -> Received:
    """Stream the request's file to `path`. Raises PayloadTooLarge past `limit` bytes, BadRequest for a broken form,
    UnsupportedMediaType for a body that is neither a form nor what is `taken`.

    Whatever is raised, `path` is gone. The connection stays open, so that a client which sends all before it reads hears of it.
    """
    received = Received(path)
    kind, parameters = parse_options_header(request.headers.get("content-type"))
    if kind == b"application/x-www-form-urlencoded":
        raise UnsupportedMediaType(
            "The body is declared to be 'application/x-www-form-urlencoded', which is what `curl -d` says, stripping the "
            f"line ends. {taken.advice}",
            headers=taken.headers,
        )
    known = (*taken.media_types, *taken.other_media_types)
    if kind != b"multipart/form-data" and kind.decode("latin-1") not in known:
        raise UnsupportedMediaType(
            f"{taken.what} cannot be {kind.decode('latin-1')!r}; send a form, or one of {', '.join(taken.media_types)}.",
            headers=taken.headers,
        )
    sink = _Sink(path, limit)
    try:
        _refuse_by_length(request, limit)
        if kind == b"multipart/form-data":
            await _form(request.stream(), parameters.get(b"boundary", b""), _Parts(sink, received, taken.parts), limit)
        else:
            received.media_type = request.headers.get("content-type")
            async for chunk in request.stream():
                sink.write(chunk)
        received.bytes, received.sha256 = sink.size, sink.close()
    except BaseException:
        sink.close()
        path.unlink(missing_ok=True)
        raise
    return received


def _refuse_by_length(request: Request, limit: int) -> None:
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:18]) > limit + ROOM_FOR_FORM_BYTES:
        raise PayloadTooLarge(f"The body is larger than the {limit} bytes taken here.")


async def _form(stream: AsyncIterator[bytes], boundary: bytes, parts: "_Parts", limit: int) -> None:
    if not boundary:
        raise BadRequest("The form names no boundary in its Content-Type.")
    try:
        parser = MultipartParser(boundary, parts.callbacks(), max_size=limit + ROOM_FOR_FORM_BYTES)
        async for chunk in stream:
            if chunk:
                parser.write(chunk)
        parser.finalize()
    except FormParserError as fault:
        raise BadRequest(f"The form is malformed: {fault}.") from None
    if not parts.ended:
        raise BadRequest("The form ends before its last boundary; the upload was cut short.")
    if not parts.seen_file:
        raise InvalidInput("The form has no part named `file`.", pointer="/file")


class _Parts:
    """What the form parser calls, part by part."""

    def __init__(self, sink: _Sink, received: Received, known: tuple[str, ...]) -> None:
        self.sink, self.received, self.known = sink, received, ("file", "name", *known)
        self.seen_file = self.ended = False
        self._name, self._value, self._in_file = "", b"", False
        self._header, self._header_value = b"", b""
        self._headers: dict[str, str] = {}

    def callbacks(self) -> "MultipartCallbacks":
        names = (
            "part_begin",
            "part_data",
            "part_end",
            "header_field",
            "header_value",
            "header_end",
            "headers_finished",
            "end",
        )
        return cast("MultipartCallbacks", {f"on_{name}": getattr(self, f"on_{name}") for name in names})

    def on_part_begin(self) -> None:
        self._headers, self._value = {}, b""

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def on_header_end(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._header_value.decode("utf-8", "replace")
        self._header = self._header_value = b""

    def on_headers_finished(self) -> None:
        # The standard library reads RFC 2231 file names (filename*=UTF-8''…) too.
        header = Message()
        header["content-disposition"] = self._headers.get("content-disposition", "")
        name = header.get_param("name", header="content-disposition")
        self._name, self._in_file = str(name or ""), name == "file"
        if self._in_file:
            if self.seen_file:
                raise InvalidInput(
                    "The form has more than one part named `file`; upload one file at a time.", pointer="/file"
                )
            self.seen_file = True
            self.received.file_name = header.get_filename()
            self.received.media_type = self._headers.get("content-type")
        elif self._name not in self.known:
            known = ", ".join(self.known)
            raise InvalidInput(f"The form has a part {self._name!r}; known are {known}.", pointer=f"/{self._name}")

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self.sink.write(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > MAX_FIELD_BYTES:
            raise InvalidInput(
                f"The part {self._name!r} is longer than {MAX_FIELD_BYTES} bytes.", pointer=f"/{self._name}"
            )

    def on_part_end(self) -> None:
        if self._in_file:
            return
        try:
            if text := plain_text(self._value.decode("utf-8")):  # a page sends its empty boxes too
                self.received.fields[self._name] = text
        except ValueError as fault:
            raise InvalidInput(
                f"The part {self._name!r} is not plain UTF-8 text: {fault}.", pointer=f"/{self._name}"
            ) from None

    def on_end(self) -> None:
        self.ended = True
