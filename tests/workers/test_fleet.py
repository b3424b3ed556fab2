"""How one command divides a machine among its workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.failures import CannotJoin
from workers.fleet import Share, Wish, hiding, shares

FOUR = ("0", "1", "2", "3")
TABLE = [
    # (what is said, GPUs, cores) → each worker's GPUs, each worker's threads
    (Wish(), (), 8, [()], 8),
    (Wish(), ("0",), 8, [("0",)], 8),
    (Wish(), FOUR, 8, [("0",), ("1",), ("2",), ("3",)], 2),
    (Wish(), FOUR, 2, [("0",), ("1",), ("2",), ("3",)], 1),
    (Wish(), ("GPU-a", "MIG-b"), 9, [("GPU-a",), ("MIG-b",)], 4),
    (Wish(threads=3), ("0", "1"), 8, [("0",), ("1",)], 3),
    (Wish(tied=True), FOUR, 8, [FOUR], 8),
    (Wish(gpus=4), FOUR, 8, [FOUR], 8),
    (Wish(gpus=1), FOUR, 8, [("0",)], 8),
    (Wish(gpus=0), FOUR, 8, [()], 8),
    (Wish(gpus=9), FOUR, 8, [FOUR], 8),
    (Wish(workers=1), FOUR, 8, [FOUR], 8),
    (Wish(workers=2), (), 8, [(), ()], 4),
    (Wish(workers=2), FOUR, 8, [("0", "1"), ("2", "3")], 4),
    (Wish(workers=3), ("0",), 8, [(), (), ("0",)], 2),
    (Wish(workers=2, gpus=1, threads=5), FOUR, 8, [("0",), ("1",)], 5),
    (Wish(workers=2, gpus=0), FOUR, 8, [(), ()], 4),
    (Wish(port=9000), ("0",), 4, [("0",)], 4),
]


@pytest.mark.parametrize(("wish", "gpus", "cores", "dealt", "threads"), TABLE)
def test_the_machine_is_divided_as_the_command_says(wish, gpus, cores, dealt, threads):
    assert shares(wish, gpus, cores) == [Share(names, threads) for names in dealt]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Wish(port=9000), "--port 9000 is for one worker, and this command starts 4"),
        (Wish(port=9000, workers=2), "--port 9000 is for one worker, and this command starts 2"),
        (Wish(workers=3, gpus=2), "asks for 6 GPUs, and there are 4"),
    ],
)
def test_what_cannot_be_divided_is_refused_in_words(wish, words):
    with pytest.raises(CannotJoin, match=words):
        shares(wish, FOUR, 8)


@given(
    workers=st.none() | st.integers(1, 20),
    asked=st.none() | st.integers(0, 9),
    gpus=st.lists(st.integers(0, 99).map(str), unique=True, max_size=9),
    cores=st.integers(1, 64),
)
def test_no_two_workers_have_the_same_gpu_and_none_that_is_not_there(workers, asked, gpus, cores):
    try:
        parts = shares(Wish(workers, asked), gpus, cores)
    except CannotJoin:
        assert workers is not None
        assert asked is not None
        assert workers * asked > len(gpus)
        return
    dealt = [name for part in parts for name in part.gpus]
    assert len(set(dealt)) == len(dealt)
    assert set(dealt) <= set(gpus)
    assert len(parts) == workers or workers is None
    if asked is None:
        assert dealt == gpus
        assert max(len(part.gpus) for part in parts) - min(len(part.gpus) for part in parts) <= 1
    assert all(part.threads >= 1 for part in parts)
    assert sum(part.threads for part in parts) <= max(cores, len(parts))


def test_only_a_worker_with_less_than_all_has_gpus_hidden_from_it():
    assert hiding(Share(("GPU-b",), 1), 2) == {"CUDA_VISIBLE_DEVICES": "GPU-b"}
    assert hiding(Share((), 1), 2) == {"CUDA_VISIBLE_DEVICES": ""}
    assert hiding(Share(("0", "1"), 1), 2) == {}
    assert hiding(Share((), 1), 0) == {}
