"""What a key looks like on the wire."""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.callers import Scope
from app.kit.clock import Rfc3339, now
from workers.contract import Text

EXAMPLES: Final[dict[str, Any]] = {
    "colleague": {
        "summary": "A key for a colleague who submits jobs and looks at them",
        "value": {"owner": "ada", "name": "ada's laptop", "scopes": ["read", "submit"]},
    },
    "dashboard": {
        "summary": "A key that may only look, for a while",
        "value": {"owner": "ada", "scopes": ["read"], "expires_at": "2100-01-01T00:00:00Z"},
    },
}

OWNER_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$"


def _each_once(scopes: list[Scope]) -> list[Scope]:
    return [scope for scope in Scope if scope in scopes]


def _to_come(time: Rfc3339) -> Rfc3339:
    if time <= now():
        raise ValueError("must lie in the future")
    return time


class KeyRequest(BaseModel):
    """A key to be made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    owner: str | None = Field(
        None,
        pattern=OWNER_PATTERN,
        description="Whose things it reaches: all keys of one owner see the same jobs, datasets and sources. Default: the caller.",
    )
    name: Text = Field("", max_length=255, description="What it is for, in your own words.")
    scopes: Annotated[list[Scope], AfterValidator(_each_once)] = Field(
        min_length=1,
        max_length=16,
        description="`read` looks; `submit` makes, stops and deletes jobs and datasets; `source` uploads code and uses it in jobs; "
        "`admin` includes these and manages keys.",
    )
    expires_at: Annotated[Rfc3339, AfterValidator(_to_come)] | None = Field(
        None, description="From when on it is no longer taken; null for never."
    )


class KeyView(BaseModel):
    """A key, without its secret."""

    id: str
    owner: str
    name: str
    scopes: list[Scope]
    created_at: Rfc3339
    expires_at: Rfc3339 | None
    last_used_at: Rfc3339 | None = Field(description="To the minute; null where it never was.")


class NewKey(KeyView):
    """A key, with its secret: the only time that it is shown."""

    key: str | None = Field(
        description="What to send in `Authorization: Bearer …`. Nothing here keeps it, so it is null where the "
        "answer is given again under an `Idempotency-Key`."
    )
