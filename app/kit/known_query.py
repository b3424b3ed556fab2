"""Query parameters that a route does not know are refused: a misspelt filter must not look like no filter."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from app.kit.pointers import MOST_ERRORS, pointer
from app.kit.problems import FieldError, InvalidInput
from app.kit.sentences import not_known


def known(route: object) -> list[str]:
    """The names of the query parameters that `route` declares, itself or through its dependencies."""
    fields = get_flat_params(route.dependant) if isinstance(route, APIRoute) else []
    return [field.alias for field in fields if isinstance(field.field_info, Query)]


async def only_known_query(request: Request) -> None:
    """A dependency of the whole application."""
    names = known(request.scope.get("route"))
    strange = [name for name in dict.fromkeys(request.query_params) if name not in names][:MOST_ERRORS]
    if strange:
        errors = [FieldError(pointer("query", name), not_known(name, names)) for name in strange]
        raise InvalidInput(errors[0].detail, errors=errors)
