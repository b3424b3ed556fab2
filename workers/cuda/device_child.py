"""One device's share of a job, in an interpreter of its own: `python -m workers.cuda.device_child MODULE:FUNCTION ANSWER`.

Pickled arguments on standard input; (value, failure, traceback) pickled into the file ANSWER; exit code 0 where there is a value.
"""

import ctypes
import importlib
import pickle
import signal
import sys
import traceback
from typing import Any

from workers.cuda.errors import told
from workers.cuda.job import prepare
from workers.failures import JobFailure

PR_SET_PDEATHSIG = 1


def main() -> int:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    name, answer = sys.argv[1:]
    outcome = _outcome(name)
    with open(answer, "wb") as stream:
        pickle.dump(outcome, stream)
    return 0 if outcome[1] is None else 1


def _outcome(name: str) -> tuple[Any, BaseException | None, str]:
    module, _, function = name.partition(":")
    try:
        arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the job that started us
        prepare()
        return getattr(importlib.import_module(module), function)(*arguments), None, ""
    except Exception as fault:
        failure = told(fault)
        if not isinstance(failure, JobFailure | MemoryError):
            failure = RuntimeError(f"{type(fault).__name__}: {fault}")  # an exception of any kind may not pickle
        return None, failure, traceback.format_exc()


if __name__ == "__main__":
    sys.exit(main())
