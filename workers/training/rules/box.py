"""Which of the data in the box goes with which of the models in the box, and where a horizon is said."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from workers.contract import TrainingParams
from workers.training.rules.pointers import CONFIG, joined
from workers.training.rules.words import TRAINER, Fault

MODELS: Final = "workers.training.models."
DATA: Final = "workers.training.data."


@dataclass(frozen=True)
class Fit:
    """What one model goes with."""

    data: str
    forecasts: bool | None = None
    """Whether it needs a horizon, or takes none; None where the data has no such thing."""


FITS: Final[Mapping[str, Fit]] = {
    "Forecaster": Fit("SeriesWindows", forecasts=True),
    "Autoencoder": Fit("SeriesWindows", forecasts=False),
    "Classifier": Fit("Table"),
    "Regressor": Fit("Table"),
}
KNOWN: Final = frozenset(fit.data for fit in FITS.values())


def fitting(params: TrainingParams) -> Iterator[Fault]:
    """Faults of a model and data that are both in the box; of others nothing is known before they run."""
    model, data = (params.config.get(key) for key in ("model", "data"))
    fit, given = FITS.get(_name(model, MODELS)), _name(data, DATA)
    if params.mode != TRAINER or fit is None or given not in KNOWN:
        return
    if given != fit.data:
        detail = f"{given} does not go with {_name(model, MODELS)}, which takes the batches of {DATA}{fit.data}"
        yield Fault(joined(CONFIG, "data", "class_path"), detail)
    elif fit.forecasts is not None:
        yield from _horizon(fit.forecasts, _argument(model, "horizon"), _argument(data, "horizon"))


def _horizon(forecasts: bool, models: Any, datas: Any) -> Iterator[Fault]:
    """The rule of `workers.training.data.splits.agreed`, told before anything runs."""
    at = joined(CONFIG, "data", "init_args")
    if not forecasts:
        if datas is not None:
            yield Fault(joined(at, "horizon"), f"is {datas!r}, but the model forecasts nothing. Leave it out.")
    elif models is None and datas is None:
        detail = "`horizon` is said neither of the data nor of the model. Give the number of samples to forecast."
        yield Fault(at, detail)
    elif models is not None and datas is not None and str(models) != str(datas):
        yield Fault(joined(at, "horizon"), f"is {datas!r} here and {models!r} in the model. Say it once.")


def _name(section: Any, module: str) -> str:
    """The class's own name, where it is of `module`."""
    path = section.get("class_path") if isinstance(section, dict) else None
    return path.rpartition(".")[2] if isinstance(path, str) and path.startswith(module) else ""


def _argument(section: Any, name: str) -> Any:
    given = section.get("init_args") if isinstance(section, dict) else None
    return given.get(name) if isinstance(given, dict) else None
