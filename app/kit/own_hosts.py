"""Web pages from elsewhere must not reach a server through a browser on its network.

A page can make its own name resolve to the server's address (DNS rebinding), or post across sites; `Host` and `Origin` tell.
"""

import ipaddress
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.kit.problems import HostNotAllowed, OriginNotAllowed, Problem

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
ANY: Final = "*"
PORTS: Final = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_address(host: str) -> bool:
    """Whether `host` is an IP address. A page can make its own name lead here, and no address but ours."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class OwnHosts:
    """421 for a `Host` that is neither loopback nor one of `hosts`; 403 for a change asked for by a page of another origin.

    The server's own pages have the host and the port that were asked; those of `page_hosts` may have another port, as behind a proxy.
    With `any_address` an IP address will do as well, and with `*` among the hosts any name. A page of such a name still changes nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str] = (),
        page_hosts: Collection[str] | None = None,
        any_address: bool = False,
    ) -> None:
        self.app, self.hosts, self.any_address = app, {host.lower() for host in hosts}, any_address
        pages = self.hosts if page_hosts is None else {host.lower() for host in page_hosts}
        self.page_hosts = pages - {ANY}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope["method"], Headers(scope=scope)) if scope["type"] == "http" else None
        answer = problem.response(scope["path"]) if problem else self.app
        await answer(scope, receive, send)

    def _problem(self, method: str, headers: Headers) -> Problem | None:
        authority, origin = headers.get("host"), headers.get("origin")
        if authority is not None and not self._ours(_host(f"//{authority}")):
            return HostNotAllowed(f"This server is not {authority[:200]!r}; call it by the address it listens on.")
        if method in SAFE_METHODS or origin is None:
            return None
        if not _same_place(origin, authority) and _host(origin) not in self.page_hosts:
            return OriginNotAllowed(f"A page of {origin[:200]!r} asked for this, and only pages of this server may.")
        return None

    def _ours(self, host: str) -> bool:
        named = host in self.hosts or ANY in self.hosts
        return named or is_loopback(host) or (self.any_address and is_address(host))


def _same_place(origin: str, authority: str | None) -> bool:
    """Whether a page of `origin` was loaded from the host and port that are asked now."""
    scheme, _, place = origin.partition("://")
    if not place or authority is None:
        return False
    asked = f"{scheme}://{authority}"
    return (_host(origin), _port(origin)) == (_host(asked), _port(asked))


def _port(url: str) -> int | None:
    try:
        parts = urlsplit(url)
        return parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
