"""Checkpoints as files: which of them is whole, which one to go on from, and how one takes the place of another."""

import os
import pickletools
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

WRITING = ".writing-"
"""How the names of unfinished checkpoints begin; they end in `.ckpt` too, but are never taken for one."""
STATE_KEYS = frozenset({"state_dict", "optimizer_states", "loops"})
"""What a Trainer's checkpoint must have for a training to go on from it; one of the weights alone lacks the last two."""
FABRIC_KEY = "tidemill_steps"
"""What `fabric.save` adds to whatever a function saves: how many steps it had made."""


def newest_whole(folders: Iterable[str | os.PathLike[str]]) -> tuple[Path | None, list[tuple[Path, str]]]:
    """The newest checkpoint from which a training can go on, of the first of `folders` that has one, and what was passed over and why."""
    skipped = []
    for folder in folders:
        for path in _newest_first(Path(folder)):
            if why := fault_of(path):
                skipped.append((path, why))
            else:
                return path, skipped
    return None, skipped


def _newest_first(folder: Path) -> Iterator[Path]:
    found = [
        path
        for path in folder.rglob("*.ckpt")
        if not path.name.startswith(WRITING) and not path.is_symlink() and not _within_one(path, folder)
    ]
    yield from sorted(found, key=lambda path: (changed_ns(path), path.name), reverse=True)


def changed_ns(path: Path) -> int:
    """When a checkpoint was last written. The time of a folder itself only says when it came here."""
    if not path.is_dir():
        return path.stat().st_mtime_ns
    return max((each.stat().st_mtime_ns for each in path.rglob("*") if each.is_file()), default=0)


def _within_one(path: Path, folder: Path) -> bool:
    return any(parent.suffix == ".ckpt" for parent in path.relative_to(folder).parents)


def fault_of(path: Path) -> str | None:
    """Why a training cannot go on from the checkpoint `path`; None where it can. Unpickles nothing."""
    if path.is_dir():
        # Of a sharded strategy. Lightning writes the metadata last.
        return None if (path / "meta.pt").exists() or (path / "checkpoint").exists() else "it is not complete"
    try:
        with zipfile.ZipFile(path) as archive:
            if broken := archive.testzip():
                return f"its part {broken} is damaged"
            names = {text for text, _ in _strings(archive)}
    except (zipfile.BadZipFile, OSError, EOFError, StopIteration, ValueError) as fault:
        return f"it is not whole ({fault or type(fault).__name__})"
    if FABRIC_KEY not in names and (missing := STATE_KEYS - names):
        return f"it has no {' and no '.join(sorted(missing))}, as one that was saved with weights only"
    return None


def step_of(path: Path) -> int | None:
    """How many optimizer steps a whole checkpoint had seen, where it says so."""
    try:
        with zipfile.ZipFile(path) as archive:
            return next(
                (after for text, after in _strings(archive) if text == "global_step" and isinstance(after, int)), None
            )
    except (zipfile.BadZipFile, OSError, StopIteration, ValueError):
        return None


def _strings(archive: zipfile.ZipFile) -> Iterator[tuple[str, Any]]:
    """Each string in the pickle, and the argument of what comes after it: of a key, often its value."""
    name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
    before = None
    for opcode, argument, _ in pickletools.genops(archive.read(name)):
        if opcode.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE", "PUT"):
            continue
        if before is not None:
            yield before, argument
        before = argument if opcode.name in ("BINUNICODE", "SHORT_BINUNICODE") else None


def take_place(written: Path, final: Path) -> None:
    """What was written whole becomes `final`, at once: whoever looks finds the old one or the new one."""
    if not written.is_dir():
        os.replace(written, final)
        return
    old = final.with_name(f"{WRITING}old-{final.name}")
    if final.exists():
        os.replace(final, old)
    os.replace(written, final)
    if old.is_dir():
        shutil.rmtree(old)
    elif old.exists():
        old.unlink()


def size_of(path: Path) -> int:
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size


def holds_objects(path: Path) -> bool:
    """Whether the checkpoint holds Python objects beyond tensors and plain data, which only unpickling can make."""
    from torch.serialization import get_unsafe_globals_in_checkpoint

    return not path.is_dir() and bool(get_unsafe_globals_in_checkpoint(path))


def has_finite_weights(path: Path) -> bool:
    """Whether all weights of the checkpoint, which this very job wrote, are finite numbers. One in many parts is not looked into."""
    import torch

    if path.is_dir():
        return True
    state = torch.load(path, map_location="cpu", weights_only=not holds_objects(path), mmap=True)["state_dict"]
    tensors = (t for t in state.values() if isinstance(t, torch.Tensor) and t.is_floating_point())
    return all(bool(torch.isfinite(t).all()) for t in tensors)


def link_or_copy(source: Path, target: Path) -> None:
    """`source`, which is never written again, under another name as well."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=os.link)
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
