"""Whether the times of a dataset's rows go forward, as who reads results by time will take for granted."""

import numpy as np

from workers.datasets.clock import Int64s
from workers.datasets.times import Place

DAY_MICROSECONDS = 86_400_000_000


class Order:
    """The first time and the last, and where one does not come after the one before; collected batch by batch."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.last: int | None = None
        self.backward = self.repeated = 0
        self.first_backward = self.first_repeated = -1
        self.whole_days = True

    def add(self, moments: Int64s, first_record: int) -> None:
        """moments: int64 (n,) microseconds since 1970, the first of that record."""
        if not len(moments):
            return
        before = int(moments[0]) - 1 if self.last is None else self.last
        steps = np.diff(moments, prepend=before)
        backward, repeated = steps < 0, steps == 0
        if self.first is None:
            self.first = int(moments[0])
        if not self.backward and backward.any():
            self.first_backward = first_record + int(backward.argmax())
        if not self.repeated and repeated.any():
            self.first_repeated = first_record + int(repeated.argmax())
        self.backward += int(backward.sum())
        self.repeated += int(repeated.sum())
        self.whole_days &= not (moments % DAY_MICROSECONDS).any()
        self.last = int(moments[-1])

    def notes(self, place: Place, called: str) -> list[str]:
        """What to say of it. called: what a place is, a line or a row."""
        notes = []
        if self.backward:
            where = f"first in {called} {place(self.first_backward)}"
            notes.append(
                f"Times run backwards {_times(self.backward)}, {where}. Rows are taken in the "
                "order of the file; sort it if they should run forward."
            )
        if self.repeated:
            where = f"first in {called} {place(self.first_repeated)}"
            notes.append(f"A time repeats the one in the row above {_times(self.repeated)}, {where}.")
        return notes


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
