"""What of an archive is kept and where: a zip as it lies, of a wheel its modules, and no bytecode of either."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

from app.sources.archive import Entry, Unfit, quoted

Format = Literal["zip", "wheel"]

LEFT_OUT: Final = frozenset({"__pycache__", "__MACOSX", ".DS_Store"})
METADATA: Final = re.compile(r".+\.(dist-info|egg-info)")
PROJECT: Final = frozenset({"pyproject.toml", "setup.py"})


def laid_out(entries: Sequence[Entry], file_name: str) -> tuple[Format, list[Entry]]:
    """Whether it is a wheel, and each kept entry at its place. Raises Unfit for what is neither a wheel nor a package."""
    # Bytecode would run in place of the source that lies beside it.
    kept = [e for e in entries if LEFT_OUT.isdisjoint(e.path) and not e.path[-1].endswith((".pyc", ".pyo"))]
    wheels = [
        entry.path[0]
        for entry in kept
        if len(entry.path) == 2 and entry.path[0].endswith(".dist-info") and entry.path[1] == "WHEEL"
    ]
    if len(wheels) > 1:
        raise Unfit(f"The archive is {len(wheels)} wheels in one; send each by itself.")
    if wheels:
        return "wheel", list(_of_wheel(kept, wheels[0].removesuffix(".dist-info")))
    if file_name.lower().endswith(".whl"):
        raise Unfit("The file is called a wheel, but has no `.dist-info/WHEEL`. Build it anew, or send it as a zip.")
    package = [entry for entry in kept if not METADATA.fullmatch(entry.path[0])]
    _no_project(package)
    return "zip", package


def _of_wheel(entries: Iterable[Entry], stem: str) -> Iterable[Entry]:
    """Modules alone. Of the metadata, what `importlib.metadata.version` reads; scripts, headers and data are not taken."""
    for entry in entries:
        match entry.path:
            case (top, ("purelib" | "platlib"), _, *_) if top == f"{stem}.data":
                yield Entry(entry.info, entry.path[2:])
            case (top, *rest) if METADATA.fullmatch(top) or top == f"{stem}.data":
                if (top, rest) == (f"{stem}.dist-info", ["METADATA"]):
                    yield entry
            case _:
                yield entry


def _no_project(entries: Iterable[Entry]) -> None:
    """A project's folder, as a download of a repository is, has its package one or two levels down: nothing would be found."""
    tops = {entry.path[0] for entry in entries}
    for entry in entries:
        folder, name = entry.path[:-1], entry.path[-1]
        if name in PROJECT and ((not folder and "src" in tops) or (len(folder) == 1 and tops == {folder[0]})):
            raise Unfit(
                f"The archive is a project, with {quoted(str(PurePosixPath(*entry.path)))}. Send the wheel that "
                "`pip wheel --no-deps .` makes of it, or a zip with the package itself at the top."
            )
