"""What people send: each kind by its name, and faults told with the place and in the words of that kind alone."""

import pytest
from pydantic import ValidationError

from app.jobs import examples
from app.jobs.requests import REQUESTS, Execution, JobRequest
from app.kit.pointers import field_errors
from tests.jobs.planned import series_of
from workers.operations import OPERATIONS

WHOLE = {"values": [1.0, 2.0, 3.0]}


def faults(body) -> list[tuple[str, str]]:
    """Pointers and sentences, as the API tells them."""
    with pytest.raises(ValidationError) as caught:
        REQUESTS.validate_python(body)
    errors = [{**error, "loc": ("body", *error["loc"])} for error in caught.value.errors()]
    return [(fault.pointer, fault.detail) for fault in field_errors(errors, body, JobRequest)]


@pytest.mark.parametrize("kind", OPERATIONS)
def test_each_kind_has_its_params(kind):
    window = {} if kind == "pan_profile" else {"window": 8}
    request = REQUESTS.validate_python({"kind": kind, "params": series_of(kind) | window})
    assert request.kind == kind
    assert type(request.params) is OPERATIONS[kind].params
    again = REQUESTS.validate_python(request.model_dump(mode="json"))
    assert again == request


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "is required and is not there"),
        ({"kind": None}, "is required and is not there"),
        ({"kind": "mtarix_profile"}, "`mtarix_profile` is not known here"),
        ({"kind": 5}, "must be text"),
        ({"kind": ["mpdist"]}, "must be text"),
        ({"kind": "probe", "params": {"check": "all"}}, "made by `POST /capabilities/probes`"),
    ],
)
def test_a_wrong_kind_is_told_with_the_kinds_there_are(body, says):
    [(pointer, detail)] = faults(body)
    assert pointer == "/kind"
    assert says in detail
    assert all(f"`{kind}`" in detail for kind in OPERATIONS)


def test_unknown_parameters_are_told_in_the_words_of_their_kind():
    mpdist = {"a": WHOLE, "b": WHOLE, "window": 3}
    [(pointer, detail)] = faults({"kind": "mpdist", "params": {**mpdist, "step": 2}})
    assert pointer == "/params/step"
    assert "Known are `a`, `b`, `window`, `percentage`, `k`, `normalize`, `p`." in detail
    [(pointer, detail)] = faults({"kind": "pan_profile", "params": {"series": WHOLE, "window": 3}})
    assert (pointer, "did you mean `min_window`?" in detail) == ("/params/window", True)
    [(pointer, detail)] = faults({"kind": "mpdist", "params": mpdist, "backend": "cpu"})
    assert (pointer, detail) == ("/backend", "`backend` belongs in `execution`.")
    [(pointer, detail)] = faults({"kind": "mpdist", "params": mpdist, "percentage": 1})
    assert (pointer, detail) == ("/percentage", "`percentage` belongs in `params`.")


@pytest.mark.parametrize(
    ("series", "pointer", "says"),
    [
        ([WHOLE, {"values": ["a"]}], "/params/series/1/values/0", "must be a number"),
        ([WHOLE, {"vales": [1.0]}], "/params/series/1/vales", "did you mean `values`?"),
        ([WHOLE, 5], "/params/series/1", "must be an object, such as"),
        ([], "/params/series", "at least 1 item"),
        (5, "/params/series", "must be an object, such as"),
        (WHOLE, "/params/series", "must be a list of series"),
        ({"dataset": "ds_x", "columns": []}, "/params/series/columns", "at least 1 item"),
        ({"dataset": "ds_x", "columns": [1.5]}, "/params/series/columns/0", "must be a whole number"),
        ({"dataset": 5}, "/params/series/dataset", "must be text"),
    ],
)
@pytest.mark.parametrize("kind", ["multidimensional_profile", "consensus_motif"])
def test_a_fault_in_several_series_has_one_place(kind, series, pointer, says):
    found = faults({"kind": kind, "params": {"series": series, "window": 3}})
    assert {at for at, _ in found} >= {pointer}
    assert {at for at, _ in found} <= {pointer, "/params/series/dataset"}  # which Columns cannot do without
    assert any(says in detail for _, detail in found)


@pytest.mark.parametrize("p", ["inf", float("inf")])
def test_p_is_finite_and_says_what_is_not_supported(p):
    [(pointer, detail)] = faults({"kind": "matrix_profile", "params": {"series": WHOLE, "window": 3, "p": p}})
    assert pointer == "/params/p"
    assert "Chebyshev distance, p infinite, is not supported" in detail


@pytest.mark.parametrize("devices", [[], [0, 0], [1, 0, 1]])
def test_devices_are_named_once_each(devices):
    with pytest.raises(ValidationError):
        Execution(backend="cuda", devices=devices)


def test_there_is_an_example_of_every_kind_and_each_is_a_request():
    requests = [REQUESTS.validate_python(example["value"]) for example in examples.JOBS.values()]
    assert {request.kind for request in requests} == {*OPERATIONS, "training"}
    assert all(example["summary"] for example in examples.JOBS.values())
