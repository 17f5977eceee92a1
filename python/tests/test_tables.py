"""Tables from anywhere give one answer; what is no table gives the right exception."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vti
from vti._tables import as_table

from conftest import measured


def evidence(table, **options) -> float:
    return float(vti.select(table, response="y", **options).log_evidence)


def test_the_same_table_from_everywhere(frame, tmp_path):
    expected = evidence(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    chunks = pa.concat_tables([pa.Table.from_pandas(frame[:7]), pa.Table.from_pandas(frame[7:])])
    structured = frame.assign(group=frame["group"].astype(str)).to_records(index=False)
    for table in [
        pl.DataFrame(frame),
        pa.Table.from_pandas(frame),
        chunks,
        chunks.to_reader(),
        frame.to_dict("list"),
        {name: frame[name] for name in frame},
        structured,
        frame.set_index(frame.index + 100),
        frame.astype({"group": "category"}),
        frame.astype({"a": "Float64", "group": "string"}),
        str(tmp_path / "t.csv"),
        tmp_path / "t.parquet",
    ]:
        assert abs(evidence(table) - expected) < 1e-9, type(table)


def test_arrays_of_every_layout(frame):
    numbers = frame[["a", "b", "c"]].to_numpy()
    expected = evidence(frame.drop(columns="group"))
    strided = np.repeat(numbers, 3, axis=0)[::3]
    read_only = numbers.copy()
    read_only.setflags(write=False)
    for x in [numbers, np.asfortranarray(numbers), strided, read_only, numbers.astype(object), numbers.tolist()]:
        answer = vti.select(x, frame["y"], names=["a", "b", "c"])
        assert abs(float(answer.log_evidence) - expected) < 1e-9
    assert vti.select(numbers, frame["y"].to_numpy()).inclusion.index.tolist() == ["x1", "x2", "x3"]
    single = vti.select(numbers.astype(np.float32), frame["y"], names=["a", "b", "c"])
    assert abs(float(single.log_evidence) - expected) < 1e-3
    swapped = vti.select(numbers.astype(">f8"), frame["y"], names=["a", "b", "c"])
    assert abs(float(swapped.log_evidence) - expected) < 1e-9


def test_other_types_of_columns(frame):
    n = len(frame)
    frame["flag"] = np.arange(n) % 2 == 0
    frame["count"] = pd.array([None, *range(1, n)], dtype="Int64")
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) ** 2, unit="D")
    answers = [
        vti.select(table, response="y", missing="drop")
        for table in (frame, pl.DataFrame(frame), {name: frame[name].to_numpy(dtype=object) for name in frame} | {"day": frame["day"].to_numpy()})
    ]
    for answer in answers:
        assert list(answer.inclusion.index) == ["a", "b", "c", "group", "flag", "count", "day"]
        assert abs(float(answer.log_evidence) - float(answers[0].log_evidence)) < 1e-9
    assert any("1 row" in note or "missing" in note for note in answers[0].notes)


def test_missing_values_as_in_the_command(frame):
    frame.loc[3, "b"] = None
    frame.loc[5, "group"] = None
    for table in (frame, pl.DataFrame(frame.to_dict("list"), strict=False), frame.to_dict("list")):
        with pytest.raises(ValueError, match="(?s)missing.*b.*hint: .*missing"):
            vti.select(table, response="y")
    dropped = vti.select(frame, response="y", missing="drop")
    assert dropped.summary["data"]["rows"] == len(frame) - 2
    indicated = vti.select(frame, response="y", missing="indicator")
    assert "b_missing" in indicated.inclusion.index


def test_what_is_no_table():
    x = np.zeros((3, 2))
    with pytest.raises(TypeError, match="rows and columns"):
        vti.select(np.zeros(3), np.zeros(3))
    with pytest.raises(TypeError, match="rows and columns"):
        vti.select(None, response="y")
    with pytest.raises(TypeError, match="rows and columns"):
        vti.dag(np.zeros((2, 2, 2)))
    with pytest.raises(TypeError, match="which column is the response"):
        vti.select(x)
    with pytest.raises(ValueError, match="different lengths"):
        vti.select(x, np.zeros(4))
    with pytest.raises(ValueError, match="names for 2 columns"):
        vti.select(x, np.zeros(3), names=["a"])
    with pytest.raises(TypeError, match="complex"):
        vti.dag(np.zeros((9, 2), dtype=complex))
    with pytest.raises(TypeError, match="column l holds list"):
        vti.dag({"l": np.array([[1], [2, 3], []], dtype=object), "m": [1, 2, 3]})
    with pytest.raises(TypeError, match="column l holds"):
        vti.dag(pa.table({"l": [[1], [2, 3], []], "m": [1, 2, 3]}))
    with pytest.raises(FileNotFoundError, match="nowhere.csv"):
        vti.select("nowhere.csv", response="y")
    with pytest.raises(TypeError, match="added to a file"):
        vti.select("nowhere.csv", [1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.iloc[:0], "no rows|rows"),
        (lambda f: f.iloc[:2], "rows"),
        (lambda f: f.drop(columns="y"), "no column"),
        (lambda f: f.assign(y=1.0), "y"),
        (lambda f: f.assign(b=f["b"].replace(1.0, np.inf)), "b"),
        (lambda f: f.assign(y="text"), "y"),
        (lambda f: pd.concat([f, f[["a"]]], axis=1), "a"),
        (lambda f: f[["y"]], "y|covariates|terms"),
    ],
)
def test_bad_tables_are_refused_in_our_words(frame, change, message):
    with pytest.raises(ValueError, match=message) as raised:
        vti.select(change(frame), response="y")
    assert "--" not in str(raised.value)


def test_bad_options_are_refused(frame):
    with pytest.raises(TypeError, match="(?s)no argument modelprior.*did you mean model_prior"):
        vti.select(frame, response="y", modelprior="uniform")
    with pytest.raises(ValueError, match="there are gaussian"):
        vti.select(frame, response="y", likelihood="gausian")
    with pytest.raises(ValueError, match="train.*-1"):
        vti.select(frame, response="y", set={"train.batch": -1}, method="vti")
    with pytest.raises(ValueError, match="unknown"):
        vti.fit({"problem": {"kind": "select", "response": "y"}, "trian": {}}, data=frame)
    with pytest.raises(TypeError, match="neither a configuration nor a log density"):
        vti.fit(3)


def test_names_that_options_could_not_write(frame):
    frame = frame.rename(columns={"a": "a, first", "b": "-b"})
    answer = vti.select(frame, response="y", always=["a, first", "-b"], exclude=["group"])
    assert list(answer.inclusion.index) == ["c"]
    graph = vti.dag(frame.drop(columns="group"), sem="linear", forbid=[("a, first", "y")], tiers=[["a, first", "-b", "c"], ["y"]])
    assert graph.edges.query("`from` == 'a, first' and to == 'y'")["corrected"].item() == 0.0


def test_large_tables_come_in_quickly():
    import time

    x = np.random.default_rng(1).normal(size=(200_000, 10))
    start = time.monotonic()
    assert len(as_table(x)) == 200_000
    assert time.monotonic() - start < 5.0


def test_dates_and_texts_of_objects():
    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    table = as_table({"day": np.array(days, dtype=object), "word": np.array(["a", None, "b"], dtype=object)})
    assert table.columns == ["day", "word"] and len(table) == 3


def test_measured_is_what_the_other_tests_think():
    answer = vti.select(measured(), response="y")
    assert answer.inclusion.loc["a", "exact"] > 0.99 and answer.inclusion.loc["c", "exact"] < 0.5
