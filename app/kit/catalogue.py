"""Every kind of problem, for people at /problems and for machines in the OpenAPI document."""

import html
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from app.kit import problems
from app.kit.negotiation import negotiated
from app.kit.problems import FieldError, NotAcceptable, NotFound, Problem
from app.kit.strict_json import StrictJSONResponse

router = APIRouter(tags=["problems"])

_SCHEMA: Final = {"$ref": "#/components/schemas/ProblemDocument"}
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}code{background:#eee}"
)


class ProblemDocument(BaseModel):
    """An error, RFC 9457. Some kinds carry further members."""

    model_config = {"extra": "allow"}

    type: str = Field(description="A relative URI; GET it for an explanation.", examples=["/problems/not-found"])
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    instance: str = Field(description="The path of the request that failed.")
    errors: list[FieldError] | None = Field(default=None, description="Each fault of an invalid input.")


class ProblemKind(BaseModel):
    """A kind of problem."""

    type: str
    title: str
    status: int


class ProblemPage(ProblemKind):
    """A kind of problem and what there is to say about it."""

    description: str


def responses(*kinds: type[Problem]) -> dict[int | str, dict[str, Any]]:
    """What a route's `responses=` says of the problems it answers with; several of one status share an entry."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        entry = by_status.setdefault(
            kind.status, {"description": "", "content": {problems.MEDIA_TYPE: {"schema": _SCHEMA, "examples": {}}}}
        )
        entry["description"] = " · ".join(filter(None, [entry["description"], kind.title]))
        entry["content"][problems.MEDIA_TYPE]["examples"][kind.slug] = {"summary": kind.title, "value": _example(kind)}
        if kind.retry_after_seconds is not None:
            entry["headers"] = headers("Retry-After")
    return by_status


HEADERS: Final[dict[str, tuple[str, str]]] = {
    "ETag": ("string", "The version; send it in `If-None-Match` to hear only of changes."),
    "Idempotency-Replayed": ("string", "`true` where this is the first answer again."),
    "Link": ("string", 'Where the next page is, `rel="next"`.'),
    "Location": ("string", "Where to find it."),
    "Preference-Applied": ("string", "The `wait` that was honoured."),
    "Retry-After": ("integer", "Seconds after which to ask again."),
}


def headers(*names: str) -> dict[str, dict[str, Any]]:
    """What a response's `headers` says of these."""
    return {name: {"schema": {"type": HEADERS[name][0]}, "description": HEADERS[name][1]} for name in names}


def _example(kind: type[Problem]) -> dict[str, Any]:
    document = {"type": kind.uri(), "title": kind.title, "status": kind.status, "detail": kind.summary()}
    if kind is problems.InvalidInput:
        return document | {"instance": "/", "errors": [{"pointer": "/name", "detail": "is required and is not there"}]}
    return document | {"instance": "/"}


@router.get(
    "/problems",
    response_model=list[ProblemKind],
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **responses(NotAcceptable)},
)
async def list_problems(request: Request) -> Response:
    """Every kind of problem this service answers with."""
    kinds, vary = problems.catalogue().values(), {"Vary": "Accept"}
    if negotiated(request, ("application/json", "text/html")) == "text/html":
        return HTMLResponse("".join(_html_list(kinds)), headers=vary)
    listed = [ProblemKind(type=kind.uri(), title=kind.title, status=kind.status) for kind in kinds]
    return StrictJSONResponse(listed, headers=vary)


@router.get(
    "/problems/{slug}",
    response_class=HTMLResponse,
    responses={
        200: {"content": {"application/json": {"schema": ProblemPage.model_json_schema()}}},
        **responses(NotFound, NotAcceptable),
    },
)
async def explain_problem(
    slug: Annotated[str, Path(description="The last part of the problem's `type`.")], request: Request
) -> Response:
    """What a kind of problem means and what to do about it."""
    kind = problems.catalogue().get(slug)
    if kind is None:
        raise NotFound("No problem has this name. `GET /problems` lists those there are.")
    vary = {"Vary": "Accept"}
    if negotiated(request, ("text/html", "application/json")) == "text/html":
        return HTMLResponse("".join(_html(kind)), headers=vary)
    page = ProblemPage(type=kind.uri(), title=kind.title, status=kind.status, description=kind.page())
    return StrictJSONResponse(page, headers=vary)


def _head(title: str) -> str:
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f"{head}<h1>{title}</h1>"


def _html_list(kinds: Iterable[type[Problem]]) -> Iterator[str]:
    yield _head("Problems") + "<ul>"
    for kind in kinds:
        yield f'<li><a href="{kind.uri()}">{html.escape(kind.title)}</a>, status {kind.status}</li>'
    yield "</ul></html>"


def _html(kind: type[Problem]) -> Iterator[str]:
    yield _head(html.escape(kind.title))
    yield f"<p>Status {kind.status}, <code>{kind.uri()}</code></p>"
    for paragraph in re.split(r"\n\s*\n", html.escape(kind.page())):
        yield "<p>" + re.sub("``?([^`]+)``?", r"<code>\1</code>", paragraph) + "</p>"
    yield "</html>"


def install(app: FastAPI) -> None:
    """Serve the catalogue, and make the OpenAPI document tell the truth about errors."""
    app.include_router(router)
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        return document_defaults(generate())

    app.openapi = openapi  # type: ignore[method-assign]


def document_defaults(openapi: dict[str, Any]) -> dict[str, Any]:
    """Say which problems any operation may answer with, in place of FastAPI's own 422. Twice is as good as once."""
    schemas = openapi.setdefault("components", {}).setdefault("schemas", {})
    schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= schema.pop("$defs", {}) | {"ProblemDocument": schema}
    for path in openapi.get("paths", {}).values():
        for operation in path.values():
            if isinstance(operation, dict) and "responses" in operation:
                _complete(operation)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return openapi


def _complete(operation: dict[str, Any]) -> None:
    answers = operation["responses"]
    kinds: list[type[Problem]] = [problems.Internal, problems.InvalidInput]  # any may be asked with an unknown query
    if "application/json" in answers.get("422", {}).get("content", {}):
        del answers["422"]
    if operation.get("security"):
        kinds += [problems.Unauthorized, problems.Forbidden]
    if "requestBody" in operation:
        kinds += [problems.BadRequest, problems.PayloadTooLarge]
        if "application/json" in operation["requestBody"].get("content", {}):
            kinds.append(problems.UnsupportedMediaType)
    for status, entry in responses(*kinds).items():
        known = answers.setdefault(str(status), entry)
        content = known.setdefault("content", entry["content"])
        examples = content.setdefault(problems.MEDIA_TYPE, {"schema": _SCHEMA}).setdefault("examples", {})
        for slug, example in entry["content"][problems.MEDIA_TYPE]["examples"].items():
            if examples.setdefault(slug, example) is example and known is not entry:
                known["description"] += f" · {example['summary']}"
    operation["responses"] = dict(sorted(answers.items()))
