"""The command line of `python -m app`: the listening sockets, signals, and `keys`."""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from app import settings as knobs
from app.db.migrate import DatabaseUnusable
from app.keys import command as keys
from app.keys.operators import listening, protocol
from app.kit.own_hosts import is_loopback
from app.life import Life
from app.locks import locks_of
from app.services import prepare
from app.settings import Settings
from app.starting import CannotStart, log_to_stderr, settings_of, with_join_token


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m app",
        description="The Tidemill server.",
        epilog="Settings, as environment variables or in a .env file:\n" + knobs.table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", type=int, help="port to listen on; 0 takes a free one")
    parser.add_argument("--home", type=Path, help="folder of the database, datasets and artifacts")
    parser.add_argument(
        "--insecure", action="store_true", help="listen beyond loopback although anyone may then do anything"
    )
    commands = parser.add_subparsers(dest="command", metavar="keys", title="other commands")
    keys.describe(commands.add_parser("keys", help="make, list and revoke the keys of callers; see `keys --help`"))
    options = parser.parse_args()
    if sys.platform != "linux":
        print("Tidemill runs on Linux only: it relies on fork, pidfds and sessions.", file=sys.stderr)
        return 2
    said = {name: value for name in ("host", "port", "home") if (value := getattr(options, name)) is not None}
    serving = options.command is None
    try:
        settings = settings_of(said)
        log_to_stderr(settings.log_level if serving else "warning")
        if not serving:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # one that is stopped has not done what it was asked
            return keys.run(options, settings)
        refuse_open_door(settings, options.insecure)
        with locks_of(settings):
            prepare(settings)
            keys.warn_without_keys(settings)
            return serve(with_join_token(settings))
    except (CannotStart, DatabaseUnusable, OSError) as reason:
        print(f"Tidemill cannot start: {reason}" if serving else f"keys: {reason}", file=sys.stderr)
        return 1


def refuse_open_door(settings: Settings, insecure: bool) -> None:
    """Without keys only this machine may reach the server."""
    if settings.auth == "off" and not insecure and not is_loopback(settings.host):
        raise CannotStart(
            f"TIDEMILL_HOST is {settings.host}, which others can reach, and TIDEMILL_AUTH is off. Ask callers for keys with "
            "TIDEMILL_AUTH=keys, or listen on 127.0.0.1 behind a proxy that asks who is there, or start with --insecure on a network "
            "where anyone may do anything."
        )


def listen(host: str, port: int) -> socket.socket:
    """The listening socket, open before anything starts, so that workers find it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, connections get TCP_NODELAY from asyncio; else each answer waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as fault:
        listener.close()
        raise CannotStart(
            f"port {port} on {host} cannot be had ({fault.strerror}); stop what uses it, or choose another --port."
        ) from None
    listener.listen(2048)
    return listener


class Server(uvicorn.Server):
    """uvicorn with our own handling of signals: its own re-raises SIGTERM at the end, and a drained server has not failed.

    It answers on `operators`, HOME's socket, too.
    """

    def __init__(self, config: uvicorn.Config, operators: socket.socket) -> None:
        super().__init__(config)
        self._operators = operators

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        speak = protocol(self.config.loaded_app, self)
        self.servers.append(await asyncio.get_running_loop().create_server(speak, sock=self._operators))

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        """The first signal drains while workers can still report; a second one ends the draining."""
        self._leaving = asyncio.ensure_future(self._leave())

    async def _leave(self) -> None:
        life: Life | None = getattr(self.config.app.state, "life", None)  # type: ignore[union-attr]
        if life:
            await life.leave()
        self.should_exit = True


def serve(settings: Settings) -> int:
    """Run until SIGTERM or Ctrl-C. 0 after an orderly end."""
    from app.main import create_app

    # Embedded workers inherit it; a `.env` file is read by the server alone.
    os.environ["TIDEMILL_CUDA_SIMULATOR"] = str(settings.cuda_simulator).lower()
    os.environ["TIDEMILL_TRAINING_WARM"] = str(settings.training_warm).lower()
    listener = listen(settings.host, settings.port)
    settings = settings.model_copy(update={"port": listener.getsockname()[1]})
    app = create_app(settings, lambda house: print(f"Tidemill is ready at {settings.url}", flush=True))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5, server_header=False)
    with listening(settings.home) as operators:
        server = Server(config, operators)
        asyncio.run(server.serve(sockets=[listener]))
    return 0 if server.started else 1
