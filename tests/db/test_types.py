"""The column types: times are always UTC, JSON is always strict."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import StatementError

from app.db import idempotency
from app.db.idempotency import Keyed
from app.db.tables import IdempotencyRow, WorkerRow
from app.db.types import Json, NaiveTime, UtcDateTime

DIALECT = sqlite.dialect()
FIRST, LAST = datetime.fromisoformat("0001-01-02"), datetime.fromisoformat("9999-12-30")  # whatever the zone
aware = st.datetimes(FIRST, LAST, timezones=st.timezones() | st.just(UTC), allow_imaginary=False)
finite = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.recursive(finite, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(), v, max_size=4))


def stored(value):
    return UtcDateTime().process_bind_param(value, DIALECT)


def read(text):
    return UtcDateTime().process_result_value(text, DIALECT)


@given(aware)
def test_a_time_comes_back_as_the_same_moment_in_utc(time):
    again = read(stored(time))
    assert again == time.astimezone(UTC)  # across zones Python calls a moment of an autumn night unequal to itself
    assert again.utcoffset() == timedelta(0)


@given(aware, aware)
def test_text_order_is_time_order(one, other):
    assert (stored(one) < stored(other)) == (one.astimezone(UTC) < other.astimezone(UTC))
    assert len(stored(one)) == len(stored(other))


def test_early_years_keep_their_zeros():
    assert stored(datetime(999, 1, 1, tzinfo=UTC)) == "0999-01-01T00:00:00.000000Z"


def test_a_time_without_a_zone_is_refused(desk):
    time = datetime.now(UTC).replace(tzinfo=None)
    with pytest.raises(NaiveTime, match="no time zone"):
        stored(time)
    row = IdempotencyRow(owner="me", scope="x", key="k", fingerprint="", created_at=time)
    with pytest.raises(StatementError, match="no time zone"):
        desk.write(lambda db: db.add(row))


def test_a_filter_takes_any_zone(desk):
    desk.write(lambda db: idempotency.remember(db, Keyed("me", "x", "k"), None))
    there = timezone(timedelta(hours=14))
    desk.write(lambda db: idempotency.forget_old(db, datetime.now(there) - timedelta(minutes=1)))
    assert desk.look("SELECT count(*) FROM idempotency") == [(1,)]
    desk.write(lambda db: idempotency.forget_old(db, datetime.now(there) + timedelta(minutes=1)))
    assert desk.look("SELECT count(*) FROM idempotency") == [(0,)]


@given(documents)
def test_json_round_trips(value):
    text = Json().process_bind_param(value, DIALECT)
    assert Json().process_result_value(text, DIALECT) == value
    assert value is None or json.loads(text) == value


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_json_refuses_what_could_not_be_answered(desk, number):
    worker = WorkerRow(
        id="w", engine="dask", address="tcp://a", state="up", joined_at=datetime.now(UTC), resources={}, facts={}
    )
    worker.facts = {"deep": [1, {"down": number}]}
    with pytest.raises(StatementError, match="not JSON compliant"):
        desk.write(lambda db: db.add(worker))
    assert desk.look("SELECT count(*) FROM worker") == [(0,)]


def test_absent_json_is_null_in_the_file():
    assert Json().process_bind_param(None, DIALECT) is None
