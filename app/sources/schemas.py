"""What a source looks like on the wire."""

from typing import Final, Literal

from pydantic import BaseModel, Field

from app.datasets.upload import Taken
from app.kit.clock import Rfc3339

MEDIA_TYPE: Final = "application/zip"

PACKAGES: Final = Taken(
    what="A source",
    media_types=(MEDIA_TYPE,),
    other_media_types=frozenset(
        (
            "",
            "application/octet-stream",
            "binary/octet-stream",
            "application/x-zip-compressed",
            "application/x-wheel+zip",
        )
    ),
    parts=(),
    advice="Send `curl -F file=@package.zip`, or `curl --data-binary @package.zip -H 'Content-Type: application/zip'`.",
)
"""A zip, whatever it is called; a wheel is one too."""


class SourceView(BaseModel):
    """An uploaded package."""

    id: str
    name: str
    format: Literal["zip", "wheel"]
    bytes: int
    sha256: str
    modules: list[str] = Field(description="What a job that names it can import, at the top level.")
    created_at: Rfc3339
