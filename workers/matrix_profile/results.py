"""What a profile says at a glance, and the moments it speaks of."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from workers.matrix_profile.profile import Ints, Profile

UNKNOWN_TIME = np.iinfo(np.int64).min


def summary(profile: Profile, times_us: Ints | None, neighbor_times_us: Ints | None) -> dict[str, Any]:
    """Motif (the nearest pair) and discord (the loneliest window), null where no window has a neighbour.

    Of equals, the first. times_us, neighbor_times_us: int64, the rows' times in the series and in the one its
    neighbours come from; with them go `at` and `neighbor_at`, the times of the windows' first rows.
    """
    nearest = profile.distances[:, 0]
    found = np.isfinite(nearest)
    said: dict[str, Any] = {
        "motif": None,
        "discord": None,
        "windows": profile.windows,
        "missing_windows": int(np.count_nonzero(~found)),
    }
    if not found.any():
        return said
    first, last = int(np.argmin(nearest)), int(np.argmax(np.where(found, nearest, -np.inf)))
    neighbor = int(profile.indices[first, 0])
    said["motif"] = {"index": first, "neighbor": neighbor, "distance": float(nearest[first])}
    said["discord"] = {"index": last, "distance": float(nearest[last])}
    if times_us is not None:
        said["motif"]["at"], said["discord"]["at"] = moments(times_us[[first, last]])
    if neighbor_times_us is not None:
        (said["motif"]["neighbor_at"],) = moments(neighbor_times_us[[neighbor]])
    return said


def moments(times_us: Ints) -> list[str | None]:
    """RFC 3339 in UTC, in whole seconds where all of them are whole; None for an unknown time."""
    unit: Literal["s", "us"] = "s" if not np.any(times_us % 1_000_000) or not len(times_us) else "us"
    stamps: NDArray[np.datetime64] = times_us.astype("datetime64[us]")
    texts = np.datetime_as_string(stamps, unit=unit)
    return [
        None if time == UNKNOWN_TIME else f"{text}Z"
        for text, time in zip(texts.tolist(), times_us.tolist(), strict=True)
    ]


def columns(name: str, k: int) -> list[str]:
    """Names of the k columns of one quantity in a table."""
    return [name] if k == 1 else [f"{name}_{number}" for number in range(1, k + 1)]


def finite(values: Any) -> Any:
    """An array as JSON has it: None for what is not finite, times as texts; one list a row where there are several
    columns."""
    if values.dtype.kind == "M":
        return moments(values.astype(np.int64))
    if values.dtype.kind != "f":
        return values.tolist()
    kept = values.astype(object)
    kept[~np.isfinite(values)] = None
    return kept.tolist()
