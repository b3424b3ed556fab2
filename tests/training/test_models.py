"""The models of training jobs, held against what a person would say without them."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from lightning.pytorch import Callback, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint

from workers.training.data import SeriesWindows, Table
from workers.training.models import Autoencoder, Classifier, Forecaster, Regressor

SEASON = 52
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


@pytest.fixture(autouse=True)
def quiet_and_alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "PL_GLOBAL_SEED", "0")
    monkeypatch.setitem(os.environ, "PL_SEED_WORKERS", "0")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def co2(tmp_path_factory) -> str:
    from statsmodels.datasets import co2

    path = tmp_path_factory.mktemp("co2") / "co2.npy"
    np.save(path, co2.load_pandas().data["co2"].to_numpy())
    return str(path)


def trainer(epochs: int = 1, **said) -> Trainer:
    said = {"enable_checkpointing": False, "callbacks": [], **said}
    return Trainer(
        max_epochs=epochs, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
        enable_model_summary=False, log_every_n_steps=1, **said,
    )  # fmt: skip


def fitted(model, data, epochs: int, **said) -> dict[str, float]:
    seed_everything(3, verbose=False)
    run = trainer(epochs, **said)
    run.fit(model, datamodule=data)
    return {name: float(value) for name, value in run.callback_metrics.items()}


def predicted(model, data, **said) -> dict[str, np.ndarray]:
    batches = trainer().predict(model, datamodule=data, **said)
    return {name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in batches[0]}


def test_forecasts_of_co2_beat_last_year_and_last_year_moved_to_where_we_are(co2):
    model, data = Forecaster(horizon=24, season=SEASON), SeriesWindows(co2, context=96)
    logged = fitted(model, data, 5)
    assert {"train_loss", "train_loss_epoch", "val_loss", "val_mae", "val_mae_naive"} == set(logged)
    (tested,) = trainer().test(model, datamodule=data, verbose=False)

    series = np.load(co2)
    begin = range(len(series) - int(len(series) * 0.1) + 96, len(series) - 23)
    last_year = [series[t - SEASON : t - SEASON + 24] for t in begin]
    moved = [year + series[t - 1] - series[t - 1 - SEASON] for year, t in zip(last_year, begin, strict=True)]
    truth = [series[t : t + 24] for t in begin]
    naive, drifting = (float(np.abs(np.subtract(said, truth)).mean()) for said in (last_year, moved))
    assert tested["test_mae_naive"] == pytest.approx(naive, rel=1e-4), "in ppm, on the same windows"
    assert tested["test_mae"] < 0.5 * naive
    assert tested["test_mae"] < 0.8 * drifting

    forecast = predicted(model, SeriesWindows(co2, context=96, predict="test"))
    assert forecast["index"].tolist() == [*begin, *range(len(series) - 23, len(series) + 1)]
    errors = np.abs(forecast["prediction"][: len(truth)] - truth).mean()
    assert errors == pytest.approx(tested["test_mae"], rel=1e-4), "predictions are in ppm too"


@pytest.mark.parametrize("kind", ["mlp", "tcn", "transformer"])
def test_every_kind_of_forecaster_beats_last_year(co2, kind):
    model = Forecaster(kind=kind, season=SEASON, width=16, layers=2)
    logged = fitted(model, SeriesWindows(co2, context=96, horizon=24, batch_size=64), 2)
    assert logged["val_mae"] < 0.6 * logged["val_mae_naive"]


class Seen(Callback):
    def __init__(self) -> None:
        self.rows: list[list[int]] = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.rows.append(batch["index"].tolist())


@pytest.mark.filterwarnings("ignore:.*callbacks used to create the checkpoint.*")
def test_a_training_that_was_cut_off_in_an_epoch_ends_as_if_it_had_not_been(co2, tmp_path):
    def run(**said):
        seen, model = Seen(), Forecaster(horizon=24, kind="mlp", width=8, layers=1)
        seed_everything(3, verbose=False)
        where = trainer(3, callbacks=[seen, *said.pop("callbacks", [])], **said.pop("trainer", {}))
        where.fit(model, datamodule=SeriesWindows(co2, context=96, batch_size=128), **said)
        return seen.rows, model.state_dict()

    saver = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=4, save_top_k=-1)
    rows, weights = run(callbacks=[saver], trainer={"enable_checkpointing": True})
    per_epoch = len(rows) // 3
    assert 4 % per_epoch, "cut in the middle of an epoch"
    for step in (4, 4 * (len(rows) // 4)):
        rest, again = run(ckpt_path=str(tmp_path / f"step={step}.ckpt"), weights_only=True)
        assert rest == rows[step:]
        assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(co2):
    def weights(seed: int) -> torch.Tensor:
        seed_everything(seed, verbose=False)
        model = Forecaster(horizon=4, kind="mlp", width=4, layers=1)
        trainer(1, limit_train_batches=5).fit(model, datamodule=SeriesWindows(co2, context=8, validation=0.0))
        return torch.cat([one.flatten() for one in model.parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@pytest.mark.parametrize("precision", ["bf16-true", "bf16-mixed", "64-true"])
def test_other_precisions_forecast_in_the_units_of_the_series(co2, precision):
    model, data = Forecaster(horizon=24), SeriesWindows(co2, context=96, batch_size=256, predict="last")
    where = trainer(3, precision=precision)
    where.fit(model, datamodule=data)
    (last,) = where.predict(model, datamodule=data)
    assert last["prediction"].dtype == torch.float64
    assert last["prediction"].numpy() == pytest.approx(np.full((1, 24), 371.5), abs=5)


@pytest.mark.filterwarnings("ignore:.*overfit.*")
def test_it_can_be_tried_whether_a_model_learns_a_few_batches_by_heart(co2):
    model, data = Forecaster(horizon=4, kind="mlp"), SeriesWindows(co2, context=8, validation=0.0)
    seen = Seen()
    fitted(model, data, 2, overfit_batches=2, callbacks=[seen])
    assert seen.rows[:2] == seen.rows[2:]


def test_fabric_can_use_the_data_too(co2):
    from lightning.fabric import Fabric

    fabric, data = Fabric(accelerator="cpu", devices=1), SeriesWindows(co2, context=96, horizon=24)
    data.setup()
    batch = next(iter(fabric.setup_dataloaders(data.train_dataloader())))
    assert batch["target"].shape == (32, 24)


def test_what_the_model_and_the_data_say_has_to_agree(co2):
    with pytest.raises(ValueError, match="`horizon` is 12 in the data and 24 in the model"):
        fitted(Forecaster(horizon=24), SeriesWindows(co2, context=96, horizon=12), 1)
    with pytest.raises(ValueError, match="`season` is 52, but only 40 samples"):
        fitted(Forecaster(horizon=24, season=52), SeriesWindows(co2, context=40), 1)
    with pytest.raises(ValueError, match="the model forecasts nothing"):
        fitted(Autoencoder(), SeriesWindows(co2, context=96, horizon=24), 1)


def test_a_checkpoint_brings_its_measure_and_says_when_the_data_is_of_another_shape(co2, tmp_path):
    path = str(tmp_path / "last.ckpt")
    run = trainer(1)
    run.fit(Forecaster(horizon=24), datamodule=SeriesWindows(co2, context=96))
    run.save_checkpoint(path)
    scales = run.datamodule.scales
    np.save(tmp_path / "short.npy", np.load(co2)[-100:])
    short = SeriesWindows(str(tmp_path / "short.npy"), context=96, predict="last")
    forecast = predicted(Forecaster(horizon=24), short, ckpt_path=path, weights_only=True)
    assert short.scales == scales
    assert forecast["prediction"] == pytest.approx(np.full((1, 24), 371.5), abs=5)
    alone = Forecaster.load_from_checkpoint(path, weights_only=True)
    assert alone(torch.zeros(1, 1, 96)).shape == (1, 24)
    with pytest.raises(ValueError, match="`context` is 48, but the checkpoint was trained with 96"):
        predicted(Forecaster(horizon=24), SeriesWindows(co2, context=48), ckpt_path=path, weights_only=True)


def test_what_does_not_belong_has_the_highest_score(tmp_path):
    noise = np.random.default_rng(5).normal(scale=0.1, size=3000)
    series = 20 + np.sin(2 * np.pi * np.arange(3000) / 40) + noise
    series[2200:2220] = 20 + np.sin(2 * np.pi * np.arange(20) / 13)
    np.save(tmp_path / "s.npy", series)
    model, data = Autoencoder(code=4, width=64), SeriesWindows(str(tmp_path / "s.npy"), context=60, batch_size=64)
    logged = fitted(model, data, 5)
    assert {"val_loss", "val_score"} <= set(logged)
    scored = predicted(model, data)
    assert scored["index"].tolist() == list(range(2941))
    top = scored["score"].argmax()
    assert 2200 - 60 < scored["index"][top] < 2220
    assert 2190 < scored["peak"][top] < 2230
    clean = np.abs(scored["index"] - 2180) > 100
    assert scored["score"][top] > 1.5 * scored["score"][clean].max()


def people(folder: Path) -> str:
    """Whose income is high depends on age and trade, with exceptions; some ages are missing."""
    chance = np.random.default_rng(2)
    age, trade = chance.uniform(20, 60, 1500), chance.choice(["baker", "clerk", "smith"], 1500)
    income = 20 + 0.5 * age + 15 * (trade == "smith") * (age > 40) + chance.normal(scale=2, size=1500)
    high = np.where(income > 45, "high", np.where(income > 38, "middle", "low"))
    ages = pa.array(age, mask=chance.uniform(size=1500) < 0.02)
    pq.write_table(pa.table({"age": ages, "trade": trade, "income": income, "high": high}), folder / "people.parquet")
    return str(folder / "people.parquet")


def test_a_classifier_beats_the_most_frequent_label_and_names_labels(tmp_path):
    path = people(tmp_path)
    model, data = Classifier(), Table(path, "high", features=["age", "trade"])
    logged = fitted(model, data, 15)
    assert logged["val_accuracy"] > 0.8
    assert logged["val_accuracy_naive"] < 0.6
    run = trainer()
    (tested,) = run.test(model, datamodule=data, verbose=False)
    assert tested["test_accuracy"] > tested["test_accuracy_naive"] + 0.25
    run.save_checkpoint(tmp_path / "last.ckpt")

    # New people, of whom less is known: no label, and one trade only.
    pq.write_table(pa.table({"age": [25.0, 58.0], "trade": ["smith", "smith"]}), tmp_path / "new.parquet")
    new = Table(str(tmp_path / "new.parquet"), "high", features=["age", "trade"])
    said = predicted(Classifier(), new, ckpt_path=str(tmp_path / "last.ckpt"), weights_only=True)
    assert said["label"].tolist() == ["low", "high"]
    total = said["probability_high"] + said["probability_low"] + said["probability_middle"]
    assert total == pytest.approx([1, 1])


def test_a_regressor_beats_the_median_in_the_units_of_its_target(tmp_path):
    model, data = Regressor(), Table(people(tmp_path), "income", features=["age", "trade"], predict="test")
    logged = fitted(model, data, 15)
    assert logged["val_mae"] < 2.3, "the noise alone is 1.6"
    assert logged["val_mae_naive"] > 5
    (tested,) = trainer().test(model, datamodule=data, verbose=False)
    said = predicted(model, data)
    income = pq.read_table(data.path)["income"].to_numpy()
    assert np.abs(said["value"] - income[said["index"]]).mean() == pytest.approx(tested["test_mae"], rel=1e-4)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Forecaster(horizon=0), "`horizon` is 0"),
        (lambda: Forecaster(learning_rate=0.0), "`learning_rate` is 0.0"),
        (lambda: Autoencoder(code=0), "`code` is 0"),
        (lambda: Classifier(layers=-1), "`layers` is -1"),
    ],
)
def test_a_size_that_no_network_has_is_told(make, told):
    with pytest.raises(ValueError, match=told):
        make()
