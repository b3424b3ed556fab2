"""Lightning is installed twice, as `lightning` and as `pytorch_lightning`, with different classes of the same names: they do not mix."""

from collections.abc import Iterator
from typing import Any, Final

from workers.training.rules import Fault
from workers.training.rules.pointers import joined

NAMESPACES: Final = {"lightning": "lightning.pytorch", "pytorch_lightning": "pytorch_lightning"}
"""First part of a module's name → the package with its Trainer."""


def strangers(value: Any, pointer: str, package: str) -> Iterator[Fault]:
    """Each class below `value` that is of the other package than `package`, which is the model's."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from strangers(each, joined(pointer, index), package)
    if not isinstance(value, dict):
        return
    for key, each in value.items():
        if key == "class_path" and isinstance(each, str):
            other = next(
                (name for name in NAMESPACES.values() if name != package and each.startswith(name + ".")), None
            )
            if other:
                right = package + each.removeprefix(other)
                yield Fault(
                    joined(pointer, key),
                    f"{each!r} is of the package {other}, and the model is of {package}: name {right!r}",
                )
        else:
            yield from strangers(each, joined(pointer, key), package)
