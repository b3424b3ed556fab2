"""One piece on the worker it was sent to: it waits for the worker's threads, runs in a child of the nursery, and can be stopped."""

from typing import Final

from workers import agent as agents
from workers.failures import JobFailure
from workers.host import current_host
from workers.nursery_client import NurseryGone, PieceFailed, PieceKilled
from workers.spread.base import Answer, Errand
from workers.spread.parcel import Parcel

IN_CHILD: Final = "workers.spread.kernel:call"


def compute(errand: Errand, shared: Parcel, own: Parcel) -> Answer:
    """Called by an engine in a thread of the worker. Raises NurseryGone where the worker lost its children: try another one."""
    agent, host = agents.current(agents.INTRODUCTION_SECONDS), current_host()
    if not host.is_warm():
        return Answer("busy")
    with agent.piece(errand.attempt, errand.claim) as ticket, host.slot.piece() as mine:
        if ticket.stopping.is_set():
            return Answer("stopped")
        if not mine:
            return Answer("busy")
        result = Parcel.empty()
        nursery = host.nursery_for("cpu")
        descriptors = [shared.descriptor, own.descriptor, result.descriptor]
        piece = nursery.fork(IN_CHILD, [errand.function], born_with=descriptors)
        ticket.stop_with(piece.kill)
        try:
            piece.follow(lambda message: None)
        except PieceKilled:
            return Answer("stopped")
        except PieceFailed as failure:
            return Answer("failed", problem=failure.problem)
        except NurseryGone:
            raise
        except JobFailure as failure:
            return Answer("failed", problem=failure.problem())
        return Answer("done", result)
