"""CSV and TSV as people have them: read for certain, or refused with the line and the option that settles it."""

import math
from pathlib import Path

import pytest

from tests.datasets.reading_door import given

NAN, INF = math.nan, math.inf

READ = {
    "plain": ("a,b\n1,2\n3,4\n", {}, {"a": [1, 3], "b": [2, 4]}),
    "one column": ("x\n1\n2.5\n-3e2", {}, {"x": [1, 2.5, -300]}),
    "no header": ("1,2,3\n4,5,6\n", {}, {"column_0": [1, 4], "column_1": [2, 5], "column_2": [3, 6]}),
    "no header, one row": ("1.5,2.5", {"header": "false"}, {"column_0": [1.5], "column_1": [2.5]}),
    "header of numbers, said": ("1,x\n5,6\n", {"header": "true"}, {"1": [5], "x": [6]}),
    "tabs": ("a\tb\n1\t2\n", {}, {"a": [1], "b": [2]}),
    "bars": ("a|b\n1|2\n", {}, {"a": [1], "b": [2]}),
    "semicolons and decimal commas": ("a;b\n1,5;2\n2,25;3\n", {}, {"a": [1.5, 2.25], "b": [2, 3]}),
    "tabs and decimal commas": ("a\tb\n1,5\t2\n", {}, {"a": [1.5], "b": [2]}),
    "european thousands": ("a;b\n1.234,5;1.000.000\n", {}, {"a": [1234.5], "b": [1e6]}),
    "english thousands": ('a,b\n"1,234.5","2,000"\n', {}, {"a": [1234.5], "b": [2000]}),
    "another column settles it": ("a;b\n1,234;2.5\n", {}, {"a": [1234], "b": [2.5]}),
    "a leading zero settles it": ("a;b\n0,123;1,234\n", {}, {"a": [0.123], "b": [1.234]}),
    "decimal said": ("a;b\n1,234;5\n", {"decimal": ","}, {"a": [1.234], "b": [5]}),
    "thousands said": ("a;b\n1,234;5\n", {"thousands": ","}, {"a": [1234], "b": [5]}),
    "points between commas are decimal": ("a,b\n1.234,5.678\n", {}, {"a": [1.234], "b": [5.678]}),
    "spaces between thousands": ("a;b\n1 234,5;7\n1\xa0000;8\n", {}, {"a": [1234.5, 1000], "b": [7, 8]}),
    "apostrophes between thousands": ("a;b\n1'234.5;7\n", {}, {"a": [1234.5], "b": [7]}),
    "one column of decimal commas, said": ("1,5\n2,7\n", {"decimal": ","}, {"column_0": [1.5, 2.7]}),
    "two columns of digits, said": ("1,5\n2,7\n", {"delimiter": ","}, {"column_0": [1, 2], "column_1": [5, 7]}),
    "delimiter by name": ("a\tb\n1\t2", {"delimiter": "tab"}, {"a": [1], "b": [2]}),
    "quotes": ('"a","b"\n"1","2"\n', {}, {"a": [1], "b": [2]}),
    "quotes after spaces": ('"a", "b"\n1, "2"\n', {}, {"a": [1], "b": [2]}),
    "spaces around": (" a , b \n 1 ,  2\n", {}, {"a": [1], "b": [2]}),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", {}, {"a": [1], "b": [2]}),
    "utf-16 with its mark": ("é;b\r\n1,5;2\r\n".encode("utf-16"), {}, {"é": [1.5], "b": [2]}),
    "utf-16 said": ("a,b\n1,2\n".encode("utf-16-be"), {"encoding": "utf-16-be"}, {"a": [1], "b": [2]}),
    "latin-1 said": ("é,b\n1,2\n".encode("latin-1"), {"encoding": "latin-1"}, {"é": [1], "b": [2]}),
    "charset of the media type": (
        "€,b\n1,2\n".encode("cp1252"),
        {"media_type": "text/csv; charset=windows-1252"},
        {"€": [1], "b": [2]},
    ),
    "windows line ends": ("a,b\r\n1,2\r\n3,4\r\n", {}, {"a": [1, 3], "b": [2, 4]}),
    "old mac line ends": ("a,b\r1,2\r3,4\r", {}, {"a": [1, 3], "b": [2, 4]}),
    "blank lines": ("\n\na,b\n\n1,2\n   \n3,4\n\n\n", {}, {"a": [1, 3], "b": [2, 4]}),
    "one column, blank lines at its ends": ("\n\n1\n2\n\n\n", {}, {"column_0": [1, 2]}),
    "one column, blank said": ("v\n1\n\n3\n", {"missing": ""}, {"v": [1, NAN, 3]}),
    "one column, blank said among others": ("v\n1\n\nx\n", {"missing": "x,"}, {"v": [1, NAN, NAN]}),
    "delimiter at every line's end": ("a,b,\n1,2,\n3,4,\n", {}, {"a": [1, 3], "b": [2, 4]}),
    "a column of nothing but missing values": ("a,b\n1,\n2,NA\n", {}, {"a": [1, 2], "b": [NAN, NAN]}),
    "missing by number": ("a,b\n-999,1\n2,-999\n", {"missing": "-999"}, {"a": [NAN, 2], "b": [1, NAN]}),
    "infinite": ("a,b\ninf,-inf\nInfinity,+INF\n1,2\n", {}, {"a": [INF, INF, 1], "b": [-INF, INF, 2]}),
    "empty names": ("a,,c\n1,2,3\n", {}, {"a": [1], "column_1": [2], "c": [3]}),
    "comments that are no header": ("# from the lab\n# v2\na,b\n1,2\n", {}, {"a": [1], "b": [2]}),
    "the delimiter as Excel says it": ("sep=;\na;b\n1;2\n", {}, {"a": [1], "b": [2]}),
    "a header with a #, said": ("#a,b\n1,2\n", {"header": "true", "delimiter": ","}, {"#a": [1], "b": [2]}),
    "line ends within quotes": ('"a\nb",c\n1,2\n', {}, {"a\nb": [1], "c": [2]}),
    "whole numbers beyond 2**53": ("a\n9007199254740993\n", {}, {"a": [2.0**53]}),
    "a title and a blank line": ("My data\n\na,b\n1,2\n", {"skip_rows": "1"}, {"a": [1], "b": [2]}),
    "units taken for the header": ("t,v\ns,m\n1,2\n2,3\n", {"skip_rows": 1}, {"s": [1, 2], "m": [2, 3]}),
    "a column read as text": ("a,b\n1,1\n2,x7\n3,3\n4,4\n", {"text": "b"}, {"a": [1, 2, 3, 4]}),
    "years that go on": ("2019\n2020\n2021\n", {}, {"column_0": [2019, 2020, 2021]}),
    "years, said to be the header": ("r,2019,2020\nx,1,2\n", {"header": "true"}, {"2019": [1], "2020": [2]}),
    "media type for tabs": ("a\tb\n1\t2", {"media_type": "text/tab-separated-values"}, {"a": [1], "b": [2]}),
}


@pytest.mark.parametrize(("text", "said", "columns"), READ.values(), ids=READ)
def test_a_table_of_text_is_read(text, said, columns):
    outcome = given(text, **said)
    assert list(outcome.columns) == list(columns)
    for name, values in columns.items():
        assert outcome.columns[name] == pytest.approx(values, nan_ok=True, rel=0, abs=0)


REFUSED = {
    "nothing": ("", {}, "empty", None, None),
    "blank lines only": ("\n\n \n", {}, "empty", None, None),
    "header only": ("a,b\n", {}, "no rows", 1, "header"),
    "no numbers": ("a,b\nx,y\n", {}, "No column holds numbers", 2, None),
    "a time and no numbers": ("t\n2021-01-01\n", {}, "No column holds numbers", 2, None),
    "comments only": ("#a\n\n# b\n", {}, "comments", 1, None),
    "a stray cell": ("a,b\n1,2\n3,12a\n5,6\n", {}, "`12a`", 3, "text"),
    "a stray cell after a multi-line one": ('"a\nb",c\n1,2\n\n3,12a\n5,6\n', {}, "`12a`", 5, "text"),
    "a stray cell after comments": ("# x\n\na,b\n1,2\n3,?!\n", {}, "`?!`", 5, "missing"),
    "no NaN of C": ("a,b\nnan(1),2\n3,4\n5,6\n", {}, "`nan(1)`", 2, "text"),
    "too large a number": ("a,b\n1,2\n1e999,4\n", {}, "beyond the range", 3, None),
    "too many fields": ("a,b\n1,2\n1,2,3\n4,5\n", {}, "expected 2 fields, found 3", 3, "delimiter"),
    "too few fields": ("a;b\n1,6;2\n1;2\n7\n", {}, "expected 2 fields, found 1", 4, "delimiter"),
    "a title above the table": ("My data\na,b\n1,2\n3,4\n", {}, "set `skip_rows` to 1", 1, "skip_rows"),
    "doubled names": ("a,b,a\n1,2,3\n", {}, "named `a`", 1, "header"),
    "either decimal or thousands": ("a;b\n1;2\n1,234;5\n", {}, "`1,234`", 3, "decimal"),
    "either, with points": ("a;b\n1.234;5\n", {}, "`1.234`", 2, "decimal"),
    "two conventions": ("a;b\n1,5;2\n2;2.5\n", {}, "fits no one decimal", 3, "decimal"),
    "comma or decimal": ("1,5\n2,7\n", {}, "`1,5`", 1, "delimiter"),
    "comma or thousands": ("v\n1,234,567\n2,345,678\n", {}, "`1,234,567`", 2, "delimiter"),
    "spaces between columns": ("1 2\n3 4\n", {}, "parted by spaces", 2, "thousands"),
    "header or row": ("date,1,2\n2021-01-01,5,6\n", {}, "names the columns", 1, "header"),
    "header unclear without evidence": ("foo,NA\nbar,2\n", {}, "names the columns", 1, "header"),
    "a header said to be a row": ("a,b\n1,2\n2,3\n", {"header": "false"}, "`a`", 1, "missing"),
    "comment or header": ("#a,b\n1,2\n3,4\n", {}, "comment or the header", 1, "header"),
    "blank within one column": ("v\n1\n\n3\n", {}, "blank", 3, "missing"),
    "not utf-8": ("a,b\n1,2\n3,é\n".encode("latin-1"), {}, "0xE9", 3, "encoding"),
    "not utf-8, old mac line ends": ("a,b\r1,2\r3,é\r".encode("latin-1"), {}, "0xE9", 3, "encoding"),
    "not what was said": (b"a,b\n1,2\n3,\x81\n", {"encoding": "cp1252"}, "not cp1252", 3, "encoding"),
    "another mark than said": (b"\xef\xbb\xbfa,b\n1,2", {"encoding": "latin-1"}, "byte order mark", 1, "encoding"),
    "utf-16 without its mark": ("a,b\n1,2\n".encode("utf-16-le"), {}, "NUL", 1, "encoding"),
    "delimiter unclear": ("x;y|z\n1;2|3\n", {}, "`;` and `|`", 1, "delimiter"),
    "decimal said and not meant": ("a;b\n1;2\n1.5;2\n", {"decimal": ","}, "`1.5`", 3, "decimal"),
    "one line, as curl -d sends it": ("a,b1,23,4", {}, "`curl -d`", 1, "header"),
    "years above numbers": ("region,2019,2020,2021\nnorth,1,2,3\n", {}, "could be years", 1, "header"),
    "a year above numbers": ("2024\n3.5\n4\n", {}, "could be years", 1, "header"),
    "percent": (
        "date,v\n2021-01-01,1.5%\n2021-01-02,2%\n",
        {},
        "`1.5%` in column `v` is none. Remove the `%`",
        2,
        None,
    ),
    "euros": ("v,w\n1,1\n2,2\n3 €,3\n", {}, "Remove the `€`", 4, "text"),
    "parentheses": ("v,w\n1,1\n2,2\n(3),3\n", {}, "without parentheses", 4, "text"),
    "a typographic minus": ("v,w\n1,1\n2,2\n\u22123,3\n", {}, "write `-`", 4, "text"),
    "several stray cells": (
        "v,w\n1,1\n2,2\nx1,3\nx2,4\n5,5\n",
        {},
        "`x1` in column `v` is not a number, nor is `x2` in line 5",
        4,
        "text",
    ),
    "units below the header": ("t,v\n,m/s\n1,2\n2,3\n3,4\n", {}, "set `skip_rows` to 1", 2, "skip_rows"),
    "a header narrower than the rows": (
        "d;v\nx;1;5\ny;2;5\n",
        {"delimiter": ";"},
        "if it is the header, name every column",
        1,
        "skip_rows",
    ),
    "decimal commas between commas": ("d,v,w\nx,1,5\ny,2,5\nz,2,5,5\n", {}, "commas are decimal marks", 4, "delimiter"),
    "more lines skipped than there are": ("a,b\n1,2\n", {"skip_rows": 9}, "no more than 2 lines", None, "skip_rows"),
    "a column of text that is not there": ("a,b\n1,2\n", {"text": "c"}, "`text` names `c`", None, "text"),
    "a quote without end": ('a,b\n1,"2\n3,4\n', {}, "never closed", 2, None),
}


@pytest.mark.parametrize(("text", "said", "words", "row", "option"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_for_certain_is_refused_with_place_and_option(text, said, words, row, option):
    error = given(text, **said).error
    assert words in error["detail"]
    assert (error["row"] or row) == row
    assert error["option"] == option


BAD_OPTIONS = {
    "delimiter": " ",
    "decimal": ";",
    "thousands": "x",
    "header": "maybe",
    "skip_rows": "-1",
    "encoding": "rot13",
    "time_column": "nope",
    "time_format": "dd.mm.yyyy",
}


@pytest.mark.parametrize(("option", "value"), BAD_OPTIONS.items())
def test_an_option_that_means_nothing_is_refused_by_name(option, value):
    error = given("t,a,b\n2021-01-01,1,2\n", **{option: value}).error
    assert error["option"] == option


def test_the_same_sign_cannot_part_decimals_and_thousands():
    assert given("a;b\n1,5;2\n", decimal=",", thousands=",").error["option"] == "thousands"


@pytest.mark.parametrize(
    "marker", ["NA", "na", "N/A", "n/a", "NaN", "none", "nan", "null", "NULL", "None", "-", "--", "?", "#N/A", ""]
)
def test_the_usual_markers_are_missing_values(marker):
    outcome = given(f"a,b\n1,2\n{marker},3\n")
    assert outcome.columns["a"] == pytest.approx([1, NAN], nan_ok=True)
    assert outcome.ok["columns"][0]["missing"] == 1


def test_text_stays_text_and_is_counted():
    outcome = given("city,flag,v\nParis,true,1\nNA,false,2\n7,true,3\nRome,true,4\n")
    assert outcome.types == {"city": "text", "flag": "text", "v": "float64"}
    assert outcome.ok["columns"][0] == {
        "name": "city", "type": "text", "missing": 1, "infinite": 0, "min": None, "max": None,
    }  # fmt: skip
    assert {name for name in outcome.files if name.endswith(".npy")} == {"columns/2.npy"}


def test_gaps_are_the_runs_of_values_that_are_not_finite():
    outcome = given("a,b\n,1\ninf,1\n2,1\n3,1\nNA,1\n5,1\n,1\n")
    assert outcome.gaps(0) == [0, 2, 4, 5, 6, 7]
    assert outcome.gaps(1) == []
    column = outcome.ok["columns"][0]
    assert (column["missing"], column["infinite"], column["min"], column["max"]) == (3, 1, 2.0, 5.0)


def test_the_weekly_co2_of_mauna_loa():
    statsmodels = pytest.importorskip("statsmodels")
    path = Path(statsmodels.__file__).parent / "datasets/co2/co2.csv"
    plain = given(path.read_bytes(), file_name="co2.csv")
    assert plain.types == {"date": "float64", "co2": "float64"}, "whole numbers are not guessed to be times"
    outcome = given(path.read_bytes(), file_name="co2.csv", time_column="date", time_format="%Y%m%d")
    assert (outcome.ok["rows"], outcome.ok["columns"][1]["missing"]) == (2284, 59)
    assert outcome.times[0] == "1958-03-29T00:00:00.000000"
    gaps = outcome.gaps(1)
    assert sum(gaps[1::2]) - sum(gaps[::2]) == 59


def test_the_answer_says_how_a_table_was_read():
    text = "from the lab\ntag;wert\n01.02.2021;1.000,5\n15.02.2021;2,5\n"
    assert given(text.encode("cp1252"), skip_rows=1, encoding="cp1252").ok["reading"] == {
        "delimiter": ";", "decimal": ",", "thousands": ".", "header": True, "encoding": "cp1252", "lines_skipped": 1,
        "time_format": "%d.%m.%Y",
    }  # fmt: skip
    assert given("1\n2\n").ok["reading"] == {"decimal": ".", "header": False, "encoding": "utf-8"}


def test_what_was_read_as_text_and_may_be_more_is_noted():
    dates = given("date,v\n1/5/24,1\n1/6/24,2\n")
    assert dates.ok["notes"] == [
        "Column `date` looks like dates (`1/5/24`) and was read as text; set `time_column` and `time_format` (such as %m/%d/%y)."
    ]
    assert "`5 %`" in given("share,v\n5 %,1\n6 %,2\n").ok["notes"][0]
    assert given("city,v\nRome,1\nOslo,2\n").ok["notes"] == []
