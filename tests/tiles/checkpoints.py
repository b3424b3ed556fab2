"""Joins that leave a checkpoint after every tile, and ways to spoil one."""

import json
import os
import shutil
import zipfile

import numpy as np

from tests.matrix_profile.hard import OTHER, WALK, with_
from tests.tiles.conftest import SlowHands
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.checkpoint import Store
from workers.matrix_profile.tiles.join import join
from workers.reporting import Silent

M = 12
GAP = with_(WALK, slice(60, 63), np.nan)
PROBLEMS = {
    f"{name}, {'normalised' if normalize else 'plain'}": Problem(a, b, M, normalize)
    for name, a, b in (("self", GAP, None), ("AB", GAP, OTHER))
    for normalize in (True, False)
}


def all_checkpoints(problem, folder, monkeypatch):
    """A join's result, and a copy of each checkpoint it left on the way."""
    copies, keep = [], Store.keep

    def copying(self, *told):
        keep(self, *told)
        copies.append(shutil.copy(self.path, folder / f"{len(copies)}.npz"))

    monkeypatch.setattr(Store, "keep", copying)
    joined = join(problem, SlowHands(), Silent(), Store(folder / "checkpoint.npz"))
    monkeypatch.setattr(Store, "keep", keep)
    assert len(copies) == joined.tiles + 1
    return joined, [folder / f"{number}.npz" for number in range(len(copies))]


def foreign(path, **changes):
    """The same file, with something else in it."""
    with np.load(path) as stored:
        arrays = dict(stored)
    about = json.loads(str(arrays["about"]))
    about |= {name: value for name, value in changes.items() if name in about}
    arrays |= {"about": np.array(json.dumps(about))} | {n: v for n, v in changes.items() if n not in about}
    np.savez(path, **arrays)


def cut(share):
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def flip(path):
    with zipfile.ZipFile(path) as stored:
        at = stored.getinfo("row_similarity.npy").header_offset + 400
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 255]))


SPOILT = {
    "empty": cut(0),
    "cut off in its middle": cut(0.5),
    "cut off just before its end": cut(0.99),
    "a byte turned": flip,
    "no checkpoint": lambda path: path.write_bytes(b"something else"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "an older format": lambda path: foreign(path, format=0),
    "of another join": lambda path: foreign(path, fingerprint="0"),
    "arrays of another length": lambda path: foreign(path, row_similarity=np.zeros(7)),
    "bits of another length": lambda path: foreign(path, done=np.zeros(1, np.uint8)),
}
