"""The documentation pages, with nothing on them that comes from elsewhere."""

from pathlib import Path
from typing import Any, Final

import fastapi_offline
from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_redoc_html
from fastapi.responses import HTMLResponse, RedirectResponse

LOGO: Final = "https://cdn.redoc.ly/redoc/logo-mini.svg"
"""The one address that ReDoc's own script would fetch from its maker."""

FAVICON: Final = "/static-offline-docs/favicon.png"

SWAGGER: Final = {
    "tryItOutEnabled": True,
    "displayRequestDuration": True,
    "defaultModelsExpandDepth": 0,
    "validatorUrl": None,  # else a server reached by its name shows a badge from swagger.io
}


def install(app: FastAPI) -> None:
    """Lead `/` to `/docs`, and serve `/redoc` with a script that asks nobody but this server; `/docs` comes with FastAPIOffline."""
    static = Path(fastapi_offline.__file__).parent / "static"
    script = (static / "redoc.standalone.js").read_text(encoding="utf-8").replace(LOGO, FAVICON)

    @app.get("/", include_in_schema=False)
    async def front_door() -> RedirectResponse:
        return RedirectResponse("/docs")

    @app.get("/redoc", include_in_schema=False)
    async def redoc() -> HTMLResponse:
        return get_redoc_html(
            openapi_url="/openapi.json",
            title=app.title,
            redoc_js_url="/redoc.js",
            redoc_favicon_url=FAVICON,
            with_google_fonts=False,
        )

    @app.get("/redoc.js", include_in_schema=False)
    async def redoc_script() -> Response:
        return Response(script, media_type="text/javascript", headers={"Cache-Control": "max-age=3600"})


def say_that_keys_are_optional(app: FastAPI) -> None:
    """Of a server that asks for none: which scope a key would need stays in the document."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        for path in document["paths"].values():
            for operation in path.values():
                if "security" in operation and {} not in operation["security"]:
                    operation["security"].append({})
        return document

    app.openapi = openapi  # type: ignore[method-assign]
