"""All ranks save and stop at the same step, though none waits for another in between."""

from tests.training.ranks import TOYS, Ranks, shared_ranks  # noqa: F401


def test_ranks_of_different_pace_act_at_the_same_steps(ranks: Ranks) -> None:
    started = ranks.start({}, 2, call=f"{TOYS}:conducting", params={"checkpoint_seconds": 0.05})
    first, second = (end.answer["value"] for end in started.finished().ends)
    assert first == second
    assert 300 <= first["step"] <= 300 + 32
    steps = [step for step, _ in first["saved"]]
    assert len(steps) > 2
    assert steps == sorted(set(steps))
    assert [last for _, last in first["saved"]] == [False] * (len(steps) - 1) + [True]
    assert steps[-1] == first["step"]
    assert first["someone"] is True


def test_looks_are_few(ranks: Ranks) -> None:
    started = ranks.start({}, 1, call=f"{TOYS}:conducting")
    (only,) = (end.answer["value"] for end in started.finished().ends)
    assert only["looks"] < only["step"] / 3
    assert [last for _, last in only["saved"]] == [True]
