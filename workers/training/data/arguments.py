"""What every argument has to be, told to people when it is not."""

from collections.abc import Collection


def at_least(name: str, value: int, least: int, unit: str = "") -> int:
    """The value, or a ValueError that names the argument."""
    if value < least:
        raise ValueError(f"`{name}` is {value:,}, but must be at least {least:,}{unit and ' ' + unit}.")
    return value


def shares(validation: float, test: float) -> None:
    """Refuse shares of the data that are none, or that leave nothing to train on."""
    for name, value in (("validation", validation), ("test", test)):
        if not 0 <= value < 1:
            raise ValueError(f"`{name}` is {value}, but is a share of the data: at least 0 and less than 1.")
    if validation + test >= 1:
        raise ValueError(f"`validation` {validation} and `test` {test} leave nothing to train on. Lower one.")


def listed(names: Collection[str], most: int = 12) -> str:
    """Names as they may stand in a sentence, however many there are."""
    told = ", ".join(f"`{name}`" for name in list(names)[:most])
    return told + (f" and {len(names) - most:,} more" if len(names) > most else "") or "none"


def nonzero(name: str, share: float) -> None:
    """Refuse to look for a part of the data that there is none of."""
    if not share:
        raise ValueError(
            f"`{name}` is 0, so there is no {name} part. Give it a share, such as 0.1, in training already."
        )
