"""From source rows to what people see."""

from fastapi import Response

from app.db.tables import SourceRow
from app.kit.strict_json import StrictJSONResponse
from app.sources.schemas import SourceView


def source_view(source: SourceRow) -> SourceView:
    return SourceView.model_validate(source.model_dump())


def created(source: SourceRow, new: bool) -> Response:
    body = source_view(source).model_dump(mode="json")
    return StrictJSONResponse(body, 201 if new else 200, {"Location": f"/sources/{source.id}"})
