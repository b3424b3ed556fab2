"""Whose code an exception came out of: the user's, a library's, or ours; and its traceback as users see it."""

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

import torch

MAX_TRACEBACK = 16_000
OURS: Final = f"{Path(__file__).parent.parent}/"
BUILT_IN: Final = tuple(f"{OURS}training/{part}" for part in ("models/", "data/", "loops.py"))
"""Ours as well, but read by users as the code of their model."""
_NAMES = (
    *("torch", "lightning", "pytorch_lightning", "lightning_fabric"),
    *("lightning_utilities", "torchmetrics", "jsonargparse", "fsspec"),
)
STANDARD: Final = f"{sysconfig.get_path('stdlib')}/"
LIBRARIES: Final = (*(f"{Path(torch.__file__).parent.parent}/{name}/" for name in _NAMES), "<frozen ", "<string>")


def frames(fault: BaseException) -> Iterator[tuple[str, str]]:
    """File and function of each frame, the innermost one last."""
    where = fault.__traceback__
    while where is not None:
        yield where.tb_frame.f_code.co_filename, where.tb_frame.f_code.co_name
        where = where.tb_next


def is_of_user(fault: BaseException) -> bool:
    """Whether it passed through code that is neither ours nor a library's that we build on."""
    return any(_is_strange(file) for file, _ in frames(fault))


def is_of_built_in(fault: BaseException) -> bool:
    """Whether our data or models raised it themselves, as they do where an argument is wrong."""
    *_, (file, _) = [("", ""), *frames(fault)]
    return file.startswith(BUILT_IN)


def is_of_loading(fault: BaseException) -> bool:
    """Whether it was raised while the checkpoint was loaded that the job begins with, and not by the user's own hooks."""
    found = list(frames(fault))
    if any(file == f"{OURS}training/fabric.py" and function == "load" for file, function in found):
        return any(file.endswith("torch/serialization.py") for file, _ in found)
    loads = any(file.endswith("checkpoint_connector.py") and function.startswith("re") for file, function in found)
    return loads and not is_of_user(fault)


def traceback_of(fault: BaseException) -> str:
    """As Python prints it, from the first frame that is not ours on."""
    where: TracebackType | None = fault.__traceback__
    while where is not None and where.tb_next is not None and _is_hidden(where.tb_frame.f_code.co_filename):
        where = where.tb_next
    text = "".join(traceback.format_exception(type(fault), fault, where))
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= MAX_TRACEBACK:
        return text
    # The message comes last and the user's frames first, and either may be what is long.
    half = MAX_TRACEBACK // 2
    return f"{text[:half]}\n… (cut here: it has {len(text):,} characters) …\n{text[-half:]}"


def _is_strange(file: str) -> bool:
    if file.startswith(STANDARD):
        # In an installation without a virtual environment, all packages are below the standard library.
        return "/site-packages/" in file and not file.startswith(LIBRARIES)
    return not file.startswith((OURS, *LIBRARIES))


def _is_hidden(file: str) -> bool:
    return file.startswith(OURS) and not file.startswith(BUILT_IN)
