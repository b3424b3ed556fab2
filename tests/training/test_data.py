"""Windows of series and rows of tables: which there are, what is in a batch, and that a loader knows its place."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningArgumentParser

from workers.training.data import SeriesWindows, Table
from workers.training.data.loader import Loader, Shards
from workers.training.data.windows import carried


def stored(folder: Path, name: str, values) -> str:
    np.save(folder / f"{name}.npy", np.asarray(values, dtype=np.float64))
    return str(folder / f"{name}.npy")


def rows_of(loader: Loader) -> list[int]:
    return [row for batch in loader for row in batch["index"][batch["counts"]].tolist()]


def table(folder: Path, **columns) -> str:
    pq.write_table(pa.table(columns), folder / "table.parquet")
    return str(folder / "table.parquet")


def training(kind, **arguments) -> Loader:
    data = kind(**arguments)
    data.setup()
    return data.train_dataloader()


# ---- series ------------------------------------------------------------------------------------------------------------


def test_a_batch_holds_what_the_series_holds_once_its_measure_is_taken_off(tmp_path):
    series = np.cumsum(np.random.default_rng(1).normal(size=200)) + 1e6
    data = SeriesWindows(stored(tmp_path, "s", series), context=10, horizon=3, test=0.0)
    data.setup()
    batch = next(iter(data.val_dataloader()))
    assert batch["context"].shape == (28, 1, 10)
    assert batch["context"].dtype == batch["target"].dtype == torch.float32
    assert not batch["context"][:, 0, -1].any(), "measured from the last value"
    for name, first in (("context", -10), ("target", 0)):
        plain = data.in_units(batch[name].reshape(28, -1), batch).numpy()
        steps = np.arange(first, first + plain.shape[1])
        assert plain == pytest.approx(series[batch["index"].numpy()[:, None] + steps], abs=1e-4)


def test_the_parts_follow_each_other_in_time_and_no_window_crosses_their_borders(tmp_path):
    data = SeriesWindows(stored(tmp_path, "s", range(100)), context=6, horizon=2, validation=0.2, test=0.1)
    data.setup()
    assert sorted(rows_of(data.train_dataloader())) == list(range(6, 69))
    assert rows_of(data.val_dataloader()) == list(range(76, 89))
    assert rows_of(data.test_dataloader()) == list(range(96, 99))


def test_what_comes_later_has_no_say_in_the_measure(tmp_path):
    series = np.sin(np.arange(300.0))
    louder = np.where(np.arange(300) < 210, series, series * 100)
    scales = []
    for number, values in enumerate((series, louder)):
        data = SeriesWindows(stored(tmp_path, f"s{number}", values), context=10, horizon=2)
        data.setup()
        scales.append(data.scales)
    assert scales[0] == scales[1]


def test_no_window_holds_a_gap_and_short_ones_can_be_bridged_but_are_not_forecast(tmp_path):
    series = np.arange(60.0)
    series[[20, 40, 41]] = np.nan
    series[50] = np.inf
    path = stored(tmp_path, "s", series)

    def forecasts_begin(bridge: int) -> set[int]:
        data = SeriesWindows(path, context=4, horizon=2, validation=0.0, test=0.0, bridge=bridge)
        data.setup()
        return set(rows_of(data.train_dataloader()))

    lacking = {20, 40, 41, 50}
    whole = {row for row in range(4, 59) if not lacking & set(range(row - 4, row + 2))}
    assert forecasts_begin(0) == whole
    bridged = {row for row in range(4, 59) if not {40, 41} & set(range(row - 4, row)) and not lacking & {row, row + 1}}
    assert forecasts_begin(1) == bridged
    assert forecasts_begin(2) == {row for row in range(4, 59) if not lacking & {row, row + 1}}


def test_a_bridge_tells_nothing_of_what_comes_after_it():
    nan = np.nan
    assert carried(np.array([nan, 1, nan, 3, nan, nan, 6, nan]), 1) == pytest.approx(
        [nan, 1, 1, 3, nan, nan, 6, 6], nan_ok=True
    )


def test_predictions_are_for_every_window_and_the_last_one_is_about_the_future(tmp_path):
    path = stored(tmp_path, "s", range(50))

    def begin(**said) -> list[int]:
        data = SeriesWindows(path, context=10, horizon=5, **said)
        data.setup("predict")
        return rows_of(data.predict_dataloader())

    assert begin() == list(range(10, 51))
    assert begin(stride=7) == [15, 22, 29, 36, 43, 50]
    assert begin(predict="last") == [50]
    assert begin(predict="test", test=0.3) == [45, 46, 47, 48, 49, 50]


def test_several_series_are_each_measured_by_themselves_and_covariates_are_channels(tmp_path):
    small, large = stored(tmp_path, "a", np.sin(np.arange(90.0))), stored(tmp_path, "b", 1e3 * np.cos(np.arange(70.0)))
    data = SeriesWindows([small, large], context=8, horizon=2, validation=0.0, test=0.0)
    data.setup()
    batches = list(data.train_dataloader())
    assert sum(len(batch["index"]) for batch in batches) == (90 - 9) + (70 - 9)
    assert all(batch["context"].abs().max() < 5 for batch in batches)
    beside = SeriesWindows(small, context=8, horizon=2, covariates=stored(tmp_path, "c", range(90)))
    beside.setup()
    assert next(iter(beside.train_dataloader()))["context"].shape[1:] == (2, 8)


def test_a_table_with_one_column_of_numbers_is_a_series(tmp_path):
    path = table(tmp_path, at=pa.array(range(40), pa.timestamp("s")), value=[float(i) for i in range(39)] + [None])
    data = SeriesWindows(path, context=4, horizon=1, validation=0.0, test=0.0)
    data.setup()
    assert sorted(rows_of(data.train_dataloader())) == list(range(4, 39))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"context": 0}, "`context` is 0"),
        ({"horizon": 0}, "`horizon` is 0"),
        ({"validation": 1.5}, "`validation` is 1.5"),
        ({"validation": 0.6, "test": 0.5}, "leave nothing to train on"),
        ({"context": 90, "horizon": 10}, "training part of the series has 70 rows, and a window needs 100"),
        ({"horizon": None}, "`horizon` is said neither"),
        ({"series": "nowhere.npy"}, "no such file"),
        ({"series": []}, "`series` is an empty list"),
    ],
)
def test_what_cannot_be_is_told_with_its_value(tmp_path, said, told):
    arguments = {"series": stored(tmp_path, "s", range(100)), "context": 5, "horizon": 1, **said}
    with pytest.raises(ValueError, match=told):
        training(SeriesWindows, **arguments)


def test_a_series_full_of_gaps_is_told_how_many_there_are(tmp_path):
    series = np.where(np.arange(100) % 3 == 0, np.nan, 1.0)
    data = SeriesWindows(stored(tmp_path, "s", series), context=5, horizon=1)
    data.setup()
    with pytest.raises(ValueError, match=r"70 rows, 24 of them missing.*`bridge`"):
        data.train_dataloader()


@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_part_that_nothing_was_set_aside_for_is_told(tmp_path, part):
    data = SeriesWindows(stored(tmp_path, "s", range(100)), context=5, horizon=1, **{part: 0.0})
    data.setup()
    with pytest.raises(ValueError, match=f"`{part}` is 0, so there is no {part} part"):
        (data.val_dataloader if part == "validation" else data.test_dataloader)()


# ---- tables ------------------------------------------------------------------------------------------------------------


def test_numbers_are_standardised_texts_are_categories_and_a_gap_is_seen(tmp_path):
    path = table(
        tmp_path,
        size=[1.0, 2.0, None, 3.0] * 10,
        colour=["red", "blue", "red", None] * 10,
        note=[f"n{i}" for i in range(40)],
        y=[0.5, 1.5, 2.5, 3.5] * 10,
    )
    data = Table(path, "y", validation=0.0, test=0.0, max_categories=5)
    with pytest.warns(UserWarning, match="`note` has 40 different texts"):
        data.setup()
    assert (data.inputs, data.classes) == (4, None)
    batch = next(iter(Loader(data.train_dataloader().dataset, 4, sampler=plain(40), collate_fn=dict)))
    size, gap, blue, red = batch["features"].T.numpy()
    assert size == pytest.approx(np.array([-1, 0, 0, 1]) / np.std([1, 2, 3]))
    assert gap.tolist() == [0, 0, 1, 0]
    assert (blue.tolist(), red.tolist()) == ([0, 1, 0, 0], [1, 0, 1, 0])
    assert data.in_units(batch["target"]).numpy() == pytest.approx([0.5, 1.5, 2.5, 3.5])


def plain(size: int) -> Shards:
    return Shards(size, "repeating", shuffle=False, rank=0, ranks=1, seed=0)


def test_the_split_is_the_same_in_every_job_and_rows_without_a_target_are_only_predicted(tmp_path):
    path = table(tmp_path, x=list(range(50)), y=[None if i % 10 == 0 else float(i) for i in range(50)])
    parts = []
    for _ in range(2):
        data = Table(path, "y")
        data.setup()
        parts.append(
            [sorted(rows_of(one)) for one in (data.train_dataloader(), data.val_dataloader(), data.test_dataloader())]
        )
    assert parts[0] == parts[1]
    assert sorted(row for part in parts[0] for row in part) == [i for i in range(50) if i % 10]
    assert rows_of(data.predict_dataloader()) == list(range(50))
    unknown = Table(path, "y", predict="missing")
    unknown.setup("predict")
    assert rows_of(unknown.predict_dataloader()) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"target": "z"}, "`target` is `z`, but the columns are `x`, `y`"),
        ({"features": ["q"]}, "There is no column `q` in the table; there are `x`, `y`"),
        ({"features": ["y"]}, "names the target"),
        ({"target": "x", "kind": "value"}, "which is string"),
        ({"kind": "label"}, "1,001 different values"),
        ({"table": "t.npy"}, "no such file"),
    ],
)
def test_what_a_table_cannot_serve_is_told(tmp_path, said, told):
    path = table(tmp_path, x=["a", "b", "c"] * 400, y=[float(i % 1001) for i in range(1200)])
    with pytest.raises(ValueError, match=told):
        Table(**{"table": path, "target": "y", **said}).setup()


# ---- loaders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_ranks_have_equally_many_samples_and_each_counts_once(ranks):
    parts = [list(Shards(20, "repeating", shuffle=False, rank=r, ranks=ranks, seed=0)) for r in range(ranks)]
    assert len({len(part) for part in parts}) == 1
    assert sorted(i for part in parts for i in part if i >= 0) == list(range(20))
    trained = [list(Shards(20, "dropping", shuffle=True, rank=r, ranks=ranks, seed=0)) for r in range(ranks)]
    assert {len(part) for part in trained} == {20 // ranks}
    assert len({i for part in trained for i in part}) == 20 // ranks * ranks


def test_an_epoch_has_its_own_order_and_the_seed_settles_it():
    def order(epoch: int, seed: int) -> list[int]:
        shards = Shards(50, "dropping", shuffle=True, rank=0, ranks=1, seed=seed)
        shards.set_epoch(epoch)
        return list(shards)

    assert order(0, 1) == order(0, 1)
    assert len({tuple(order(epoch, seed)) for epoch in range(3) for seed in range(2)}) == 6


def test_a_loader_goes_on_where_its_state_says_and_the_next_epoch_is_whole(tmp_path):
    data = SeriesWindows(stored(tmp_path, "s", range(100)), context=5, horizon=1, batch_size=8)
    data.setup()
    first = data.train_dataloader()
    batches = iter(first)
    seen = [next(batches)["index"].tolist() for _ in range(3)]
    state = first.state_dict()
    rest = [batch["index"].tolist() for batch in batches]
    again = data.train_dataloader()
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert [batch["index"].tolist() for batch in again] == rest
    assert [batch["index"].tolist() for batch in again] == seen + rest
    later = data.train_dataloader()
    later.load_state_dict(state)
    later.batch_sampler.sampler.set_epoch(1)
    assert len(rows_of(later)) == len(rows_of(first)), "the state was of another epoch"


def test_too_few_samples_for_the_processes_are_told():
    with pytest.raises(ValueError, match="3 samples for 4 processes"):
        Shards(3, "dropping", shuffle=True, rank=0, ranks=4, seed=0)


# ---- configurations ----------------------------------------------------------------------------------------------------


def test_a_configuration_says_it_all_in_json():
    parser = LightningArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(LightningModule, "model")
    parser.add_subclass_arguments(LightningDataModule, "data")
    base = "workers.training"
    configurations = [
        ("models.Forecaster", {"horizon": 24}, "data.SeriesWindows", {"series": "co2.npy", "context": 96}),
        (
            "models.Autoencoder",
            {},
            "data.SeriesWindows",
            {"series": ["a.npy", "b.npy"], "context": 96, "level": "mean"},
        ),
        ("models.Classifier", {"layers": 0}, "data.Table", {"table": "t.parquet", "target": "y", "features": ["a"]}),
        ("models.Regressor", {"dropout": 0.1}, "data.Table", {"table": "t.parquet", "target": "y", "features": "a"}),
    ]
    for model, model_args, data, data_args in configurations:
        config = parser.parse_object(
            {
                "model": {"class_path": f"{base}.{model}", "init_args": model_args},
                "data": {"class_path": f"{base}.{data}", "init_args": data_args},
            }
        )
        built = parser.instantiate(config)
        assert isinstance(built.model, LightningModule)
        assert isinstance(built.data, LightningDataModule)
