"""Naming what is to be called on the other side of the border, without importing it here."""

import asyncio
import importlib
from collections.abc import Callable
from typing import Any


def call_by_name(dotted: str, *arguments: Any) -> Any:
    """Call `package.module:function`. An engine ships this one function by reference, so that the control plane
    can name what a worker runs without importing it."""
    module, _, name = dotted.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function(*arguments)


async def call_in_thread(dotted: str, *arguments: Any) -> Any:
    """The same beside the event loop of a worker, which must go on meanwhile."""
    return await asyncio.to_thread(call_by_name, dotted, *arguments)
