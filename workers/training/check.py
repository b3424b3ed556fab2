"""The check of a training job before it is queued: here as a command for one machine, and, in full, asked of a worker.

    python -m workers.training.check [--mode trainer|fabric] [--accelerator …] [--devices …] [--num-nodes …] [--strategy …] [--precision …]

Exit code 0 and what would run, as JSON, or 2 and the reasons. Importing this imports no torch.
"""

import argparse
import json
import sys
import threading
import uuid
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Any, Final

from pydantic import AfterValidator, ValidationError

from workers import agent as agents
from workers import hardware
from workers.contract import Message, TrainingParams
from workers.host import TRAINING, current_host
from workers.nursery_client import NurseryGone, PieceFailed, PieceKilled
from workers.training.rules import Machine, decide
from workers.training.rules.pointers import CONFIG

REFUSED: Final = 2
OPTIONS: Final = ("accelerator", "devices", "num_nodes", "strategy", "precision")
PACKAGES: Final = ("deepspeed", "transformer_engine", "bitsandbytes")
"""What some strategies and precisions need beyond Lightning."""
CHILD_SECONDS: Final = 10.0
"""Reading a configuration takes a second; importing a user's own modules should not take many more."""
IN_CHILD: Final = "workers.training.checking:in_child"
SOURCE: Final = "/params/source"
LONGEST: Final = 2000
"""Characters of a sentence. What a module raises while it is imported may be a book."""


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


Sentence = Annotated[str, AfterValidator(_shortened)]


class Found(Message):
    """A fault, as the one who asks reads it."""

    pointer: str
    detail: Sentence


class Answer(Message):
    """What a check found. It comes from a process in which a user's modules ran, and so perhaps from them."""

    faults: list[Found]
    warnings: list[Sentence]


def this_machine() -> Machine:
    """What can be known without importing torch."""
    return Machine(
        cuda_devices=len(hardware.gpus()),
        cuda_reason="this machine has no CUDA device that its driver shows",
        packages={package: find_spec(package) is not None for package in PACKAGES},
    )


# ---- asked of a worker -----------------------------------------------------------------------------------------


def on_worker(params: dict[str, Any], allow: list[str], source: str | None) -> dict[str, Any]:
    """Called in a worker's process: what is wrong with a configuration as a whole, its classes imported in a child of its own.

    Returns `{"faults": [{"pointer", "detail"}], "warnings": [sentence]}`.
    """
    asked = uuid.uuid4().hex
    with agents.storage().desk(f"check-{asked}", asked, threading.Event()) as desk:
        return _checked(params, allow, source and desk.folder(source))


def _checked(params: dict[str, Any], allow: list[str], source: str | None) -> dict[str, Any]:
    piece = current_host().nursery_for(TRAINING).fork(IN_CHILD, [params, allow, source])
    limit = threading.Timer(CHILD_SECONDS, piece.kill)
    limit.daemon = True
    limit.start()
    try:
        return Answer.model_validate(piece.follow(lambda message: None)).model_dump()
    except PieceKilled:
        return _refused(f"Importing its classes took longer than {CHILD_SECONDS:.0f} seconds, and was ended.")
    except NurseryGone:
        current_host().is_warm(TRAINING)  # another one begins; raises where it went because this worker leaves
        what = "this source" if source else "its classes"
        told = (
            f"Importing {what} ended the process that checks it, and with it the one that all checks are forked from."
        )
        return _refused(told, SOURCE if source else CONFIG)
    except ValidationError:
        return _refused("Importing its classes wrote something else where the answer of the check is expected.")
    except PieceFailed as failed:
        return _refused(f"Reading it failed: {failed.problem.get('detail')}")
    except Exception as ended:  # a module that ends its process while it is imported
        return _refused(f"Importing its classes ended the process that did it: {ended}")
    finally:
        limit.cancel()


def _refused(detail: str, pointer: str = CONFIG) -> dict[str, Any]:
    return Answer(faults=[Found(pointer=pointer, detail=detail)], warnings=[]).model_dump()


# ---- as a command ----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workers.training.check", description="What would run on this machine, or why it cannot."
    )
    parser.add_argument("--mode", choices=("trainer", "fabric"), default="trainer")
    for name in OPTIONS:
        parser.add_argument(
            f"--{name.replace('_', '-')}", help="as in Lightning" + (", or an object" if name == "strategy" else "")
        )
    sent = parser.parse_args(arguments)
    asked = {name: _value(name, text) for name in OPTIONS if (text := getattr(sent, name)) is not None}
    checked = decide(TrainingParams(mode=sent.mode, config={sent.mode: asked}), this_machine())
    for warning in checked.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    for fault in checked.faults:
        sys.stderr.write(f"{fault.pointer.removeprefix(f'{CONFIG}/{sent.mode}/')}: {fault.detail}\n")
    if checked.resolved is None:
        return REFUSED
    sys.stdout.write(checked.resolved.model_dump_json(exclude_none=True) + "\n")
    return 0


def _value(name: str, text: str) -> Any:
    """A strategy may be an object; a number of nodes is a number, where it is one."""
    if name == "num_nodes" or text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


if __name__ == "__main__":
    sys.exit(main())
