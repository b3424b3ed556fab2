"""The packages that an image has: those of its extras and what these need, and none of the others that are installed here."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docker.compose import ROOT

OURS: Final = "tidemill"


def of_extras(extras: list[str]) -> set[str]:
    """Names of the distributions that `pip install '.[extras]'` brings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(each) for each in first]
    while waiting:
        requirement = waiting.pop()
        for extra in {"", *requirement.extras}:
            name = canonicalize_name(requirement.name)
            if (name, extra) in found:
                continue
            found.add((name, extra))
            needs = map(Requirement, _needs(name))
            waiting += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def _needs(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # of another image than can be run here
        return []


def tops(distribution: metadata.Distribution) -> set[str]:
    """What of a distribution lies in site-packages itself: modules, packages, metadata."""
    parts = {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}
    if canonicalize_name(distribution.name) != OURS:
        return parts
    # Ours is installed in place: beside its metadata there is the note that says where.
    site = Path(str(distribution.locate_file("")))
    return {each.name for each in site.iterdir() if each.name.startswith((f"{OURS}-", "__editable__"))}


def make_site(extras: list[str], folder: Path, real: Path) -> None:
    """Fill `folder` with links to these packages, as they are called where site-packages is `real`."""
    wanted = of_extras(extras) | {OURS}
    folder.mkdir(parents=True)
    for distribution in metadata.distributions():
        if canonicalize_name(distribution.name) in wanted:
            for name in tops(distribution):
                link = folder / name
                if not link.is_symlink():
                    link.symlink_to(real / name)
