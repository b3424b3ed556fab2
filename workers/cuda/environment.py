"""What a process needs in its environment to use GPUs, and to use no more than its own."""

from collections.abc import Sequence

from workers import hardware


def cuda_environment(devices: Sequence[int], scratch: str) -> dict[str, str]:
    """For a fresh interpreter that sees `devices` of this worker alone, numbered from 0, and leaves its temporary files in `scratch`."""
    visible = hardware.visible_devices()
    names = [str(device) if visible is None else visible[device] for device in devices]
    return {
        "NUMBA_DISABLE_CUDA": "0",
        "NUMBA_ENABLE_CUDASIM": "0",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(names),
        "TMPDIR": scratch,
    }
