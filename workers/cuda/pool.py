"""What STUMPY's GPU functions take for `multiprocessing` when they use several devices.

STUMPY changes the start method of the whole process and starts a pool, which a daemonic worker may not, and which imports `__main__`
again. Here each call runs in a fresh interpreter of its own, a child of the job: it dies with the job, and touches one device.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.cuda.errors import GpuFailed
from workers.failures import JobFailure, OutOfMemory


class Traceback(Exception):
    """The traceback of a device's process, as the cause of what is raised for it here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class DeviceCall:
    """One call on its way in a process of its own."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.answer = Path(tempfile.mkstemp(prefix="answer-")[1])
        name = f"{function.__module__}:{function.__name__}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workers.cuda.device_child", name, str(self.answer)], stdin=subprocess.PIPE
        )
        assert self.process.stdin is not None
        with self.process.stdin as stream:
            pickle.dump(arguments, stream)

    def wait(self) -> int:
        return self.process.wait()

    def get(self) -> Any:
        """The call's value, or its failure with the other process's traceback as the cause."""
        code = self.wait()
        told = self.answer.read_bytes()
        if not told:
            raise self._silent(code)
        # Written by our own child into the job's own folder.
        value, failure, traceback = pickle.loads(told)  # noqa: S301
        if failure is not None:
            raise failure from Traceback(traceback)
        return value

    def _silent(self, code: int) -> JobFailure:
        if code == -signal.SIGKILL:
            return OutOfMemory(
                "The system killed the process of one GPU, most often because the worker's memory ran out. "
                "Use a shorter series, or a worker with more memory."
            )
        return GpuFailed(
            f"The process of one GPU ended with code {code} and without a word; the job's log may say more."
        )


class Pool:
    """As many processes as calls. The first that fails interrupts the job's own share, which may still have hours to go."""

    def __init__(self, processes: int | None = None) -> None:
        self.calls: list[DeviceCall] = []
        self.failed: DeviceCall | None = None
        signal.signal(signal.SIGUSR1, self._interrupt)

    def apply_async(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> DeviceCall:
        call = DeviceCall(function, arguments)
        self.calls.append(call)
        threading.Thread(target=self._watch, args=(call,), name="device", daemon=True).start()
        return call

    def close(self) -> None:
        """Nothing: no process waits for more calls."""

    def join(self) -> None:
        for call in self.calls:
            call.wait()

    def _watch(self, call: DeviceCall) -> None:
        if call.wait() != 0:
            self.failed = call
            os.kill(os.getpid(), signal.SIGUSR1)

    def _interrupt(self, number: int, frame: object) -> None:
        if self.failed:
            self.failed.get()


class Processes:
    """The two names of `multiprocessing` that STUMPY uses."""

    Pool = Pool

    @staticmethod
    def set_start_method(method: str, force: bool = False) -> None:
        """Nothing: the start method is the process's own business."""
