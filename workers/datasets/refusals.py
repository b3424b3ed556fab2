"""Why a file is refused: a sentence for people, the place it is about, and the option that settles it."""


class Refused(Exception):
    """This file cannot be read for certain; the detail says what to do."""

    def __init__(
        self, detail: str, *, row: int | None = None, column: str | int | None = None, option: str | None = None
    ) -> None:
        super().__init__(detail)
        self.detail, self.row, self.column, self.option = detail, row, column, option


class BadOption(Refused):
    """An option was set to something it cannot mean."""


class Contradiction(Refused):
    """The file is declared to be one thing and its bytes are another."""


class Damaged(Refused):
    """The file is of the kind it claims, but cut short or broken."""


class TooLarge(Refused):
    """Reading the file would cost more than a file may."""


class Uncertain(Refused):
    """The file has more than one reading; `option` names what chooses between them."""


class Unfit(Refused):
    """The file is sound, but does not hold columns of numbers."""


def quoted(value: object, limit: int = 60) -> str:
    """A value from a file as it may stand in a sentence: printable, short, in backticks."""
    text = str(value)
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return f"`{''.join(c if c.isprintable() else repr(c)[1:-1] for c in shown)}`"
