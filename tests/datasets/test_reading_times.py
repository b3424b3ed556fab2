"""Time columns: found where every row says the same thing, asked for where they do not."""

import pytest

from tests.datasets.reading_door import given


def table(*times: object) -> str:
    return "t,v\n" + "".join(f"{time},{number}\n" for number, time in enumerate(times))


FOUND = {
    "dates": (("2021-03-04", "2021-03-05"), {}, ("2021-03-04", "2021-03-05")),
    "months": (("1949-01", "1949-12"), {}, ("1949-01-01", "1949-12-01")),
    "slashes": (("2021/03/04", "2021/3/5"), {}, ("2021-03-04", "2021-03-05")),
    "minutes": (("2021-03-04 05:06", "2021-03-04T05:07"), {}, ("2021-03-04T05:06", "2021-03-04T05:07")),
    "microseconds": (("2021-03-04 05:06:07.000001",), {}, ("2021-03-04T05:06:07.000001",)),
    "nanoseconds are cut": (("2021-03-04 05:06:07.123456789",), {}, ("2021-03-04T05:06:07.123456",)),
    "zones": (
        ("2021-03-04T05:00:00Z", "2021-03-04T05:00:00+01:30", "2021-03-04 05:00:00 -0500"),
        {},
        ("2021-03-04T05:00", "2021-03-04T03:30", "2021-03-04T10:00"),
    ),
    "before 1970": (("1900-02-28", "0001-01-01"), {}, ("1900-02-28", "0001-01-01")),
    "leap day": (("2020-02-29",), {}, ("2020-02-29",)),
    "not in order": (("2021-01-02", "2021-01-01"), {}, ("2021-01-02", "2021-01-01")),
    "day first, settled by one row": (("03/04/2021", "25/04/2021"), {}, ("2021-04-03", "2021-04-25")),
    "month first, settled by one row": (("03/04/2021", "03/25/2021"), {}, ("2021-03-04", "2021-03-25")),
    "points": (("13.04.2021 05:06",), {}, ("2021-04-13T05:06",)),
    "day first, said": (("03/04/2021",), {"time_format": "%d/%m/%Y"}, ("2021-04-03",)),
    "digits": ((19580329,), {"time_column": "t", "time_format": "%Y%m%d"}, ("1958-03-29",)),
    "digits, column by number": ((19580329,), {"time_column": "0", "time_format": "%Y%m%d"}, ("1958-03-29",)),
    "month names": (("Mar 4 2021 1:05 PM",), {"time_format": "%b %d %Y %I:%M %p"}, ("2021-03-04T13:05",)),
    "two-digit years": (("04.03.68", "04.03.69"), {"time_format": "%d.%m.%y"}, ("2068-03-04", "1969-03-04")),
    "seconds": ((1600000000, 0.5), {"time_column": "t", "time_format": "unix_s"}, ("2020-09-13T12:26:40", "1970-01-01T00:00:00.5")),
    "milliseconds": ((1600000000001,), {"time_column": "t", "time_format": "unix_ms"}, ("2020-09-13T12:26:40.001",)),
    "microseconds since 1970": ((-1,), {"time_column": "t", "time_format": "unix_us"}, ("1969-12-31T23:59:59.999999",)),
    "nanoseconds since 1970": (
        (1600000000123456789,),
        {"time_column": "t", "time_format": "unix_ns"},
        ("2020-09-13T12:26:40.123456",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("times", "said", "moments"), FOUND.values(), ids=FOUND)
def test_a_time_column_is_found_or_named(times, said, moments):
    outcome = given(table(*times), **said)
    assert outcome.ok["time_column"] == "t"
    assert outcome.types == {"t": "time", "v": "float64"}
    full = [m + "2000-01-01T00:00:00.000000"[len(m) :] if "." not in m else m.ljust(26, "0") for m in moments]
    assert outcome.times == full


REFUSED = {
    "day or month first": (("03/04/2021", "05/06/2021"), {}, "`03/04/2021`", 2, "time_format"),
    "missing": (("2021-01-01", "", "2021-01-03"), {}, "a time is missing", 3, "time_format"),
    "no such day": (("2021-02-28", "2021-02-30", "2021-03-01"), {}, "`2021-02-30`", 3, "time_format"),
    "no such hour": (("2021-02-28 23:00", "2021-02-28 24:00", "2021-03-01 00:00"), {}, "24:00", 3, "time_format"),
    "named, but a number": ((1, 2), {"time_column": "t"}, "not known", None, "time_format"),
    "not of the format": ((19580329, 19581301), {"time_column": "t", "time_format": "%Y%m%d"}, "`19581301`", 3, "time_format"),
    "format without its column": ((19580329,), {"time_format": "%Y%m%d"}, "No column of text", None, "time_column"),
    "beyond the year 9999": ((10**15,), {"time_column": "t", "time_format": "unix_s"}, "cannot be read", 2, "time_format"),
    "some with a zone": (("2021-01-01T00:00Z", "2021-01-02T00:00"), {}, "some times say their zone", None, None),
    "unknown directive": (("x",), {"time_format": "%Y%Q"}, "`%Q`", None, "time_format"),
    "a directive twice": (("x",), {"time_format": "%Y %Y"}, "twice", None, "time_format"),
    "no year": (("x",), {"time_format": "%H:%M"}, "no year", None, "time_format"),
}  # fmt: skip


@pytest.mark.parametrize(("times", "said", "words", "row", "option"), REFUSED.values(), ids=REFUSED)
def test_a_time_that_is_not_certain_is_refused(times, said, words, row, option):
    error = given(table(*times), **said).error
    assert words in error["detail"]
    assert (error["row"], error["option"]) == (row, option)


def test_of_several_time_columns_one_is_named():
    text = "a,b,v\n2021-01-01,2022-01-01,1\n2021-01-02,2022-01-02,2\n"
    assert given(text).error["option"] == "time_column"
    outcome = given(text, time_column="b")
    assert outcome.types == {"a": "time", "b": "time", "v": "float64"}
    assert outcome.times[0].startswith("2022")
    none = given(text, time_column="")
    assert none.ok["time_column"] is None
    assert "time.npy" not in none.files


def test_a_column_of_few_times_is_text():
    assert given("note,v\n2021-01-01,1\nrain,2\nsun,3\n").types == {"note": "text", "v": "float64"}


def test_times_without_header():
    outcome = given("2021-01-01;1,5\n2021-01-02;2,5\n")
    assert outcome.ok["time_column"] == "column_0"
    assert outcome.columns == {"column_1": [1.5, 2.5]}


def test_times_that_run_backwards_or_repeat_are_noted():
    outcome = given(table("2021-01-03", "2021-01-02", "2021-01-02", "2021-01-05"))
    backwards, again = outcome.ok["notes"]
    assert "run backwards once, first in line 3" in backwards
    assert "repeats the one in the row above once, first in line 4" in again
    assert (outcome.ok["first_time"], outcome.ok["last_time"]) == (1609632000000000, 1609804800000000)
    assert given(table("2021-01-01", "2021-01-02")).ok["notes"] == []


def test_dates_that_repeat_beside_times_of_day_are_not_taken_for_the_time():
    text = "Datum;Uhrzeit;v\n13.01.2021;09:00;1\n13.01.2021;10:30:15;2\n14.01.2021;9:00;3\n"
    error = given(text).error
    assert error["option"] == "time_column"
    assert "`Datum,Uhrzeit`" in error["detail"]
    both = given(text, time_column="Datum,Uhrzeit")
    assert both.times == [f"2021-01-{t}.000000" for t in ("13T09:00:00", "13T10:30:15", "14T09:00:00")]
    assert both.ok["notes"] == []
    assert both.ok["reading"]["time_column"] == "Datum,Uhrzeit"
    said = given(text, time_column="Datum, Uhrzeit", time_format="%d.%m.%Y %H:%M", text="")
    assert said.error["row"] == 3
    assert given(text, time_column="Datum").ok["time_column"] == "Datum"
    assert given(text, time_column="Datum,v").error["option"] == "time_column"


def test_a_column_of_clocks_does_not_trouble_dates_that_run_forward():
    assert given("day,sunrise,v\n2021-01-01,7:40,1\n2021-01-02,7:39,2\n").ok["time_column"] == "day"
