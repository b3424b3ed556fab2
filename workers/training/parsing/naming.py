"""Names in a configuration and what they stand for: the lists that are enforced, and imports that respect them.

jsonargparse's settings are of the whole process: this is done in children of a nursery, never in the nursery itself.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from jsonargparse import set_parsing_settings

from workers.training.parsing.faults import ConfigFaults
from workers.training.rules import Fault, is_allowed, modules_of


def lock_down(allow: Sequence[str], source: str | None) -> list[str]:
    """Let configurations of this process name only what `allow` and the package in `source` have, and read no file or URL.

    Returns the whole list. Without it, jsonargparse would import a class before it refuses it.
    """
    allowed = [*allow, *(modules_of(source) if source else ())]
    set_parsing_settings(
        import_path_denylist=["*"],
        import_path_allowlist=allowed,
        instantiate_subclass_spec_in_any=False,
        config_read_mode_urls_enabled=False,
        # Lightning's command line has turned it on when it was imported.
        config_read_mode_fsspec_enabled=False,
    )
    if source and source not in sys.path:
        sys.path.insert(0, source)
    return allowed


def imported(path: str, pointer: str, allowed: Sequence[str]) -> Any:
    """What `path` names. Raises ConfigFaults where it may not be named, does not exist or fails while it is imported."""
    if not is_allowed(path, allowed):
        raise ConfigFaults([Fault(pointer, f"{path!r} is not on the list of what a configuration may name")])
    try:
        found = _found(path.split("."))
    except Exception as fault:  # what the user's module does while it is imported is anybody's guess
        raise ConfigFaults([Fault(pointer, f"{path!r} cannot be imported: {type(fault).__name__}: {fault}")]) from fault
    if not callable(found) or not hasattr(found, "__qualname__"):
        said = f"{path!r} is no class or function, but a value of type {type(found).__name__}"
        raise ConfigFaults([Fault(pointer, said)])
    home = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
    if not is_allowed(home, allowed):
        raise ConfigFaults(
            [Fault(pointer, f"{path!r} is {home!r}, which is not on the list of what a configuration may name")]
        )
    return found


def _found(parts: list[str]) -> Any:
    """The longest prefix that is a module, then attributes."""
    for length in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:length])
        try:
            value: Any = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            # What the module itself misses is its own fault; only a shorter name is worth trying otherwise.
            if length == 1 or not (missing.name and (name == missing.name or name.startswith(missing.name + "."))):
                raise
            continue
        for attribute in parts[length:]:
            value = getattr(value, attribute)
        return value
    raise ModuleNotFoundError(f"No module named {parts[0]!r}")
