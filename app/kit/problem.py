"""What a problem is, after RFC 9457: a class for each kind, whose docstring is the page that explains it."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from fastapi.responses import Response

from app.kit.strict_json import JSON, StrictJSONResponse

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with the input: where (an RFC 6901 JSON Pointer) and what."""

    pointer: str
    detail: str


class Problem(Exception):
    """Something the caller should know about. Subclass it, and the docstring becomes `/problems/<slug>`.

    A subclass names its `status`; `title` and `slug` follow from its name unless it says otherwise.
    """

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Problem"
    slug: ClassVar[str] = "problem"
    retry_after_seconds: ClassVar[int | None] = None

    _by_slug: ClassVar[dict[str, "type[Problem]"]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", cls.__name__).lower()
        if "slug" not in cls.__dict__:
            cls.slug = words.replace(" ", "-")
        if "title" not in cls.__dict__:
            cls.title = words.capitalize()
        assert cls.__doc__, f"{cls.__name__} needs a docstring: it is the page that explains the problem"
        known = cls._by_slug.setdefault(cls.slug, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{cls.__qualname__} and {known.__qualname__} both claim /problems/{cls.slug}")
        cls._by_slug[cls.slug] = cls

    def __init__(
        self,
        detail: str | None = None,
        *,
        pointer: str | None = None,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        **extra: JSON,
    ) -> None:
        """`pointer` is short for one error there, saying `detail`. `extra` become members of the document."""
        self.detail = self.summary() if detail is None else detail
        super().__init__(self.detail)
        self.errors = (*errors, *([] if pointer is None else [FieldError(pointer, self.detail)]))
        self.headers = dict(headers or {})
        if self.retry_after_seconds is not None and "retry-after" not in map(str.lower, self.headers):
            self.headers["Retry-After"] = str(self.retry_after_seconds)
        self.extra = extra

    @classmethod
    def uri(cls) -> str:
        """The relative URI which names this kind of problem and answers with its page."""
        return f"/problems/{cls.slug}"

    @classmethod
    def page(cls) -> str:
        """The docstring, unindented."""
        return inspect.cleandoc(cls.__doc__ or cls.title)

    @classmethod
    def summary(cls) -> str:
        """The docstring's first paragraph, as one line."""
        return " ".join(cls.page().split("\n\n")[0].split())

    def document(self, instance: str) -> dict[str, Any]:
        """The members of RFC 9457, then the extras, which may not replace them."""
        document: dict[str, Any] = {
            "type": self.uri(),
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
        }
        if self.errors:
            document["errors"] = [asdict(error) for error in self.errors]
        return document | {name: value for name, value in self.extra.items() if name not in document}

    def response(self, path: str) -> Response:
        """The answer to a request for `path` (decoded, as ASGI has it)."""
        document = self.document(quote(path, safe="/:@!$&'()*+,;=~", errors="replace"))
        return StrictJSONResponse(document, self.status, self.headers, media_type=MEDIA_TYPE)


def catalogue() -> dict[str, type[Problem]]:
    """Every kind of problem the program knows, by slug."""
    return dict(sorted(Problem._by_slug.items()))
