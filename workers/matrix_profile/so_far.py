"""The profile of a job that has not ended, as a file, from what it last kept of its tiles."""

from pathlib import Path
from typing import Any

from workers.matrix_profile import sheets
from workers.matrix_profile.distance import Distance
from workers.matrix_profile.files import FORMATS
from workers.matrix_profile.series import load
from workers.matrix_profile.tiles.alone import scaled
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.partial import so_far


def write(request: dict[str, Any], output: Path) -> float:
    """Write the profile so far in the format asked for. Returns the share of the distance matrix that it is made of, 0 to 1.
    See `workers.so_far` for the request."""
    params, sources = request["params"], request["sources"]
    series = [load(each) for name in ("series", "against") for each in sources.get(name) or ()]
    distance, window = Distance.of(params), int(params["window"])
    treated = scaled([each.values for each in series], normalize=distance.normalize)
    a, b = treated.joined
    profile, coverage = so_far(Problem(a, b, window, distance.normalize, both=False), Path(request["checkpoint"]))
    profile.distances = treated.distances(profile.distances)
    sheet = sheets.matrix_profile(profile, window, series[0].times_us)
    sheet.json.update({"partial": True, "coverage": coverage})
    sheet.arrays["coverage"] = coverage
    form = next(write for _, media_type, write in FORMATS if media_type == request["media_type"])
    with output.open("wb") as out:
        form(sheet, out)
    return coverage
