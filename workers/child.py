"""What a child of the nursery does: run one named function, report on its pipe, end without touching what it inherited.

Mostly it is a fork. What must not share memory with a warm parent (CUDA does not survive a fork) becomes a fresh interpreter first:
`python -m workers.child BIRTH`.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from workers import births
from workers.births import Birth
from workers.contract import call_by_name
from workers.failures import as_problem
from workers.pipe import PipeReporter

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def become(birth: Birth, fresh: Mapping[str, str] | None) -> NoReturn:
    """Be the child: this very process, or, with `fresh` variables, a new interpreter in its place."""
    if fresh is None:
        run(birth)
    try:
        for descriptor in (birth.payload, birth.report, *birth.born_with):
            os.set_inheritable(descriptor, True)
        command = [sys.executable, "-m", "workers.child", json.dumps(asdict(birth))]
        os.execve(sys.executable, command, {**os.environ, **fresh})  # noqa: S606 - a shell is what must not be here
    finally:
        os._exit(1)


def run(birth: Birth) -> NoReturn:
    """Never returns: `os._exit` runs none of the parent's exit handlers."""
    births.born_with, code = birth.born_with, 1
    workers_log = os.fdopen(os.dup(2), "w", errors="backslashreplace")
    try:
        os.setsid()
        prctl = ctypes.CDLL(None).prctl
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # A daemon that it starts stays below it, and so ends with it and not with a sibling, whose strays the nursery ends.
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _redirect_output(birth.log)
        reporter = PipeReporter(birth.report)
        try:
            with os.fdopen(birth.payload, "rb") as stream:
                arguments: list[Any] = json.load(stream)
            reporter.returned(call_by_name(birth.call, *arguments, reporter))
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


def main() -> NoReturn:
    told = json.loads(sys.argv[1])
    birth = Birth(**{**told, "born_with": tuple(told["born_with"])})
    for descriptor in (birth.payload, birth.report, *birth.born_with):
        os.set_inheritable(descriptor, False)
    run(birth)


if __name__ == "__main__":
    main()
