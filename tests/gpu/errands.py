"""What the tests of GPUs have a job do."""

from typing import Any


def take_more_than_there_is(task: dict[str, Any], reporter: Any) -> None:
    import numpy as np
    from numba import cuda

    cuda.device_array(2 * task["memory_bytes"], dtype=np.uint8)


def hold_memory_and_compute(task: dict[str, Any], reporter: Any) -> None:
    """Take a gigabyte of the device, say so, and compute for hours."""
    import numpy as np
    import stumpy
    from numba import cuda

    held = cuda.device_array(1 << 30, dtype=np.uint8)
    reporter.log(f"holding {held.size} bytes")
    stumpy.gpu_stump(np.random.default_rng(0).standard_normal(4_000_000), 100, device_id=task["devices"])
