"""The examples of STUMPY's documentation with their answers, for proving that what computes here computes right."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from workers.matrix_profile.ground import ClientHere
from workers.matrix_profile.profile import Floats
from workers.matrix_profile.tiles import ab_join, self_join
from workers.reporting import Silent
from workers.stumpys import stumpy

M: Final = 3
ODD: Final = np.array([584.0, -11.0, 23.0, 79.0, 1001.0, 0.0, -19.0])
OTHER: Final = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 0.0, 32.0])
SHORT: Final = np.array([-11.1, 23.4, 79.5, 1001.0])
SERIES: Final = (
    np.array([584.0, -11.0, 23.0, 79.0, 1001.0, 0.0, 19.0]),
    np.array([600.0, -10.0, 23.0, 17.0]),
    np.array([1.0, 9.0, 6.0, 0.0]),
)
PROFILE: Final = (0.11633857113691416, 2.694073918063438, 3.0000926340485923, 2.694073918063438, 0.11633857113691416)
BEST_OF_TWO: Final = (0.0, 1.43947142, 0.0, 2.69407392, 0.11633857)


class WrongAnswer(ArithmeticError):
    """STUMPY computes here, and not what it should."""


def _absolute(values: Floats) -> Floats:
    """The p-norm profile of `values` for p=2, pair by pair; its exclusion zone is 1."""
    windows = np.lib.stride_tricks.sliding_window_view(values, M)
    apart = np.sqrt(((windows[:, None] - windows[None]) ** 2).sum(axis=2))
    apart[np.abs(np.subtract.outer(np.arange(len(windows)), np.arange(len(windows)))) <= 1] = np.inf
    return np.asarray(apart.min(axis=1))


def _first_window(function: Any, *client: Any, **keywords: Any) -> Any:
    pan = function(*client, ODD, min_m=M, max_m=M, **keywords)
    pan.update()
    return pan.P_[0]


CASES: Final[Mapping[tuple[str, str], tuple[Callable[..., Any], Any]]] = {
    ("stump", "stumped"): (lambda f, *client: f(*client, ODD, M).P_, PROFILE),
    ("aamp", "aamped"): (lambda f, *client: f(*client, ODD, M).P_, _absolute(ODD)),
    ("mstump", "mstumped"): (lambda f, *client: f(*client, np.array([ODD, OTHER]), M).P_[0], BEST_OF_TWO),
    ("mpdist", "mpdisted"): (lambda f, *client: f(*client, SHORT, ODD, M), 0.00019935236191097894),
    ("ostinato", "ostinatoed"): (lambda f, *client: f(*client, list(SERIES), M), (1.2370237678153826, 0, 4)),
    ("stimp", "stimped"): (
        lambda f, *client: _first_window(f, *client, **({} if client else {"percentage": 1.0})),
        PROFILE,
    ),
}
"""STUMPY's function for one process and the one for pieces → how it is asked, and the answer."""


TILES: Final[Mapping[str, tuple[Callable[[], Any], Any]]] = {
    "tiles.self_join": (
        lambda: np.concatenate(
            [self_join(ODD, M, threads=1, normalize=each).distances[:, 0] for each in (True, False)]
        ),
        np.concatenate([PROFILE, _absolute(ODD)]),
    ),
    "tiles.ab_join": (lambda: ab_join(SHORT, ODD, M, threads=1).distances.min(), 0.00019935236191097894),
}
"""The same of our own kernel."""


def answers(*, in_pieces: bool) -> list[str]:
    """Ask each function. Returns their names; raises WrongAnswer for the first that is wrong."""
    client = (ClientHere(2, Silent()),) if in_pieces else ()
    for names, (ask, expected) in CASES.items():
        name = names[in_pieces]
        _compare(name, ask(getattr(stumpy, name), *client), expected)
    return [names[in_pieces] for names in CASES] + ([] if in_pieces else tiles_answers())


def tiles_answers() -> list[str]:
    """The same of our own kernel, in this very process."""
    for name, (ask, expected) in TILES.items():
        _compare(name, ask(), expected)
    return list(TILES)


def _compare(name: str, found: Any, expected: Any) -> None:
    found = np.asarray(found, dtype=np.float64)
    if not np.allclose(found, np.asarray(expected, dtype=np.float64), rtol=0, atol=1e-6):
        raise WrongAnswer(f"{name} gave {found.tolist()} for the example of STUMPY's documentation")
