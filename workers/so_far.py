"""The profile so far in a short-lived child: `python -m workers.so_far`, one JSON request on stdin, one answer on stdout.

Request: {"checkpoint": path, "params": what was asked, without the series, "sources": {parameter: [Source]}, "media_type", "output":
path, "threads": of a worker, "max_memory_bytes"}. Answer: {"ok": {"coverage"}} or {"error": {"detail"}}.
"""

import json
import os
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

from workers.environment import compute_environment


def main() -> None:
    """Answer one request. Whatever goes wrong is an answer too."""
    warnings.simplefilter("ignore")
    try:
        answer = _answer(json.load(sys.stdin))
    except MemoryError:
        answer = {"error": {"detail": "the profile so far needs more memory than it may use"}}
    except Exception as fault:
        answer = {"error": {"detail": f"{type(fault).__name__}: {fault}"}}
    sys.stdout.write(json.dumps(answer) + "\n")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(compute_environment(request["threads"]))  # whose kernels the workers have compiled
    from workers.matrix_profile.so_far import write

    if limit := request.get("max_memory_bytes"):
        resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
    return {"ok": {"coverage": write(request, Path(request["output"]))}}


if __name__ == "__main__":
    main()
