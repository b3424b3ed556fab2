"""A worker's computing threads belong to one job or piece at a time."""

import threading

from tests.house import eventually
from workers.slot import Slot

NEVER = threading.Event()


def test_a_piece_does_not_wait_for_a_whole_job():
    slot = Slot()
    with slot.whole(unless=NEVER) as mine:
        assert mine
        with slot.piece(patience_seconds=60) as taken:
            assert not taken
    with slot.piece() as taken:
        assert taken


def test_pieces_take_turns_and_a_whole_job_gets_its_own():
    slot, order = Slot(), []
    first, go = slot.piece(), threading.Event()
    first.__enter__()

    def whole():
        with slot.whole(unless=NEVER) as mine:
            order.append(("whole", mine))
            go.wait(5)

    def piece():
        with slot.piece(patience_seconds=60) as mine:
            order.append(("piece", mine))

    earlier = threading.Thread(target=piece)
    earlier.start()
    eventually(lambda: len(slot._line) == 2)
    job = threading.Thread(target=whole)
    job.start()
    eventually(lambda: len(slot._line) == 3)
    late = threading.Thread(target=piece)
    late.start()
    late.join(5)
    assert order == [("piece", False)]  # behind a whole job nobody waits
    first.__exit__(None, None, None)
    eventually(lambda: len(order) == 3)
    assert order[1:] == [("piece", True), ("whole", True)]
    go.set()
    for thread in (earlier, job):
        thread.join(5)


def test_a_piece_that_waited_long_enough_looks_elsewhere():
    slot = Slot()
    with slot.piece(), slot.piece(patience_seconds=0.05) as mine:
        assert not mine


def test_a_whole_job_that_is_cancelled_before_its_turn_leaves_the_line():
    slot, cancelled = Slot(), threading.Event()
    with slot.piece():
        cancelled.set()
        with slot.whole(unless=cancelled) as mine:
            assert not mine
    with slot.piece() as mine:
        assert mine
