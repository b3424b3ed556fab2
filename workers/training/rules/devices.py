"""`devices` in every form that Lightning takes it."""

from dataclasses import dataclass
from typing import Final

from workers.training.rules.words import CPU

MOST_PROCESSES: Final = 64
"""On one node's CPU; more would only wait for each other."""


@dataclass(frozen=True)
class Devices:
    """How many on each node, and which, where that was said. None: as many as there are."""

    count: int | None
    indices: list[int] | None = None


class NotDevices(ValueError):
    """What was sent is no number and no list of devices; the sentence says why."""


def devices_of(sent: object, accelerator: str) -> Devices:
    """Read `devices`. Raises NotDevices."""
    match sent:
        case bool() | None | float() | dict():
            raise NotDevices(f'must be a whole number, a list of device indices or "auto", not {_json(sent)}')
        case "auto":
            return Devices(1) if accelerator == CPU else Devices(None)
        case str():
            return devices_of(_from_text(sent), accelerator)
        case [*indices]:
            return _listed(indices, accelerator)
        case int() if accelerator == CPU:
            return Devices(_processes(sent))
        case -1:
            return Devices(None)
        case int() if sent > 0:
            return Devices(sent)
    raise NotDevices(f'must be at least 1, or -1 or "auto" for all devices, not {sent!r}')


def _processes(count: int) -> int:
    if count < 1:
        raise NotDevices(f"must be at least 1 on the CPU, where it counts processes, not {count}")
    if count > MOST_PROCESSES:
        raise NotDevices(
            f"must be at most {MOST_PROCESSES} on the CPU, where it counts processes on one node, not {count}"
        )
    return count


def _from_text(text: str) -> int | list[object]:
    """`"3"` is three devices, `"0,2"` are two by index, and `"1,"` is one by index, as in Lightning."""
    try:
        if "," in text:
            return [int(part) for part in text.split(",") if part.strip()]
        return int(text)
    except ValueError:
        raise NotDevices(f'must be a number such as "2", indices such as "0,1", or "auto", not {text!r}') from None


def _listed(indices: list[object], accelerator: str) -> Devices:
    if accelerator == CPU:
        raise NotDevices(f"a list names GPUs; on the CPU, say how many processes, such as {max(len(indices), 1)}")
    numbers = [index for index in indices if isinstance(index, int) and not isinstance(index, bool) and index >= 0]
    if len(numbers) != len(indices) or not numbers:
        raise NotDevices(f"must list at least one device index, each a whole number from 0 up, not {indices!r}")
    if len(set(numbers)) != len(numbers):
        raise NotDevices(f"names a device twice: {numbers!r}")
    return Devices(len(numbers), numbers)


def _json(value: object) -> str:
    return {True: "true", False: "false", None: "null"}[value] if isinstance(value, bool | None) else repr(value)
