"""`python -m app.sources`: one request on stdin, one answer on stdout, then gone. Limits itself before it looks into the archive."""

import errno
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from app.sources.archive import Unfit
from app.sources.unpacking import unpack
from workers.datasets.__main__ import at_most


def main() -> None:
    """Read one request, answer it: `{"ok": …}`, `{"error": why not}`, or `{"full": …}` where the disk is."""
    request = json.load(sys.stdin)
    at_most(resource.RLIMIT_CPU, request["max_cpu_seconds"], request["max_cpu_seconds"])
    at_most(resource.RLIMIT_AS, request["max_memory_bytes"], request["max_memory_bytes"])
    at_most(resource.RLIMIT_FSIZE, request["max_unpacked_bytes"], request["max_unpacked_bytes"])
    at_most(resource.RLIMIT_CORE, 0, 0)
    # What lies about where the server was started is not installed.
    here = os.getcwd()
    sys.path[:] = [each for each in sys.path if each not in ("", here)]
    try:
        facts = unpack(Path(request["path"]), request["name"], Path(request["folder"]), request["max_unpacked_bytes"])
        answer: dict[str, Any] = {"ok": facts}
    except Unfit as refusal:
        answer = {"error": str(refusal)}
    except OSError as fault:
        if fault.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        answer = {"full": fault.strerror}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
