"""Where a job runs: accelerator, devices and nodes, against the table and the machine."""

from typing import Final

from workers.training.rules.accelerators import ACCELERATORS, ONLY_HERE
from workers.training.rules.choices import Choices
from workers.training.rules.devices import Devices, NotDevices, devices_of
from workers.training.rules.words import AUTO, CPU, CUDA

MOST_NODES: Final = 1024


def accelerator_of(choices: Choices) -> str | None:
    """`cpu` or `cuda`; None where there is no telling."""
    sent, machine = choices.section.get("accelerator", AUTO), choices.machine
    row = ACCELERATORS.get(sent.lower()) if isinstance(sent, str) else None
    if row is None or row.runs_as is None:
        names = ", ".join(ACCELERATORS)
        why = f"cannot be had here. {row.refusal} {ONLY_HERE}" if row else f"is no accelerator; they are {names}"
        choices.wrong("accelerator", f"{sent!r} {why}")
        return None
    if row.runs_as == AUTO:
        chosen = CUDA if machine.cuda_devices else CPU
        why = f"{machine.cuda_devices} CUDA device(s) are there" if machine.cuda_devices else machine.cuda_reason
        choices.reasons.append(f'Accelerator "auto" is {chosen}: {why}.')
        return chosen
    if row.runs_as == CUDA and not machine.cuda_devices:
        choices.wrong("accelerator", f"{sent!r} was asked for, but {machine.cuda_reason}")
    return row.runs_as


def devices_on(choices: Choices, accelerator: str | None) -> Devices:
    """Processes on each node; one, where what was sent is wrong or there is no telling."""
    if accelerator is None:
        return Devices(1)
    there = choices.machine.cuda_devices
    try:
        asked = devices_of(choices.section.get("devices", AUTO), accelerator)
    except NotDevices as reason:
        choices.wrong("devices", str(reason))
        return Devices(1)
    if asked.count is None:
        choices.reasons.append(f"Devices: all {there} CUDA device(s) of one worker.")
        return Devices(max(there, 1))
    last = max(asked.indices) if asked.indices else asked.count - 1
    if accelerator == CUDA and there and last >= there:
        missing = f"device {last}" if asked.indices else f"{asked.count} devices"
        choices.wrong("devices", f"{missing} on one node: the largest worker has {there} CUDA device(s)")
    return asked


def nodes_of(choices: Choices) -> int:
    """One, where what was sent is wrong."""
    sent, there = choices.section.get("num_nodes", 1), choices.machine.nodes
    if isinstance(sent, bool) or not isinstance(sent, int) or not 1 <= sent <= MOST_NODES:
        choices.wrong("num_nodes", f"must be a whole number from 1 to {MOST_NODES}, not {sent!r}")
        return 1
    if there is not None and sent > max(1, *there.values(), 1):
        engines = ", ".join(f"{engine} has {count}" for engine, count in sorted(there.items())) or "there are none"
        choices.wrong("num_nodes", f"{sent} nodes are as many workers of one engine: {engines}")
    return sent
