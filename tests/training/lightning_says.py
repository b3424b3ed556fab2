"""What Lightning itself says of accelerators, strategies and precisions: run as a process of its own, cases on stdin, answers on stdout.

A case is `[mode, arguments, cuda]`; with `cuda`, Lightning is told that the machine has so many CUDA devices, as its own tests do.
"""

import contextlib
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from unittest import mock

warnings.simplefilter("ignore")

import lightning.fabric.strategies as fabric_strategies  # noqa: E402
import lightning.pytorch.strategies as trainer_strategies  # noqa: E402
import torch  # noqa: E402
from lightning.fabric import Fabric  # noqa: E402
from lightning.pytorch import Trainer  # noqa: E402
from lightning.pytorch.plugins import DeepSpeedPrecision, FSDPPrecision  # noqa: E402

logging.getLogger("lightning").setLevel(logging.ERROR)
PACKAGES = {"trainer": trainer_strategies, "fabric": fabric_strategies}
QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


def says(mode: str, arguments: dict, cuda: int) -> str | None:
    """None where it accepts them, else its objection."""
    arguments = dict(arguments)
    try:
        with there_are(cuda):
            if isinstance(strategy := arguments.get("strategy"), dict):
                made = getattr(PACKAGES[mode], strategy["class_path"].rpartition(".")[2])
                arguments["strategy"] = made(**strategy.get("init_args", {}))
            Fabric(**arguments) if mode == "fabric" else Trainer(**arguments, **QUIET)
    except Exception as objection:
        return f"{type(objection).__name__}: {objection}"
    return None


@contextlib.contextmanager
def there_are(cuda: int) -> Iterator[None]:
    """Have Lightning see so many CUDA devices."""
    with contextlib.ExitStack() as patches:
        for module in ("lightning.fabric.accelerators.cuda", "lightning.pytorch.accelerators.cuda"):
            patches.enter_context(mock.patch(f"{module}.num_cuda_devices", return_value=cuda))
        patches.enter_context(mock.patch("torch.cuda.is_available", return_value=cuda > 0))
        patches.enter_context(mock.patch("torch.cuda.device_count", return_value=cuda))
        yield


def takes(plugin: type, precision: str) -> bool:
    try:
        plugin(precision)
    except ValueError:
        return False
    return True


def main() -> None:
    asked = json.load(sys.stdin)
    torch.set_num_threads(1)
    answer = {
        "names": {
            "trainer": trainer_strategies.StrategyRegistry.available_strategies(),
            "fabric": fabric_strategies.STRATEGY_REGISTRY.available_strategies(),
        },
        "classes": {
            mode: [name for name in dir(package) if name.endswith("Strategy")] for mode, package in PACKAGES.items()
        },
        "cases": [says(*case) for case in asked["cases"]],
        "fsdp": {name: takes(FSDPPrecision, name) for name in asked["precisions"]},
        "deepspeed": {name: takes(DeepSpeedPrecision, name) for name in asked["precisions"]},
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
