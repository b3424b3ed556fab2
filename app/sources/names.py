"""The names under which a package is imported: there must be one, and none may hide what is installed."""

import importlib.util
import sys
from collections.abc import Iterable
from importlib import metadata
from typing import Final

from app.sources.archive import Entry, Unfit, quoted

OURS: Final = frozenset({"app", "workers", "migrations"})
_NEEDED = """
cuda dask deepspeed distributed fsspec httpx jsonargparse lightning lightning_fabric lightning_utilities llvmlite matplotlib
numba numba_cuda numpy pandas psutil pyarrow pydantic pynvml pytorch_lightning ray scipy stumpy tensorboard torch torchaudio
torchmetrics torchvision triton typing_extensions yaml
"""
ON_WORKERS: Final = frozenset(_NEEDED.split())
"""What jobs need of the workers' packages, which need not be installed where the server is."""
STARTING: Final = frozenset({"sitecustomize", "usercustomize"})
"""What Python imports by itself when a process starts."""


def modules(entries: Iterable[Entry]) -> list[str]:
    """The top-level modules and packages, sorted. Raises Unfit where there is none, or where one hides another."""
    files, folders = set(), set()
    for entry in entries:
        top, *below = entry.path
        if below and entry.path[-1].endswith(".py"):
            folders.add(top)
        elif top.endswith(".py"):
            files.add(top.removesuffix(".py"))
    if "__init__" in files:
        raise Unfit(
            "The archive's top level has an `__init__.py`: it is a package's inside. Pack the folder, not what is in it."
        )
    if both := sorted(files & folders):
        raise Unfit(
            f"The archive has {quoted(both[0])} as a module and as a package; only one of them can be imported."
        )
    found = sorted(name for name in files | folders if name.isidentifier() and name.isascii())
    if not found:
        raise Unfit(
            "The archive's top level has nothing to import: neither a `name.py` nor a folder with `.py` files in it, whose name "
            "is one that Python can import (ASCII letters, digits and underscores)."
        )
    for name in found:
        if what := hidden(name):
            raise Unfit(f"The module {quoted(name)} would hide {what} of the same name. Give yours another name.")
    return found


def hidden(name: str) -> str | None:
    """What a top-level module of this name would hide or be hidden by. Finds modules, imports none."""
    if name in OURS:
        return "Tidemill's own module"
    if name in sys.stdlib_module_names or name in STARTING or name.startswith("__"):
        return "a module of Python itself"
    if name in ON_WORKERS or importlib.util.find_spec(name):
        return "an installed module"
    return None


def no_installed(entries: Iterable[Entry]) -> None:
    """Raise Unfit where a wheel's metadata would hide that of an installed distribution."""
    for top in {entry.path[0] for entry in entries if entry.path[0].endswith(".dist-info")}:
        name = top.removesuffix(".dist-info").split("-")[0]
        try:
            there = metadata.version(name)
        except metadata.PackageNotFoundError:
            there = None
        if there or name.lower() in ON_WORKERS:
            raise Unfit(f"The distribution {quoted(name)} is installed already{f' ({there})' if there else ''}.")
