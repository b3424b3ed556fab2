"""The file a join's checkpoint is: an uncompressed .npz of the arrays of Best, `done`, one bit for each tile of the grid,
and `about`, JSON.
"""

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from workers.matrix_profile.profile import Bools
from workers.matrix_profile.tiles.best import Best, Nearest, Problem
from workers.matrix_profile.tiles.grid import Grid

FORMAT: Final = 1
"""Another number where what is stored, or what a similarity means, is another."""
UNREADABLE: Final = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, struct.error)
"""What reading a file raises that was cut off, or is something else."""


def fingerprint(problem: Problem, grid: Grid) -> str:
    """The same for the same join, cut in the same way."""
    told = [FORMAT, problem.m, problem.normalize, problem.self_join, problem.both or problem.self_join]
    told += [grid.l_a, grid.l_b, grid.rows, grid.diagonals]
    summed = hashlib.sha256(json.dumps(told).encode())
    for values in (problem.a, *([] if problem.b is None else [problem.b])):
        summed.update(np.ascontiguousarray(values).data)
    return summed.hexdigest()


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a checkpoint says about itself, and its arrays. Raises one of UNREADABLE where it is none of ours."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        about = json.loads(str(stored["about"]))
        if about["format"] != FORMAT:
            raise ValueError(f"it has format {about['format']}, not {FORMAT}")
        return about, {name: stored[name] for name in stored.files if name != "about"}


def write(path: Path, about: Mapping[str, Any], best: Best, done: Bools) -> None:
    """Whole under another name first, so that a reader finds the last whole one."""
    whole = path.with_name(f".{path.name}.{os.getpid()}.new")
    arrays = {
        f"{role}_{name}": getattr(each, name)
        for role, each in (("row", best.rows), ("column", best.columns))
        for name in ("similarity", "neighbors")
    }
    try:
        with whole.open("wb") as file:
            np.savez(
                file, about=np.array(json.dumps({"format": FORMAT} | dict(about))), done=np.packbits(done), **arrays
            )
        whole.replace(path)
    finally:
        whole.unlink(missing_ok=True)


def into(best: Best, arrays: Mapping[str, Any], tiles: int) -> Bools:
    """Fill `best`; which of so many tiles are done. Raises ValueError where the arrays do not fit."""
    there = list(zip((best.rows, best.columns), nearest(arrays), strict=True))
    fits = all(
        len(a) == len(b)
        for ours, theirs in there
        for a, b in zip(vars(ours).values(), vars(theirs).values(), strict=True)
    )
    if len(arrays["done"]) != -(-tiles // 8) or not fits:
        raise ValueError("its arrays have other lengths")
    for ours, theirs in there:
        ours.similarity[:], ours.neighbors[:] = theirs.similarity, theirs.neighbors
    return np.unpackbits(arrays["done"], count=tiles).astype(np.bool_)


def nearest(arrays: Mapping[str, Any]) -> tuple[Nearest, Nearest]:
    """Rows and columns."""
    rows, columns = (Nearest(arrays[f"{role}_similarity"], arrays[f"{role}_neighbors"]) for role in ("row", "column"))
    return rows, columns
