"""Records of what is computed come back as they were, up to where the file is whole."""

import numpy as np
import pytest

from tests.matrix_profile.conftest import Heard
from workers.matrix_profile.records import Record, Records, read

SERIES = [np.array([1.0, np.nan, 3.0])]
RECORDS = [
    Record({"m": 3, "least": [np.inf, -1]}, {"distances": np.array([1.5, np.inf]), "neighbors": np.array([1, -1])}),
    Record({"m": 4}, {}),
    Record({"m": 5}, {"table": np.arange(6.0).reshape(2, 3), "none": np.empty(0)}),
]


@pytest.fixture
def path(tmp_path):
    with Records(tmp_path / "one", [], Heard(), SERIES, 8) as records:
        for each in RECORDS:
            records.add(each)
    return tmp_path / "one"


def found(path, earlier, series=SERIES, *settings):
    with Records(path, earlier, Heard(), series, *(settings or (8,))) as records:
        return records.found


def assert_same(some, others):
    assert [each.about for each in some] == [each.about for each in others]
    for one, other in zip(some, others, strict=True):
        assert list(one.arrays) == list(other.arrays)
        for name, values in one.arrays.items():
            np.testing.assert_array_equal(values, other.arrays[name])
            assert values.dtype == other.arrays[name].dtype


def test_they_come_back_and_are_kept_for_the_next_attempt(path, tmp_path):
    assert_same(found(tmp_path / "two", [tmp_path / "none", path]), RECORDS)
    path.unlink()
    assert_same(found(tmp_path / "three", [tmp_path / "two"]), RECORDS)


def test_those_of_other_series_or_settings_do_not(path, tmp_path):
    assert found(tmp_path / "two", [path], [np.array([1.0, np.nan, 4.0])]) == []
    assert found(tmp_path / "two", [path], SERIES, 9) == []


def test_a_file_is_good_up_to_where_it_was_cut_or_changed(path, tmp_path):
    content = path.read_bytes()
    whole = []
    for end in range(len(content) + 1):
        (tmp_path / "cut").write_bytes(content[:end])
        whole.append(len(found(tmp_path / "two", [tmp_path / "cut"])))
    assert whole == sorted(whole)
    assert (whole[0], whole[-2], whole[-1]) == (0, 2, 3)
    for at in range(len(content)):
        (tmp_path / "changed").write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        kept = found(tmp_path / "two", [tmp_path / "changed"])
        assert len(kept) < 3
        assert_same(kept, RECORDS[: len(kept)])


def test_a_full_disk_costs_the_records_alone(tmp_path):
    heard = Heard()
    with Records(tmp_path / "one", [], heard, SERIES, 8) as records:
        records._out.close()
        records._out = open("/dev/full", "wb", buffering=0)
        for each in RECORDS:
            records.add(each)
    with (tmp_path / "one").open("rb") as file:
        assert len(list(read(file))) == 1
