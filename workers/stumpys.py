"""STUMPY, imported in half the time: to read each kernel's flags it parses the whole file again for every function in it."""

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

SLOW = ("parse", "_splitlines_no_ff")
"""What of `ast` it calls so often with the same text; the second is not public, and not there in every version of Python."""


@contextmanager
def _remembering() -> Iterator[None]:
    module: Any = ast
    originals = {name: getattr(module, name) for name in SLOW if hasattr(module, name)}
    for name, original in originals.items():
        setattr(module, name, cache(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(module, name, original)


with _remembering():
    import stumpy
    from stumpy import cache as compiled
    from stumpy import config, core
    from stumpy.maamp import _get_multi_p_norm

__all__ = ["_get_multi_p_norm", "compiled", "config", "core", "stumpy"]
