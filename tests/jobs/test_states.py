"""The job's state machine: the table is whole, nothing in it is idle, and final means final."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.jobs.states import FINAL, RULES, Event, Facts, Refusal, State, diagram, step

MORE, NONE = Facts(1, 3), Facts(3, 3)
facts = st.builds(Facts, st.integers(0, 5), st.integers(1, 5))
EVERY = [(state, event) for state in State for event in Event]


def test_a_final_state_takes_no_event_whatever():
    for state in FINAL:
        for event in Event:
            for known in (MORE, NONE):
                assert step(state, event, known) == Refusal(state, event)


@given(st.sampled_from(State), st.sampled_from(Event), facts)
def test_every_event_moves_the_job_or_is_refused_by_name(state, event, known):
    after = step(state, event, known)
    if isinstance(after, Refusal):
        assert str(after) == f"a {state} job takes no {event}"
    else:
        assert any(state in r.source and r.event is event and r.target is after for r in RULES)
    assert step(state, event, known) == after


@given(facts)
def test_no_two_rules_answer_the_same_question(known):
    for state, event in EVERY:
        answers = [r for r in RULES if state in r.source and r.event is event and (r.when is None or r.when(known))]
        assert len(answers) <= 1, (state, event, answers)


def test_every_rule_can_be_the_one_that_answers():
    for r in RULES:
        for state in r.source:
            answers = [step(state, r.event, known) for known in (MORE, NONE) if r.when is None or r.when(known)]
            assert answers, f"{r} never applies"
            assert set(answers) == {r.target}


def test_every_state_is_reachable_and_every_other_one_can_still_end():
    moves = {state: {r.target for r in RULES if state in r.source} for state in State}

    def reach(state: State) -> set[State]:
        found, edge = {state}, [state]
        while edge:
            new = moves[edge.pop()] - found
            found |= new
            edge += new
        return found

    assert reach(State.QUEUED) == set(State)
    assert all(reach(state) & FINAL for state in State)


def test_every_event_means_something_somewhere():
    assert {r.event for r in RULES} == set(Event)


@pytest.mark.parametrize("state", [state for state in State if state not in FINAL])
def test_every_job_that_has_not_ended_can_be_cancelled(state):
    assert step(state, Event.CANCEL_REQUESTED, MORE) in (State.CANCELLING, State.CANCELLED)


@pytest.mark.parametrize(
    "event",
    [Event.STOPPED, Event.SUCCEEDED, Event.FAILED, Event.WORKER_LOST, Event.SERVER_STOPPED, Event.TIMED_OUT],
)
def test_once_a_cancel_was_asked_for_every_end_is_cancelled(event):
    assert step(State.CANCELLING, event, MORE) is step(State.CANCELLING, event, NONE) is State.CANCELLED


class Life(RuleBasedStateMachine):
    """Any events in any order, as a job may see them."""

    @initialize(limit=st.integers(1, 4))
    def begin(self, limit):
        self.state, self.counted, self.limit, self.runs, self.final = State.QUEUED, 0, limit, 0, None

    @rule(event=st.sampled_from(Event))
    def happens(self, event):
        counted = self.counted + (event is Event.WORKER_LOST)
        after = step(self.state, event, Facts(counted, self.limit))
        if isinstance(after, Refusal):
            return
        self.counted = counted
        self.runs += after is State.RUNNING
        self.state = after

    @invariant()
    def final_never_changes(self):
        if self.final:
            assert self.state is self.final
        if self.state in FINAL:
            self.final = self.state

    @invariant()
    def a_fault_of_its_own_runs_it_no_more_often_than_allowed(self):
        assert self.counted <= self.limit
        if self.counted == self.limit:
            assert self.state in FINAL


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)


def test_the_diagram_says_each_rule_once():
    arrows = [line.strip() for line in diagram().splitlines() if "-->" in line and "[*]" not in line]
    assert len(arrows) == len(set(arrows)) == sum(len(r.source) for r in RULES)
    assert "running --> queued: WorkerLost [attempts remain]" in arrows


def test_the_readme_shows_the_diagram_that_the_code_prints():
    readme = Path(__file__).parents[2] / "README.md"
    shown = re.findall(r"^```mermaid\n(.*?)\n```$", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert diagram() in shown, "print `app.jobs.states.diagram()` into README.md"
