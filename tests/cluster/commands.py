"""The commands of README's page "Running on a cluster", as they stand there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "README.md"
HEADING = "## Running on a cluster\n"


def page() -> str:
    """The page, to the next heading."""
    return PAGE.read_text().partition(HEADING)[2].partition("\n## ")[0]


def commands(place: str) -> str:
    """The block of commands that begins with the comment `# place`."""
    blocks = re.findall(rf"^```sh\n# {re.escape(place)}\n(.*?)^```$", page(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1, f"README has {len(blocks)} blocks of commands for {place!r}"
    return str(blocks[0])
