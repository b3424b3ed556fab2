"""The cpu probe: STUMPY's kernels, in a fork of the nursery, as jobs run them."""

from typing import Final

from workers.contract import call_by_name
from workers.host import CPU, current_host
from workers.nursery_client import Nursery
from workers.probes.finding import Finding, in_child

ON_THIS_WORKER: Final = "workers.probes.cpu:on_this_worker"
TILES: Final = "workers.matrix_profile.known:tiles_answers"


def check_cpu(nursery: Nursery) -> Finding:
    names = in_child(nursery, "workers.probes.cpu:known_answers", False)
    return "executed", f"{', '.join(names)} gave the answers of STUMPY's documentation"


def on_this_worker() -> list[str]:
    """Called through a cluster, in the process of a worker: STUMPY's functions for pieces in a child, and tiles in this process, as
    jobs have them."""
    host = current_host()
    names: list[str] = in_child(host.nursery_for(CPU), "workers.probes.cpu:known_answers", True)
    host.require_tiles()
    names += call_by_name(TILES)
    return names


def known_answers(in_pieces: bool, reporter: object) -> list[str]:
    """In a child: the functions that were asked; raises WrongAnswer where an answer is not the known one."""
    from workers.matrix_profile import known

    return known.answers(in_pieces=in_pieces)


def measure(reporter: object) -> dict[str, float]:
    """In a child: speeds of this worker's threads by name, in cells of the distance matrix a second."""
    from workers.matrix_profile import warm

    return warm.measure()
