"""Which piece goes where, under every course of events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workers.spread.schedule import AT_HAND, MOST_LOSSES, PieceKillsWorkers, Schedule

WORKERS = ["a", "b", "c"]
THREADS = {"a": 1, "b": 1, "c": 3}


class Course(RuleBasedStateMachine):
    """Pieces come, end, find their worker busy or lose it; workers come and go."""

    def __init__(self):
        super().__init__()
        self.schedule, self.now, self.here = Schedule(), 0.0, {"a", "b"}
        self.added, self.ended = set(), set()

    @rule(count=st.integers(1, 5))
    def hand_over(self, count):
        for _ in range(count):
            self.schedule.add(len(self.added))
            self.added.add(len(self.added))

    @rule(seconds=st.floats(0, 1))
    def place(self, seconds):
        self.now += seconds
        for piece, worker in self.schedule.place({worker: THREADS[worker] for worker in self.here}, self.now):
            assert piece not in self.ended
            assert worker in self.here
            assert self.schedule.resting.get(worker, 0.0) <= self.now

    @precondition(lambda self: self.schedule.running)
    @rule(data=st.data())
    def end(self, data):
        piece = data.draw(st.sampled_from(sorted(self.schedule.running)))
        self.schedule.done(piece)
        self.ended.add(piece)

    @precondition(lambda self: self.schedule.running)
    @rule(data=st.data())
    def find_it_busy(self, data):
        self.schedule.busy(data.draw(st.sampled_from(sorted(self.schedule.running))), self.now)

    @rule(worker=st.sampled_from(WORKERS))
    def come_or_go(self, worker):
        self.here ^= {worker}
        for piece in self.schedule.on_lost_workers(self.here):
            if self.schedule.losses.get(piece, 0) + 1 < MOST_LOSSES:
                self.schedule.lost(piece)
            else:
                with pytest.raises(PieceKillsWorkers):
                    self.schedule.lost(piece)
                self.ended.add(piece)

    @invariant()
    def no_piece_is_lost_or_doubled(self):
        waiting, running = list(self.schedule.waiting), set(self.schedule.running)
        assert len(waiting) == len(set(waiting))
        assert not set(waiting) & running
        assert set(waiting) | running | self.ended == self.added

    @invariant()
    def no_worker_has_more_than_its_share(self):
        for worker in WORKERS:
            assert sum(each == worker for each in self.schedule.running.values()) <= THREADS[worker] + AT_HAND


TestCourse = Course.TestCase
TestCourse.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


@given(st.integers(1, 30), st.integers(1, 3))
def test_every_piece_is_computed_when_nothing_goes_wrong(pieces, workers):
    schedule, done = Schedule(), []
    for piece in range(pieces):
        schedule.add(piece)
    while placed := schedule.place(dict.fromkeys(WORKERS[:workers], 1), 0.0):
        for piece, _ in placed:
            schedule.done(piece)
            done.append(piece)
    assert done == list(range(pieces))


def test_a_lost_workers_pieces_run_before_those_that_still_wait():
    schedule = Schedule()
    for piece in range(6):
        schedule.add(piece)
    schedule.place({"a": 1, "b": 1}, 0.0)
    for piece in schedule.on_lost_workers(["b"]):
        schedule.lost(piece)
    schedule.done(1), schedule.done(3)
    assert {piece for piece, _ in schedule.place({"b": 1}, 0.0)} == {0, 2}


def test_a_worker_that_joins_gets_pieces_at_the_next_look():
    schedule = Schedule()
    for piece in range(6):
        schedule.add(piece)
    schedule.place({"a": 1}, 0.0)
    assert {worker for _, worker in schedule.place({"a": 1, "b": 1}, 0.0)} == {"b"}
