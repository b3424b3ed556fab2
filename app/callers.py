"""Who asks, and what they may. With `AUTH=off` whoever reaches the port is the one owner there is; with `AUTH=keys` a key tells.

Two steps: `app.keys.doorkeeper` finds out who asks, before a route is looked for; a route's parameter `caller` says which scope it takes.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from fastapi import Request, Security
from fastapi.security import HTTPBearer, SecurityScopes

from app.kit.problems import Forbidden, Unauthorized


class Scope(StrEnum):
    """What a key is for."""

    READ = "read"
    SUBMIT = "submit"
    SOURCE = "source"
    ADMIN = "admin"


@dataclass(frozen=True)
class CallerIdentity:
    name: str
    """The owner: what they made is theirs, and nobody else sees it."""
    scopes: frozenset[Scope] = frozenset({Scope.ADMIN})

    def may(self, scope: str) -> bool:
        """`admin` includes the others. It is no way to what another owner has."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def demand(self, scope: str, what: str) -> None:
        """Raise Forbidden unless they may do `what`, which takes `scope`."""
        if not self.may(scope):
            has = ", ".join(f"`{each}`" for each in Scope if each in self.scopes)
            raise Forbidden(f"{what} takes a key with the scope `{scope}`; this one has {has}.")


LOCAL: Final = CallerIdentity("local")
"""Whoever reaches a server that asks for no key."""
OPERATOR: Final = CallerIdentity("operator")
"""Whoever may open HOME's socket for the command line."""

CALLER: Final = "tidemill.caller"
"""Where in a request's scope the doorkeeper leaves the identity."""

_shown_in_the_schema = HTTPBearer(
    scheme_name="key",
    description="A key of this server, `tm_…`, where it runs with `AUTH=keys`. Each operation names the scope that the key must have; "
    "`admin` includes the others.",
    auto_error=False,
)


async def _caller(
    request: Request, needed: SecurityScopes, _header: Annotated[object, Security(_shown_in_the_schema)]
) -> CallerIdentity:
    identity: CallerIdentity | None = request.scope.get(CALLER)
    if identity is None:
        raise Unauthorized
    for scope in needed.scopes:
        identity.demand(scope, f"{request.method} {request.url.path}")
    return identity


Caller = Annotated[CallerIdentity, Security(_caller, scopes=[Scope.READ.value])]
"""Who looks at something."""
Submitter = Annotated[CallerIdentity, Security(_caller, scopes=[Scope.SUBMIT.value])]
"""Who has something computed, uploads data for it, stops it or clears it away."""
SourceKeeper = Annotated[CallerIdentity, Security(_caller, scopes=[Scope.SOURCE.value])]
"""Who brings code of their own, or takes it away."""
Admin = Annotated[CallerIdentity, Security(_caller, scopes=[Scope.ADMIN.value])]
"""Who makes, sees and revokes keys."""
