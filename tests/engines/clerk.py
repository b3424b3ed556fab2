"""A server that only listens: it takes workers in, notes what they say, and answers claims as a test wants."""

import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from workers.contract import STORAGE_MARK

REFUSE, HOLD = 409, 503
"""A claim answered with REFUSE ends at once; one answered with HOLD is asked again, for as long as the driver lives."""


class Clerk:
    def __init__(self) -> None:
        self.joined: dict[str, dict[str, Any]] = {}
        """worker's id → its introduction."""
        self.left: set[str] = set()
        self.claims: dict[str, list[str]] = {}
        """attempt → the nonces that asked for it: one for each execution."""
        self.asked: dict[str, int] = {}
        """nonce → how often it asked."""
        self.answer_to_claims = REFUSE
        self._storage = tempfile.TemporaryDirectory(prefix="clerk")
        (Path(self._storage.name) / "jobs").mkdir()
        (Path(self._storage.name) / STORAGE_MARK).write_text("sto_clerk")
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._storage.cleanup()

    def worker(self, address: str) -> dict[str, Any] | None:
        """The introduction of the worker at an address, once it has joined."""
        return next((each for each in list(self.joined.values()) if each["address"] == address), None)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        match path.strip("/").split("/"):
            case ["internal", "storage"]:
                return 200, {"path": self._storage.name, "id": "sto_clerk"}
            case ["internal", "workers"]:
                self.joined[body["id"]] = body
            case ["internal", "workers", worker, "leave"]:
                self.left.add(worker)
            case ["internal", "workers", _, "report"]:
                return 200, {"acknowledged": [], "stop": []}
            case ["internal", "attempts", attempt, "claim"]:
                nonces = self.claims.setdefault(attempt, [])
                if body["nonce"] not in nonces:
                    nonces.append(body["nonce"])
                self.asked[body["nonce"]] = self.asked.get(body["nonce"], 0) + 1
                return self.answer_to_claims, {"detail": "not now"}
        return 204, None

    def _handler(clerk) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's, below
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                status, value = clerk.answer(self.path, body)
                content = b"" if value is None else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", f"application/{'problem+' if status >= 400 else ''}json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
