"""A consensus motif is the one the definition gives; a gap never wins."""

import json

import numpy as np
import pytest

from tests import oracle
from tests.matrix_profile.hard import HARD, NOISE, OTHER, WALK, with_
from workers.failures import InvalidInput
from workers.matrix_profile import radii
from workers.matrix_profile.verify import Unverifiable

THREE = [WALK, OTHER, NOISE[:80]]


@pytest.fixture
def consensus(compute):
    def start(series, window: int, **asked):
        return compute("consensus_motif", {"series": series}, window=window, **asked)

    return start


def assert_true(done, series, window, **asked):
    """The radius named is the true one of the window named, and none is smaller; within what STUMPY takes for equal."""
    said = json.loads((done.folder / "result.json").read_text())
    radii = oracle.radii(series, window, **asked)
    least = min(each.min() for each in radii)
    scale = max(each[np.isfinite(each)].max() for each in radii) or 1.0
    assert said["radius"] == pytest.approx(radii[said["series"]][said["index"]], rel=1e-9, abs=1e-12 * scale)
    assert said["radius"] <= least * (1 + 2e-5) + 1e-7 * scale
    for neighbor in done.answer["summary"]["neighbors"]:
        apart = oracle.matrix_profile(series[said["series"]], window, against=series[neighbor["series"]], **asked)
        row = apart.table[said["index"]]
        assert neighbor["distance"] == pytest.approx(float(row.min()), rel=1e-9, abs=1e-9 * scale)
        assert float(row[neighbor["index"]]) == pytest.approx(float(row.min()), rel=1e-7, abs=1e-7 * scale)


DISTANCES = [{}, *({"normalize": False, "p": p} for p in (1.0, 2.0, 3.0, 1.5))]
TILES = {"implementation": "tiles"}
OF_TILES = [{}, {"normalize": False, "p": 2.0}]


def test_the_documented_example(consensus):
    series = [[584, -11, 23, 79, 1001, 0, 19], [600, -10, 23, 17], [1, 9, 6, 0]]
    summary = consensus(series, 3).answer["summary"]
    assert (summary["series"], summary["index"]) == (0, 4)
    assert summary["radius"] == pytest.approx(1.2370237678153826, abs=1e-9)


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_distance(consensus, asked, count):
    series = [*THREE, WALK[::-1], OTHER[::-1].cumsum()][:count]
    done = consensus(series, 10, **asked)
    assert_true(done, series, 10, **asked)
    assert done.answer["provenance"]["function"] == ("stumpy.aamp_ostinato" if asked else "stumpy.ostinato")


@pytest.mark.parametrize("asked", OF_TILES, ids=str)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_in_tiles(consensus, asked, count):
    series = [*THREE, WALK[::-1], OTHER[::-1].cumsum(), NOISE[60:].cumsum(), WALK[20:70] * 3][:count]
    done = consensus(series, 10, plan=TILES, **asked)
    assert_true(done, series, 10, **asked)
    provenance, summary = done.answer["provenance"], done.answer["summary"]
    assert (provenance["implementation"], provenance["function"]) == ("tiles", "tiles.consensus_motif")
    least = min(each.min() for each in oracle.radii(series, 10, **asked))
    assert summary["radius"] == pytest.approx(least, rel=1e-12)
    assert summary["verification"]["rows_checked"] > 9
    assert done.heard.progressed[-1][2] == "tiles"
    assert not (done.folder / "consensus.checkpoint").exists()


@pytest.mark.parametrize("asked", OF_TILES, ids=str)
def test_tiles_find_a_motif_hidden_in_long_series(consensus, asked):
    """Long enough that most windows are left out."""
    rng = np.random.default_rng(5)
    shape = 3 * np.sin(np.arange(40) / 3)
    series = [rng.standard_normal(2500) for _ in range(5)]
    places = [int(rng.integers(0, 2460)) for _ in series]
    for each, place in zip(series, places, strict=True):
        each[place : place + 40] = shape + 0.2 * rng.standard_normal(40)
    done = consensus(series, 40, plan=TILES, **asked)
    summary = done.answer["summary"]
    others = {each["series"]: each["index"] for each in summary["neighbors"]} | {summary["series"]: summary["index"]}
    assert [others[number] - place for number, place in enumerate(places)] == [0] * 5
    by_stumpy = consensus(series, 40, **asked).answer["summary"]
    assert (summary["series"], summary["index"]) == (by_stumpy["series"], by_stumpy["index"])
    assert summary["radius"] == pytest.approx(by_stumpy["radius"], rel=1e-12)


@pytest.mark.parametrize("off", [0.9, 1.1])
def test_tiles_that_are_wrong_give_no_result(consensus, monkeypatch, off):
    original = radii.Radii.found
    monkeypatch.setattr(radii.Radii, "found", lambda self, a, b: original(self, a, b) * off)
    with pytest.raises(Unverifiable, match=r"from its nearest in series|the definition gives"):
        consensus(THREE, 10, plan=TILES)


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
def test_in_pieces_on_a_cluster(consensus, spread, asked):
    done = consensus(THREE, 10, plan=spread, **asked)
    assert_true(done, THREE, 10, **asked)
    assert done.answer["provenance"]["function"] == ("stumpy.aamp_ostinatoed" if asked else "stumpy.ostinatoed")
    assert [told[:3] for told in done.heard.progressed] == [(number, 6, "pieces") for number in range(1, 7)]


@pytest.mark.parametrize("case", [case for case in HARD if case not in ("values near the largest", "only gaps")])
@pytest.mark.parametrize("asked", [{}, {"normalize": False, "p": 1.0}, {"normalize": False}], ids=str)
def test_hard_series(consensus, case, asked):
    series = [NOISE[:90], HARD[case], with_(OTHER, slice(30, 45), 2.0)]
    assert_true(consensus(series, 10, **asked), series, 10, **asked)


@pytest.mark.parametrize("case", [case for case in HARD if case not in ("values near the largest", "only gaps")])
@pytest.mark.parametrize("asked", OF_TILES, ids=str)
def test_hard_series_in_tiles(consensus, case, asked):
    series = [NOISE[:90], HARD[case], with_(OTHER, slice(30, 45), 2.0), WALK[::-1]]
    assert_true(consensus(series, 10, plan=TILES, **asked), series, 10, **asked)
    series = [HARD[case], HARD[case][::-1]]
    assert_true(consensus(series, 10, plan=TILES, **asked), series, 10, **asked)


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e160])
@pytest.mark.parametrize("asked", [{}, {"normalize": False, "p": 1.0}, {"normalize": False}], ids=str)
def test_all_series_of_another_size(consensus, scale, asked, plan):
    if plan and asked not in [{}, {"normalize": False}]:
        pytest.skip("tiles have no such norm")
    series = [each * scale for each in THREE]
    assert_true(consensus(series, 10, plan=plan, **asked), series, 10, **asked)


@pytest.mark.parametrize(
    ("asked", "plan"),
    [({}, {}), ({"normalize": False, "p": 1.0}, {}), ({}, TILES), ({"normalize": False}, TILES)],
    ids=str,
)
def test_gaps_do_not_match_each_other(consensus, asked, plan):
    series = [with_(each + 10, slice(20, 45), np.nan) for each in THREE]
    series[1] = with_(series[1], slice(60, 75), -np.inf)
    assert_true(consensus(series, 10, plan=plan, **asked), series, 10, **asked)


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_zeros_and_gaps_are_told_apart(consensus, plan):
    """STUMPY fills gaps with zeros: a series with zeros where another has a gap has the same filled copy."""
    first = with_(WALK, slice(50, 70), 0.0)
    series = [first, with_(first, slice(50, 70), np.nan), OTHER]
    assert_true(consensus(series, 10, plan=plan), series, 10)


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_the_same_series_twice(consensus, plan):
    assert_true(consensus([WALK, WALK], 10, plan=plan), [WALK, WALK], 10)
    assert_true(consensus([WALK, OTHER, WALK], 10, plan=plan), [WALK, OTHER, WALK], 10)


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_there_is_no_consensus_with_a_series_of_gaps(consensus, plan):
    with pytest.raises(InvalidInput, match="there is no consensus: 'series1' has no window of 10 samples"):
        consensus([WALK, with_(OTHER, slice(0, None, 5), np.nan), NOISE], 10, plan=plan)


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_one_series_has_no_consensus(consensus, plan):
    with pytest.raises(InvalidInput, match="two series or more"):
        consensus([WALK], 10, plan=plan)


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_the_files_and_the_summary(consensus, plan):
    done = consensus(THREE, 10, plan=plan, times={"series": np.arange(150) * 60_000_000})
    summary, said = done.answer["summary"], json.loads((done.folder / "result.json").read_text())
    assert list(said)[:4] == ["radius", "series", "index", "at"]
    assert said["at"] == summary["at"]
    line = f"{said['radius']},{said['series']},{said['index']},{said['at']}"
    assert (done.folder / "result.csv").read_text() == f"radius,series,index,time\n{line}\n"
    assert float(done.arrays["radius"]) == said["radius"]
    assert [each["series"] for each in summary["neighbors"]] == [n for n in range(3) if n != said["series"]]
    assert max(each["distance"] for each in summary["neighbors"]) == said["radius"]
    # By STUMPY its joins' rows as well; in tiles, two of each direction of what is compared, and the motif's.
    assert summary["verification"]["rows_checked"] > (24 if not plan else 12)
    json.dumps(done.answer, allow_nan=False)
