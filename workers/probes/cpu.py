"""The cpu probe: STUMPY's kernels, in a fork of the nursery, as jobs run them."""

from workers.nursery_client import Nursery
from workers.probes.finding import Finding, in_child


def check_cpu(nursery: Nursery) -> Finding:
    in_child(nursery, "workers.probes.cpu:known_answer")
    return "executed", "stump gave the known matrix profile of the series in STUMPY's documentation"


def known_answer(reporter: object) -> None:
    """In a child: raises WrongAnswer where STUMPY's answer is not the known one."""
    from workers.matrix_profile import warm

    warm.known_answer()


def measure(reporter: object) -> dict[str, float]:
    """In a child: speeds of this worker's threads by name, in cells of the distance matrix a second."""
    from workers.matrix_profile import warm

    return warm.measure()
