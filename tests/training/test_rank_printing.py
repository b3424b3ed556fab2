"""What ranks print that was never meant to be read as lines."""

import io
import os
from pathlib import Path
from typing import Any

from workers.training.printing import MAX_PENDING, Echo


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, message: str) -> None:
        self.lines.append(message)


def printed(folder: Path, *texts: str) -> tuple[list[str], str]:
    shared, told = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND), Lines()
    reporter: Any = told
    echo = Echo(io.StringIO(), shared, "", reporter)
    for text in texts:
        echo.write(text)
    os.close(shared)
    return told.lines, (folder / "log.txt").read_text()


def test_a_line_comes_in_parts(tmp_path: Path) -> None:
    assert printed(tmp_path, "a", "b", "c\nd\n\ne", "\r\n", "f") == (["abc", "d", "e"], "abc\nd\ne\n")


def test_a_bar_is_its_last_state_however_often_it_was_drawn(tmp_path: Path) -> None:
    lines, _ = printed(tmp_path, *(f"\r{number} of 2000" for number in range(2001)), "\n")
    assert lines == ["2000 of 2000"]


def test_what_has_no_end_is_cut_into_lines(tmp_path: Path) -> None:
    """120,000 of these took a minute, as each was put behind all before it."""
    lines, log = printed(tmp_path, *(["." * 10] * 120_000), "\n")
    assert max(map(len, lines)) <= MAX_PENDING + 10
    assert sum(map(len, lines)) == 1_200_000
    assert log == "".join(f"{line}\n" for line in lines)
