"""From key rows to what people see."""

from fastapi import Response

from app.db.tables import ApiKey
from app.keys.schemas import KeyView, NewKey
from app.kit.strict_json import StrictJSONResponse


def key_view(row: ApiKey) -> KeyView:
    return KeyView.model_validate(row.model_dump(exclude={"digest"}))


def created(row: ApiKey, key: str | None) -> Response:
    """The answer to the request that made it. Without `key` it may be kept, to be given again."""
    body = NewKey(**key_view(row).model_dump(), key=key)
    headers = {"Location": f"/keys/{row.id}", "Cache-Control": "no-store"}
    return StrictJSONResponse(body.model_dump(mode="json"), 201, headers)
