"""The worker's end of a nursery: start it, fork pieces in it, kill them, hear how they ended."""

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workers.failures import JobFailure, OutOfMemory
from workers.hearing import ANSWERS, messages

log = logging.getLogger(__name__)

KILL_SECONDS = 5.0
"""A kill takes milliseconds; longer than this it will not happen."""

Listener = Callable[[dict[str, Any]], None]


class NurseryGone(JobFailure):
    """The process that forks the job's children ended; the worker starts another one for the next attempt."""

    slug, title = "worker-lost", "Worker lost"


@dataclass(frozen=True)
class Ending:
    """How a child ended: its last word, where it had one, and what the system says."""

    answer: dict[str, Any] | None
    """The message `returned` or `raised`."""
    code: int | None
    """The exit code, or the signal's number below zero; None where the nursery went with it."""
    killed: bool


@dataclass
class Piece:
    """One forked child, seen from the worker."""

    name: str
    nursery: "Nursery"
    report: int
    ended: threading.Event = field(default_factory=threading.Event)
    code: int | None = None
    killed: bool = False
    misheard: bool = False
    """Its listener failed at a message."""

    def follow(self, listener: Listener) -> Any:
        """Hand every message of the child to `listener` until it ends, and return its value.

        Raises the failure the child reported as `PieceFailed`, `PieceKilled` after `kill`, and a `JobFailure` when it died unasked.
        """
        ending = self.hear(listener)
        if ending.killed:
            raise PieceKilled
        match ending.answer:
            case {"type": "returned", "value": value}:
                return value
            case {"type": "raised", "problem": problem}:
                raise PieceFailed(problem)
        if ending.code == -signal.SIGKILL:
            raise OutOfMemory(
                "The system killed the process that computed the job, most often because memory ran out. "
                "Use a shorter series, or a worker with more memory."
            )
        if ending.code is None:
            raise NurseryGone("The process that forks the job's children ended in the middle of the job.")
        raise JobFailure(f"The process that computed the job ended with code {ending.code} and without a word.")

    def hear(self, listener: Listener) -> Ending:
        """Hand every message of the child to `listener` until it and all it started have ended.

        Raises nothing, whatever comes: a listener that fails is told of in the worker's log, and hears the next message.
        """
        answer: dict[str, Any] | None = None
        with os.fdopen(self.report, "rb") as stream:
            for message in messages(stream):
                if message["type"] in ANSWERS:
                    answer = message
                else:
                    self._hand_over(message, listener)
        self.ended.wait()
        return Ending(answer, self.code, self.killed)

    def _hand_over(self, message: dict[str, Any], listener: Listener) -> None:
        try:
            listener(message)
        except Exception:
            if not self.misheard:  # once: there may be a thousand of the kind
                log.exception("a message of type %.50r could not be taken", message["type"])
            self.misheard = True

    def signal(self, number: int) -> None:
        """Send the child itself a signal; nothing happens where it has ended."""
        self.nursery.send({"op": "signal", "name": self.name, "number": int(number)})

    def kill(self) -> None:
        """End the child and all it started, at once. Returns when the request is on its way; `follow` returns when it is done."""
        self.killed = True
        self.nursery.send({"op": "kill", "name": self.name})
        threading.Thread(target=self._see_to_it, name="kill", daemon=True).start()

    def _see_to_it(self) -> None:
        """A nursery that does not carry a kill out is itself out of order, and goes, with all its children."""
        if not self.ended.wait(KILL_SECONDS):
            self.nursery.process.kill()


class PieceKilled(Exception):
    """The child was killed because it was asked for."""


class PieceFailed(Exception):
    """The child reported a failure of its own; `problem` says which."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail"))
        self.problem = problem


class Nursery:
    """Owns one nursery process. `ready` is set once it is warm."""

    def __init__(
        self, preload: list[str], environment: Mapping[str, str], base: Mapping[str, str] | None = None
    ) -> None:
        """The nursery's environment is `environment`, on top of `base` or of this process's own."""
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "workers.nursery", "--socket", str(theirs.fileno())]
        for dotted in preload:
            command += ["--preload", dotted]
        whole = {**(os.environ if base is None else base), **environment}
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=whole, stdin=subprocess.DEVNULL)
        theirs.close()
        self.ready = threading.Event()
        self.gone = threading.Event()
        self._pieces: dict[str, Piece] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="nursery-listener", daemon=True)
        self._thread.start()

    def fork(
        self,
        call: str,
        arguments: list[Any],
        log: str | None = None,
        *,
        born_with: Sequence[int] = (),
        fresh: Mapping[str, str] | None = None,
    ) -> Piece:
        """Run `call(*arguments, reporter)` in a fresh child; `log` is the file that takes what it prints.

        born_with: descriptors the child inherits, as `workers.births.born_with`; ours stay open.
        fresh: the child is a new interpreter with these variables added to the environment, and no fork of what was warmed.
        """
        payload = os.memfd_create("arguments")
        _write_all(payload, json.dumps(arguments).encode())
        os.lseek(payload, 0, os.SEEK_SET)
        read_end, write_end = os.pipe()
        piece = Piece(name=uuid.uuid4().hex, nursery=self, report=read_end)
        with self._lock:
            self._pieces[piece.name] = piece
        request = {
            "op": "fork",
            "name": piece.name,
            "call": call,
            "log": log,
            "fresh": None if fresh is None else dict(fresh),
        }
        try:
            socket.send_fds(self._channel, [json.dumps(request).encode()], [payload, write_end, *born_with])
        except OSError as fault:
            os.close(read_end)
            raise NurseryGone("The process that forks the job's children has ended.") from fault
        finally:
            os.close(payload)
            os.close(write_end)
        return piece

    def wait_ready(self, seconds: float, unless: threading.Event | None = None) -> None:
        """Return when the nursery is warm, has ended, `seconds` are over, or `unless` is set."""
        deadline = time.monotonic() + seconds
        while not self.ready.wait(0.05) and not self.gone.is_set() and time.monotonic() < deadline:
            if unless is not None and unless.is_set():
                return

    def send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the nursery is gone, and with it all its children
            self._channel.send(json.dumps(message).encode())

    def close(self) -> None:
        """End the nursery and every child; returns when they are gone."""
        if not self.ready.is_set():
            self.process.kill()  # still warming, compiling perhaps: it hears nothing yet, and has no children
        with contextlib.suppress(OSError):  # it may have ended by itself
            self._channel.shutdown(socket.SHUT_RDWR)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join()
        self._channel.close()

    def _listen(self) -> None:
        while packet := self._receive():
            message = json.loads(packet)
            match message["op"]:
                case "ready":
                    self.ready.set()
                case "exit":
                    with self._lock:
                        piece = self._pieces.pop(message["name"])
                    piece.code = message["code"]
                    piece.ended.set()
        self.gone.set()
        with self._lock:
            orphans, self._pieces = list(self._pieces.values()), {}
        for piece in orphans:
            piece.ended.set()

    def _receive(self) -> bytes:
        try:
            return self._channel.recv(1 << 16)
        except OSError:
            return b""


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
