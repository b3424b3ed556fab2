"""The worker's way to the server: join, claim, report. Every call may find the server away, and says so in one way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx

from workers.contract import PROTOCOL, VERSION, Claim, Join, Report, ReportAnswer, StorageFacts, Task

PROBLEM: Final = "application/problem+json"
PROBE_SECONDS = 180.0
"""All workers probe at once; the slowest decides."""

PASSING = frozenset({408, 413, 425, 429})
"""Refusals of the moment, by a proxy for instance; what was sent may be sent again."""


class ServerAway(Exception):
    """The server did not answer; try again."""


class Refused(Exception):
    """The server said no: this worker's version, its token, or a claim that another execution holds."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Unknown(Refused):
    """The server does not know this worker, for instance since it lost sight of it: join again."""


class Link:
    """HTTP to one server. Thread-safe."""

    def __init__(self, server: str, token: str | None, timeout_seconds: float = 10.0) -> None:
        headers = {PROTOCOL: VERSION} | ({"Authorization": f"Bearer {token}"} if token else {})
        # trust_env off: a proxy variable meant for the internet must not swallow calls to our own server.
        self._seconds = timeout_seconds
        self._http = httpx.Client(base_url=server, headers=headers, timeout=timeout_seconds, trust_env=False)

    def storage(self) -> StorageFacts:
        return StorageFacts.model_validate(self.send("GET", "/internal/storage").json())

    def join(self, join: Join) -> None:
        self._post("/internal/workers", join.model_dump(mode="json"))

    def leave(self, worker: str) -> None:
        self._post(f"/internal/workers/{worker}/leave", {})

    def claim(self, attempt: str, claim: Claim) -> Task:
        return Task.model_validate(self._post(f"/internal/attempts/{attempt}/claim", claim.model_dump(mode="json")))

    def report(self, worker: str, report: Report) -> ReportAnswer:
        answer = self._post(f"/internal/workers/{worker}/report", report.model_dump(mode="json"))
        return ReportAnswer.model_validate(answer)

    def probe(self, attempt: str, claim: str, check: str) -> dict[str, Any]:
        """Have the server ask all workers to probe again: {"workers": {id: {"probes", "error"}}, "problem"}."""
        path = f"/internal/attempts/{attempt}/probes"
        answer: dict[str, Any] = self._post(path, {"claim": claim, "check": check}, PROBE_SECONDS)
        return answer

    def close(self) -> None:
        self._http.close()

    def send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        """One call, with the parts that `httpx.Client.request` takes. Raises ServerAway, Refused."""
        try:
            response = self._http.request(method, path, **parts)
        except httpx.TransportError as fault:
            raise ServerAway(f"{type(fault).__name__}: {fault}") from fault
        _check(response, path)
        return response

    @contextmanager
    def receive(self, path: str) -> Iterator[httpx.Response]:
        """An answer that is read bit by bit. Raises ServerAway, Refused; so does reading it, within the context."""
        try:
            with self._http.stream("GET", path) as response:
                if not response.is_success:
                    response.read()
                _check(response, path)
                yield response
        except httpx.TransportError as fault:
            raise ServerAway(f"{type(fault).__name__}: {fault}") from fault

    def _post(self, path: str, body: dict[str, Any], seconds: float | None = None) -> Any:
        response = self.send("POST", path, json=body, timeout=seconds or self._seconds)
        return response.json() if response.content else None


def _check(response: httpx.Response, path: str) -> None:
    if response.is_success:
        return
    # The server says no as a problem; whoever stands between, and answers while it starts, says something else.
    is_the_servers = response.headers.get("content-type", "").startswith(PROBLEM)
    if response.status_code in PASSING or not 400 <= response.status_code < 500 or not is_the_servers:
        raise ServerAway(f"{path} answered {response.status_code}: {_words(response)}")
    raise (Unknown if response.status_code == 404 else Refused)(response.status_code, _words(response))


def _words(response: httpx.Response) -> str:
    """What a refusal says; whoever stands between may have answered in HTML."""
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
