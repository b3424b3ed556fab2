"""Drawing a result in a short-lived child: `python -m workers.plot`, one JSON request on stdin, one answer on stdout.

Request: {"kind", "params": what was asked, without the series, "sources": {parameter: [Source]}, "summary", "result": path of
result.npz, or of a training job's metrics.csv, "format": "png"|"svg", "width", "height": pixels, "output": path, "max_memory_bytes"}.
Answer: {"ok": {}} or {"error": {"detail"}}. The same request gives the same bytes.
"""

import errno
import json
import os
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

from workers.environment import cache_folder

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLCONFIGDIR", str(cache_folder() / "matplotlib"))

TOO_BIG = "the plot needs more memory than it may use; ask for a smaller picture or a shorter series"


def main() -> None:
    """Answer one request. Whatever goes wrong is an answer too."""
    warnings.simplefilter("ignore")  # a glyph no font has, a legend with no room: nothing a caller can act on
    try:
        answer = _answer(json.load(sys.stdin))
    except Exception as fault:
        answer = _error(TOO_BIG if _for_want_of_memory(fault) else f"{type(fault).__name__}: {fault}")
    sys.stdout.write(json.dumps(answer) + "\n")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["format"] not in ("png", "svg"):
        return _error(f"a plot is 'png' or 'svg', not {request['format']!r}")
    from workers.plots.draw import draw

    if limit := request.get("max_memory_bytes"):
        # Under a limit that is exceeded already even a refusal may fail, in native code and with a signal.
        if int(limit) <= _address_space_bytes():
            return _error(TOO_BIG)
        resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
    output = Path(request["output"])
    unfinished = output.with_name(output.name + ".partial")
    try:
        draw(request, unfinished)
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
    return {"ok": {}}


def _address_space_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _for_want_of_memory(fault: Exception) -> bool:
    """Besides MemoryError: a file not mapped, a library not loaded, an extension that failed to say what it lacked."""
    if isinstance(fault, MemoryError | SystemError):
        return True
    return getattr(fault, "errno", None) == errno.ENOMEM or "failed to map" in str(fault)


def _error(detail: str) -> dict[str, Any]:
    return {"error": {"detail": detail}}


if __name__ == "__main__":
    main()
