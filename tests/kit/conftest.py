"""A small web service that obeys every convention of the kit, and two doors to it: in process, and over a socket."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import httpx
import pytest
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, File, Header, HTTPException, Query, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.kit import catalogue, clock, conditional, handlers, idempotency, middleware, negotiation, pages, prefer
from app.kit.json_bodies import StrictJSONRoute
from app.kit.known_query import only_known_query
from app.kit.problems import Conflict, NotFound, Problem

LIMIT = 1000


class Paint(BaseModel):
    kind: Literal["paint"]
    colour: str
    layers: int = Field(ge=1)


class Stone(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["stone"]
    weight: float
    parts: list[int | dict[str, int]] = []

    @model_validator(mode="after")
    def heavy(self) -> "Stone":
        if self.weight < 1:
            raise ValueError("a stone weighs one or more")
        return self


class Order(BaseModel):
    item: Annotated[Paint | Stone, Field(discriminator="kind")]
    odd: dict[str, int] = {}
    when: clock.Rfc3339 | None = None


class OutOfPaint(Problem):
    """The paint has run out.

    Ask for `stone` instead.
    """

    status = 409


def build() -> FastAPI:
    app = FastAPI(dependencies=[Depends(only_known_query)])
    handlers.install(app)
    catalogue.install(app)
    middleware.install(app, max_body_bytes=LIMIT, exempt=lambda path: path == "/upload")
    router = APIRouter(prefix="/shop", dependencies=[Depends(middleware.json_only)], route_class=StrictJSONRoute)

    @router.post("/orders", responses=catalogue.responses(OutOfPaint, Conflict))
    async def order(order: Order, key: idempotency.IdempotencyKey) -> dict[str, object]:
        if isinstance(order.item, Paint) and order.item.colour == "none":
            raise OutOfPaint("There is no 'none' left.", pointer="/item/colour", left=0)
        return {"key": key, "when": order.when and clock.rfc3339(order.when)}

    @router.get("/orders")
    async def orders(
        request: Request,
        response: Response,
        limit: pages.Limit,
        cursor: pages.CursorText,
        colour: str | None = None,
        also: Annotated[list[str] | None, Query()] = None,
    ) -> pages.Page[int]:
        filters = {"colour": colour}
        start = pages.Cursor.decode(cursor, filters, types=(int,)).key[0] if cursor is not None else -1
        assert isinstance(start, int)
        rows = [number for number in range(120) if number > start][: limit + 1]
        page = pages.page_of(rows, limit, lambda number: (number,), filters)
        pages.link_next(request, response, page.next)
        return pages.Page(items=page.rows, next=page.next)

    @router.get("/orders/{number}")
    async def one(number: int, request: Request, response: Response, wait: prefer.Wait) -> dict[str, object]:
        tag = conditional.etag(number)
        if unchanged := conditional.not_modified(request, tag):
            return unchanged  # type: ignore[return-value]
        response.headers["ETag"] = tag
        if wait is not None:
            response.headers["Preference-Applied"] = prefer.applied(wait)
        return {"number": number, "wait": wait}

    @router.get("/picture")
    async def picture(request: Request) -> Response:
        chosen = negotiation.negotiated(request, ("image/png", "image/svg+xml"))
        return Response(b"", media_type=chosen, headers={"Vary": "Accept"})

    app.include_router(router)

    @app.get("/fails")
    async def fails() -> None:
        raise RuntimeError("the secret is 42")

    @app.get("/fails-halfway")
    async def fails_halfway() -> Response:
        async def body():
            yield b"so far"
            raise RuntimeError("the secret is 42")

        return StreamingResponse(body())

    @app.get("/raises/{status}")
    async def raises(status: int) -> None:
        raise HTTPException(status, headers={"X-Kept": "yes"})

    @app.get("/missing")
    async def missing() -> None:
        raise NotFound

    @app.get("/state")
    async def state(request: Request, strange: Annotated[int | None, Header()] = None) -> dict[str, object]:
        return dict(request.scope["state"], context=middleware.request_id.get(), strange=strange)

    @app.post("/upload")
    async def upload(request: Request) -> int:
        return sum([len(chunk) async for chunk in request.stream()])

    @app.post("/stream")
    async def stream(request: Request) -> int:
        return sum([len(chunk) async for chunk in request.stream()])

    @app.post("/form")
    async def form(file: Annotated[UploadFile, File()]) -> int:
        return len(await file.read())

    return app


@dataclass
class Api:
    """Asks the service in process."""

    app: FastAPI

    def __call__(self, method: str, path: str, **request: object) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://kit") as client:
                return await client.request(method, path, **request)  # type: ignore[arg-type]

        return asyncio.run(ask())


@pytest.fixture(scope="session")
def api() -> Api:
    return Api(build())


@pytest.fixture
def problem(api: Api) -> Callable[..., dict[str, object]]:
    """Asks, and returns the problem that must come back with this status."""

    def ask(status: int, method: str, path: str, **request: object) -> dict[str, object]:
        response = api(method, path, **request)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/problem+json"
        document: dict[str, object] = response.json()
        assert document["status"] == status
        return document

    return ask


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[str, int]]:
    """The same service behind a real server."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(build(), log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2)
    uvicorn_server = uvicorn.Server(config)
    thread = threading.Thread(target=uvicorn_server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not uvicorn_server.started:
        assert thread.is_alive()
    yield listener.getsockname()
    uvicorn_server.should_exit = True
    thread.join(10)
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)
