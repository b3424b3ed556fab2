"""What the tests of the port ask of a worker's own process."""

import psutil


def family() -> list[int]:
    """The worker's process and all below it."""
    here = psutil.Process()
    return [here.pid, *(each.pid for each in here.children(recursive=True))]
