"""Which checkpoint a job goes on from. Made here without torch: a zip with a pickle in it is all that is looked at."""

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

from workers.training.checkpoints import fault_of, link_or_copy, newest_whole, size_of, step_of, take_place

WHOLE = {"epoch": 1, "global_step": 70_000, "state_dict": {}, "optimizer_states": [], "loops": {}}


def write(path: Path, content: dict[str, Any] = WHOLE, age: int = 0) -> Path:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content, protocol=2))
        archive.writestr("archive/data/0", bytes(1000))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out.getvalue())
    os.utime(path, ns=(0, 10**18 - age * 10**9))
    return path


def test_the_newest_of_a_folder_is_chosen(tmp_path: Path) -> None:
    write(tmp_path / "last.ckpt", age=5)
    newest = write(tmp_path / "deeper" / "epoch=3.ckpt", age=1)
    write(tmp_path / "epoch=1.ckpt", age=9)
    assert newest_whole([tmp_path]) == (newest, [])


def test_the_newest_attempt_that_has_one_is_chosen(tmp_path: Path) -> None:
    old = write(tmp_path / "old" / "last.ckpt")
    (tmp_path / "new").mkdir()
    assert newest_whole([tmp_path / "new", tmp_path / "gone", tmp_path / "old"]) == (old, [])
    assert newest_whole([tmp_path / "new"]) == (None, [])


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: data[:-30], "not whole"),
        (lambda data: data[:200], "not whole"),
        (lambda data: b"", "not whole"),
        (lambda data: data[:600] + b"x" + data[601:], "is damaged"),
    ],
)
def test_one_that_is_not_whole_is_passed_over_with_the_reason(tmp_path: Path, spoil: Any, why: str) -> None:
    good = write(tmp_path / "epoch=1.ckpt", age=3)
    bad = write(tmp_path / "last.ckpt")
    bad.write_bytes(spoil(bad.read_bytes()))
    chosen, skipped = newest_whole([tmp_path])
    assert chosen == good
    assert [path for path, _ in skipped] == [bad]
    assert why in skipped[0][1]


def test_weights_alone_are_nothing_to_go_on_from(tmp_path: Path) -> None:
    write(tmp_path / "weights.ckpt", {"global_step": 3, "state_dict": {}})
    chosen, skipped = newest_whole([tmp_path])
    assert chosen is None
    assert skipped[0][1] == "it has no loops and no optimizer_states, as one that was saved with weights only"


def test_unfinished_ones_are_not_even_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".writing-last.ckpt").write_bytes(b"half")
    assert newest_whole([tmp_path]) == (None, [])


def test_a_checkpoint_in_parts_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "last.ckpt"
    write(folder / "shard.ckpt")
    assert fault_of(folder) == "it is not complete"
    (folder / "meta.pt").write_bytes(b"x")
    assert newest_whole([tmp_path])[0] == folder
    assert size_of(folder) > 1000


def test_the_step_is_read_without_unpickling_anything(tmp_path: Path) -> None:
    assert step_of(write(tmp_path / "a.ckpt")) == 70_000
    assert step_of(write(tmp_path / "b.ckpt", {"global_step": 5})) == 5
    assert step_of(write(tmp_path / "c.ckpt", {})) is None
    (tmp_path / "d.ckpt").write_bytes(b"")
    assert step_of(tmp_path / "d.ckpt") is None


@pytest.mark.parametrize("folders", [False, True])
def test_one_takes_the_place_of_another_at_once(tmp_path: Path, folders: bool) -> None:
    def made(name: str, text: str) -> Path:
        path = tmp_path / name
        if folders:
            path.mkdir()
        (path / "meta.pt" if folders else path).write_text(text)
        return path

    final = tmp_path / "last.ckpt"
    take_place(made(".writing-1", "first"), final)
    take_place(made(".writing-2", "second"), final)
    assert (final / "meta.pt" if folders else final).read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]
    link_or_copy(final, tmp_path / "best.ckpt")
    assert size_of(tmp_path / "best.ckpt") == 6


def test_of_checkpoints_that_are_folders_the_one_written_last_is_the_newest_whenever_it_came_here(tmp_path):
    for name, written in (("step=2.ckpt", 2_000), ("step=1.ckpt", 1_000)):  # the older one comes last
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.pt").write_bytes(b"")
        os.utime(tmp_path / name / "meta.pt", (written, written))
    newest, skipped = newest_whole([tmp_path])
    assert (newest.name, skipped) == ("step=2.ckpt", [])
