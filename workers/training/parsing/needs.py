"""What a stage needs of the model and of the data: looked for in the classes, before anything is built."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from workers.training.rules import Fault
from workers.training.rules.pointers import CONFIG, joined

STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "fit": ("training_step",),
    "validate": ("validation_step",),
    "test": ("test_step",),
    "predict": ("predict_step", "forward"),
}
"""stage → the methods of which the model must have one of its own."""
LOADERS: Final[Mapping[str, str]] = {
    "fit": "train_dataloader",
    "validate": "val_dataloader",
    "test": "test_dataloader",
    "predict": "predict_dataloader",
}


def missing(stage: str, model: type, data: type | None, optimizer: bool, bases: Any) -> Iterator[Fault]:
    """bases: the module with `LightningModule` and `LightningDataModule`."""
    base, model_at = bases.LightningModule, joined(CONFIG, "model", "class_path")
    if not any(own(model, name, base) for name in STEPS[stage]):
        yield Fault(
            model_at,
            f"{model.__name__} has no {' or '.join(f'`{name}`' for name in STEPS[stage])}, which stage {stage!r} needs",
        )
    if stage == "fit" and not optimizer and not own(model, "configure_optimizers", base):
        yield Fault(
            model_at, f"{model.__name__} has no `configure_optimizers`; add one, or an `optimizer` to the configuration"
        )
    loader = LOADERS[stage]
    if own(model, loader, base):
        return
    if data is None:
        yield Fault(CONFIG, f"`data` is missing: {model.__name__} has no `{loader}` of its own")
    elif not own(data, loader, bases.LightningDataModule):
        yield Fault(
            joined(CONFIG, "data", "class_path"), f"{data.__name__} has no `{loader}`, which stage {stage!r} needs"
        )


def own(cls: type, name: str, base: type) -> bool:
    """Whether `cls` has a method of its own, beyond what `base` has."""
    return getattr(cls, name, None) is not getattr(base, name, None)
