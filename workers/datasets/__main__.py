"""`python -m workers.datasets`: one request on stdin, one answer on stdout, then gone. Limits itself before it reads.

Exit status 0 with an answer; anything else is our failure, told on stderr, and says nothing about the file.
"""

import os
import resource
import signal
import sys
from types import FrameType

from workers.datasets.contract import ReadRequest
from workers.datasets.refusals import TooLarge

GRACE_SECONDS = 5
"""Between the refusal for taking too long and the kernel's kill, should the refusal not get a word in."""


def limit(request: ReadRequest) -> None:
    """Bind this process to what the request allows. Called before numpy and pyarrow are imported."""
    last_second = request.max_cpu_seconds + GRACE_SECONDS

    def too_long(signal_number: int, frame: FrameType | None) -> None:
        at_most(resource.RLIMIT_CPU, last_second, last_second)  # the signal would come again every second
        raise TooLarge(
            f"Reading the file takes more than {request.max_cpu_seconds} seconds of computing, which is the limit here. "
            "Send fewer rows or columns, or Parquet, which reads fastest."
        )

    signal.signal(signal.SIGXCPU, too_long)
    at_most(resource.RLIMIT_CPU, request.max_cpu_seconds, last_second)
    at_most(resource.RLIMIT_AS, request.max_memory_bytes, request.max_memory_bytes)
    at_most(resource.RLIMIT_CORE, 0, 0)
    # The shortest row of a column is a line end: one byte of text, eight of float64.
    file_bytes = 8 * request.max_unpacked_bytes + (1 << 20)
    at_most(resource.RLIMIT_FSIZE, file_bytes, file_bytes)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # the others reserve address space by the gigabyte


def at_most(kind: int, soft: int, hard: int) -> None:
    """Set a limit, or leave the tighter one this process was born with."""
    _, born_with = resource.getrlimit(kind)
    hard = hard if born_with == resource.RLIM_INFINITY else min(hard, born_with)
    resource.setrlimit(kind, (min(soft, hard), hard))


def main() -> None:
    """Read one request, answer it."""
    request = ReadRequest.model_validate_json(sys.stdin.buffer.read())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    limit(request)

    import pyarrow

    from workers.datasets.reading import read

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    with answers:
        answers.write(read(request).to_json())


if __name__ == "__main__":
    main()
