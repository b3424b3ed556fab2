"""The table of strategies as Markdown, for the README: `python -m workers.training.rules`."""

import sys
from collections.abc import Iterator, Mapping
from typing import Final

from workers.training.rules.strategies import OBJECTS, OTHER, SINGLE, STRATEGIES, Strategy
from workers.training.rules.words import CUDA, FABRIC, TRAINER

NEEDS: Final[Mapping[str | None, str]] = {None: "", CUDA: "CUDA", "tpu": "TPUs"}


def main() -> None:
    sys.stdout.write(markdown())


def markdown() -> str:
    """One line for each name of a registry, and for each class that may be given as an object."""
    named = (_line(f"`{name}`", row) for name, row in STRATEGIES.items())
    classes = (
        _line(f"`{name}` as an object", row) for name, row in OBJECTS.items() if row.family not in (OTHER, SINGLE)
    )
    return (
        "\n".join(["| strategy | Trainer | Fabric | runs as | needs |", "|---|---|---|---|---|", *named, *classes])
        + "\n"
    )


def _line(name: str, row: Strategy) -> str:
    modes = ["yes" if mode in row.modes else "no" for mode in (TRAINER, FABRIC)]
    return f"| {' | '.join([name, *modes, _runs_as(row), ', '.join(_needs(row))])} |"


def _runs_as(row: Strategy) -> str:
    if row.refusal:
        return "refused" if row.needs else f"refused: {row.refusal}"
    return f"`{row.runs_as}`" if row.runs_as else "itself"


def _needs(row: Strategy) -> Iterator[str]:
    if row.needs:
        yield NEEDS[row.needs]
    if row.package:
        yield f"the package `{row.package}`"


if __name__ == "__main__":
    main()
