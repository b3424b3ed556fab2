"""How a series is split in time, and what is said where a part of it holds no window."""

from typing import Final

from workers.training.data.windows import Channels

PARTS: Final = {
    "train": ("training part of the series", "the series"),
    "validate": ("validation part of the series", "`validation`"),
    "test": ("test part of the series", "`test`"),
    "predict": ("series", "it"),
}
"""What each part is called, and what makes it larger."""


def borders(data: Channels, role: str, validation: float, test: float) -> tuple[int, int]:
    """[first, stop): the rows of a part. The last ones are for test, those before them for validation."""
    rows = data.rows
    last, middle = int(rows * test), int(rows * validation)
    trained = rows - middle - last
    return {
        "train": (0, trained),
        "validate": (trained, rows - last),
        "test": (rows - last, rows),
        "predict": (0, rows),
    }[role]


def agreed(mine: int | None, models: int | None) -> int:
    """The horizon that the data or the model says. Raises ValueError where neither does, or each its own."""
    if mine is None and models is None:
        raise ValueError(
            "`horizon` is said neither of the data nor of the model. Give the number of samples to forecast."
        )
    if mine and models == 0:
        raise ValueError(f"`horizon` is {mine} in the data, but the model forecasts nothing. Leave it out.")
    if mine is not None and models is not None and mine != models:
        raise ValueError(f"`horizon` is {mine} in the data and {models} in the model. Say it once.")
    return mine if mine is not None else models or 0


def why_none(data: Channels, role: str, part: tuple[int, int], context: int, horizon: int) -> str:
    """Why a part of the longest series holds no window, and what to do."""
    first, stop = part
    name, larger = PARTS[role]
    ahead = 0 if role == "predict" else horizon
    span = context + ahead
    sizes = f"`context` {context:,}" + (f" and `horizon` {ahead:,}" if ahead else "")
    if stop - first < span:
        return (
            f"The {name} has {stop - first:,} rows, and a window needs {span:,} ({sizes}). Make {larger} longer, or windows "
            "shorter."
        )
    missing = int(stop - first - data.observed[first:stop].sum())
    return (
        f"The {name} has {stop - first:,} rows, {missing:,} of them missing, and nowhere the {span:,} in a row that a window "
        f"needs ({sizes}). Let `bridge` fill short gaps, or make windows shorter."
    )
