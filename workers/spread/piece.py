"""One piece on the worker it was sent to: it waits for the threads, runs there or in a child of the nursery, and can be stopped."""

from typing import Final

from workers import agent as agents
from workers.contract import call_by_name
from workers.executions import Ticket
from workers.failures import JobFailure, as_problem
from workers.host import Host, current_host
from workers.nursery_client import NurseryGone, PieceFailed, PieceKilled
from workers.spread.base import Answer, Errand
from workers.spread.parcel import Parcel

IN_CHILD: Final = "workers.spread.kernel:call"


def compute(errand: Errand, shared: Parcel | None, own: Parcel) -> Answer:
    """Called by an engine in a thread of the worker. Raises NurseryGone where the worker lost its children: try another one."""
    agent, host = agents.current(agents.INTRODUCTION_SECONDS), current_host()
    if not (host.tiles_settled if errand.in_thread else host.is_warm()):
        return Answer("busy")
    threads = 1 if errand.in_thread else None
    with agent.piece(errand.attempt, errand.claim) as ticket, host.slot.piece(threads=threads) as mine:
        if ticket.stopping.is_set():
            return Answer("stopped")
        if not mine:
            return Answer("busy")
        if errand.in_thread:
            return _in_this_thread(errand, own, ticket, host)
        return _in_a_child(errand, shared, own, ticket, host)


def _in_this_thread(errand: Errand, own: Parcel, ticket: Ticket, host: Host) -> Answer:
    """`function(argument, stop_with)`: it says what stops it, and returns None where it was stopped."""
    try:
        host.require_tiles()
        found = call_by_name(errand.function, own.open(), ticket.stop_with)
        return Answer("stopped") if found is None else Answer("done", Parcel.of(found))
    except Exception as fault:
        return Answer("failed", problem=as_problem(fault))


def _in_a_child(errand: Errand, shared: Parcel | None, own: Parcel, ticket: Ticket, host: Host) -> Answer:
    result, shared = Parcel.empty(), shared or Parcel.of({})
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
