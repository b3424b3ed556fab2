"""The supervisor of one node: forks its ranks, hears what they say, finds those that are stuck, and sees to it that all of them end."""

import contextlib
import logging
import queue
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from workers.nursery_client import Ending as ChildEnding
from workers.nursery_client import Nursery, NurseryGone, Piece
from workers.training import failures
from workers.training.failures_named import NURSERY_GONE, TrainingFailed
from workers.training.node_messages import (
    PEER_FAILED,
    STUCK,
    NodeEnd,
    NodeWork,
    Patience,
    RankEnd,
    RankWork,
    killed_for_memory,
)
from workers.training.node_temporary import private_folder
from workers.training.node_watch import Ending, Watch

log = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS: Final = 1.0
MOST_AT_ONCE: Final = 1000
"""Messages taken between two looks at the clock."""
KEPT_HERE: Final = frozenset({"beat"})
"""Messages that say something to the supervisor only."""

Tell = Callable[[dict[str, Any]], None]
"""Takes `{"type": "said", "rank", "message"}` and `{"type": "ended", "end": RankEnd}`, from several threads."""


class NodeSupervisor:
    """Runs one node's ranks from the first fork to the last end. `run` belongs to one thread, `end` may be called from any."""

    def __init__(self, nursery: Nursery, work: NodeWork, tell: Tell) -> None:
        self._nursery, self._work, self._tell = nursery, work, tell
        self._pieces: dict[int, Piece] = {}
        self._ends: dict[int, RankEnd] = {}
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ending = Ending()
        self._stuck: dict[str, Any] | None = None
        self._killed_before = killed_for_memory()

    def end(self, patience: Patience) -> None:
        """Have all ranks end, the later the more patience there is."""
        self._inbox.put(lambda: self._ending.hasten(patience, time.monotonic()))

    def run(self) -> NodeEnd:
        """Returns when every rank has ended, with all it started."""
        with private_folder() as temporary:
            try:
                return self._run(temporary)
            except BaseException:
                for piece in self._pieces.values():
                    piece.kill()
                raise

    def _run(self, temporary: str | None) -> NodeEnd:
        self._watch = Watch(self._work.start_seconds, self._work.stall_seconds, time.monotonic())
        for each in self._work.ranks:
            self._fork(each, temporary)
        while living := self._pieces.keys() - self._ends.keys():
            self._hear(min(self._ending.next_due(), self._next_stuck(living)))
            self._look(time.monotonic())
        ranks = [self._ends[rank] for rank in sorted(self._ends)]
        lost = NURSERY_GONE if any(rank.code is None for rank in ranks) else None
        return NodeEnd(node=self._work.node, ranks=ranks, problem=self._stuck, lost=lost)

    def _fork(self, work: RankWork, temporary: str | None) -> None:
        try:
            piece = self._nursery.fork(self._work.call, [{**work.spec, "temporary": temporary}], work.log)
        except NurseryGone:
            gone = RankEnd(rank=work.rank, node=self._work.node, at=time.time())
            self._ends[work.rank] = gone
            self._ending.hasten(PEER_FAILED, time.monotonic())
            return
        self._pieces[work.rank] = piece
        threading.Thread(target=self._follow, args=(work.rank, piece), name=f"rank {work.rank}", daemon=True).start()

    # ---- one thread for each rank ------------------------------------------------------------------------------

    def _follow(self, rank: int, piece: Piece) -> None:
        try:
            child = piece.hear(partial(self._said, rank))
        except Exception as fault:  # whatever it is, this rank has an end, and so has the gang
            log.exception("rank %d cannot be heard any longer", rank)
            child = self._unheard(rank, piece, fault)
        self._inbox.put(lambda: self._ended(rank, child))

    def _unheard(self, rank: int, piece: Piece, fault: Exception) -> ChildEnding:
        words = (
            f"Rank {rank} was ended, for its supervisor could not hear it any longer ({type(fault).__name__}: {fault})."
        )
        piece.kill()
        piece.ended.wait()
        problem = {**TrainingFailed(words).problem(), "at": time.time()}
        return ChildEnding({"type": "raised", "problem": problem}, piece.code, piece.killed)

    def _said(self, rank: int, message: dict[str, Any]) -> None:
        kind, now = message["type"], time.monotonic()
        self._inbox.put(lambda: self._watch.heard(rank, kind, now, message["data"].get("step")))
        if kind not in KEPT_HERE:
            self._tell({"type": "said", "rank": rank, "message": message})

    # ---- the deciding thread -----------------------------------------------------------------------------------

    def _hear(self, until: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._inbox.get(timeout=max(0.0, min(until - time.monotonic(), LONGEST_WAIT_SECONDS)))()
            for _ in range(MOST_AT_ONCE):
                self._inbox.get_nowait()()

    def _next_stuck(self, living: set[int]) -> float:
        return float("inf") if self._ending.decided else self._watch.next_due(living)

    def _look(self, now: float) -> None:
        living = self._pieces.keys() - self._ends.keys()
        if not self._ending.decided and self._watch.stuck(living, now):
            self._stuck = {**failures.stuck(living, self._watch, now), "at": time.time()}
            for rank in living:
                self._pieces[rank].signal(signal.SIGUSR1)  # it prints where it is
            self._ending.hasten(STUCK, now)
        match self._ending.act(now):
            case "term":
                for rank in living:
                    self._pieces[rank].signal(signal.SIGTERM)
            case "kill":
                for rank in living:
                    self._pieces[rank].kill()

    def _ended(self, rank: int, child: ChildEnding) -> None:
        end = RankEnd(
            rank=rank,
            node=self._work.node,
            at=time.time(),
            value=_value(child),
            problem=(child.answer or {}).get("problem"),
            code=child.code,
            termed=self._ending.done != "nothing",
            stepped=rank in self._watch.steps,
            out_of_memory=child.code == -signal.SIGKILL and killed_for_memory() > self._killed_before,
        )
        self._ends[rank] = end
        if not end.clean:
            self._ending.hasten(PEER_FAILED, time.monotonic())
        self._tell({"type": "ended", "end": end.model_dump(mode="json")})


def _value(child: ChildEnding) -> dict[str, Any] | None:
    """What a rank returned, None where it did not."""
    match child.answer:
        case {"type": "returned", "value": dict(value)}:
            return value
        case {"type": "returned"}:
            return {}
    return None
