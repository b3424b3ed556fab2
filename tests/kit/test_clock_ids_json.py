import json
import math
import re
import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from app.kit import clock, ids
from app.kit.strict_json import StrictJSONResponse, dumps


class Moment(BaseModel):
    at: clock.Rfc3339


def test_times_are_utc_with_microseconds():
    moment = Moment.model_validate({"at": "2026-01-31T13:00:00+01:00"})
    assert moment.at == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert moment.model_dump_json() == '{"at":"2026-01-31T12:00:00.000000Z"}'
    assert clock.rfc3339(datetime(7, 1, 1, tzinfo=timezone(timedelta(hours=-1)))) == "0007-01-01T01:00:00.000000Z"
    assert clock.now().tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    [
        *("2026-01-31T12:00:00", "2026-01-31", 1700000000, "1700000000", 1.5, None, "", "2026-13-01T00:00:00Z", "now"),
        *("0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "٢٠٢٦-01-01T00:00:00Z"),
        datetime(2026, 1, 1),  # noqa: DTZ001
    ],
)
def test_what_names_no_moment_is_refused(value):
    with pytest.raises(ValidationError):
        Moment(at=value)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_survives_the_journey_and_sorts_as_text(time):
    text = clock.rfc3339(time)
    assert Moment.model_validate({"at": text}).at == time
    assert (text < clock.rfc3339(datetime(2026, 1, 1, tzinfo=UTC))) == (time < datetime(2026, 1, 1, tzinfo=UTC))


def test_the_schema_says_date_time():
    assert Moment.model_json_schema()["properties"]["at"]["format"] == "date-time"


def test_ids_have_a_prefix_and_sort_by_time(monkeypatch):
    made = [ids.new_id("job") for _ in range(1000)]
    assert all(re.fullmatch(r"job_[0-9a-hjkmnp-tv-z]{26}", one) for one in made)
    assert made == sorted(made)
    assert len(set(made)) == 1000
    monkeypatch.setattr(time, "time_ns", lambda: 0)  # the clock goes back
    assert ids.new_id("job") > made[-1]
    assert ids.new_id("ds_").startswith("ds_") and ids.new_id("ds_").count("_") == 1  # noqa: PT018


def test_ids_from_many_threads_are_distinct():
    made = []
    threads = [threading.Thread(target=lambda: made.extend(ids.new_id("x") for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2000


def test_json_has_no_numbers_that_are_none():
    assert dumps({"a": [1.5, math.nan, math.inf, -math.inf], "é": datetime(2026, 1, 1, tzinfo=UTC)}) == (
        '{"a":[1.5,null,null,null],"é":"2026-01-01T00:00:00Z"}'.encode()
    )
    assert dumps(["\ud800", math.nan, {"x": [math.inf, 1.5]}]) == b'["\\ud800",null,{"x":[null,1.5]}]'
    assert StrictJSONResponse({"a": math.nan}).body == b'{"a":null}'
    with pytest.raises(ValueError, match="unknown type"):
        dumps(object())


finite = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(finite, lambda v: st.lists(v) | st.dictionaries(st.text(), v)))
def test_json_means_what_python_meant(value):
    assert json.loads(dumps(value)) == value
