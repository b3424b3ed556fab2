"""What a forked child does: run one named function, report on its pipe, end without touching what it inherited."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from typing import Any, NoReturn

from workers.contract import call_by_name
from workers.failures import as_problem
from workers.pipe import PipeReporter

PR_SET_PDEATHSIG = 1


def run(call: str, payload: int, report: int, log: str | None) -> NoReturn:
    """Become the child. Never returns: `os._exit` runs none of the parent's exit handlers."""
    code = 1
    workers_log = os.fdopen(os.dup(2), "w")
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _redirect_output(log)
        reporter = PipeReporter(report)
        try:
            with os.fdopen(payload, "rb") as stream:
                arguments: list[Any] = json.load(stream)
            reporter.returned(call_by_name(call, *arguments, reporter))
            code = 0
        except BaseException as fault:
            # A user is told what happened and what to do; how our code came to it is for those who run the worker.
            traceback.print_exc(file=workers_log)
            workers_log.flush()
            reporter.raised(as_problem(fault))
    except BaseException:
        traceback.print_exc(file=workers_log)  # before there was a reporter to tell
        workers_log.flush()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _redirect_output(log: str | None) -> None:
    """What the job prints goes to its own log, line by line, so that whoever follows sees it at once."""
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, standard in ((nothing, 0), (target, 1), (target, 2)):
        os.dup2(descriptor, standard)
    os.close(nothing)
    os.close(target)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False, encoding="utf-8", errors="backslashreplace")
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, encoding="utf-8", errors="backslashreplace")
