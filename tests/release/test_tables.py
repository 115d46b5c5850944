"""Tables of other libraries: their own kind comes back, with the kept columns as they were and nothing else."""

import datetime

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from secrecy import assert_error

MARKER = "qsecretq"
TEXTS = ["the doctor", None, "of the city", ""]
STARS = [5, 1, 3, 2]
DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)]


@pytest.fixture(scope="module")
def mechanism(glove):
    return dptext.TEM(dptext.load_vectors(glove, limit=300), epsilon=4.0)


def columns(**more):
    return {"text": TEXTS, "stars": STARS, "day": DAYS, "name": [MARKER] * 4, **more}


def pandas_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns(), index=[MARKER] * 4)
    frame.attrs["note"] = MARKER
    return frame


def polars_frame():
    return pytest.importorskip("polars").DataFrame(columns())


def arrow_table():
    arrow = pytest.importorskip("pyarrow")
    return arrow.table(columns(), metadata={"note": MARKER})


def dataset():
    return pytest.importorskip("datasets").Dataset.from_dict(columns())


def as_rows(table):
    if hasattr(table, "to_pylist"):
        return table.to_pylist()
    if hasattr(table, "to_dicts"):
        return table.to_dicts()
    if hasattr(table, "select_columns"):
        return table.to_list()
    table = table.astype(object)
    return table.where(table.notna(), None).to_dict("records")


KINDS = pytest.mark.parametrize("build", [pandas_frame, polars_frame, arrow_table, dataset])


@KINDS
def test_the_same_kind_comes_back_with_texts_and_kept_columns_alone(mechanism, build):
    table = build()
    before = as_rows(table)
    result = dptext.privatize(table, mechanism, keep=["stars", "day"], seed=3)
    assert type(result.table) is type(table) and as_rows(table) == before
    rows = as_rows(result.table)
    assert [list(row) for row in rows] == [["text", "stars", "day"]] * 4
    assert ([row["stars"] for row in rows], [row["day"] for row in rows]) == (STARS, DAYS)
    assert [row["text"] for row in rows] == dptext.privatize(TEXTS, mechanism, seed=3).texts
    assert MARKER not in repr(result.table) and result.statement.seeded
    assert {"the column 'stars', unchanged", "which rows had no text (null)"} <= set(result.statement.exposed)
    alone = as_rows(dptext.privatize(build(), mechanism).table)
    assert [list(row) for row in alone] == [["text"]] * 4 and alone[1]["text"] is None
    stripped = dptext.strip_metadata(table)
    assert type(stripped) is type(table) and as_rows(stripped) == before


@KINDS
def test_wrong_columns_are_refused(mechanism, build):
    for kind, options, message in (
        (ParameterError, {"text": "review"}, "expected a column 'review', the table has 4 others"),
        (ParameterError, {"keep": ["age"]}, "expected a column 'age'"),
        (ParameterError, {"keep": ["text"]}, "contains the text and would be released"),
        (DataError, {"text": "stars"}, "texts must be strings, entry 1 is"),
    ):
        assert_error(kind, lambda o=options: dptext.privatize(build(), mechanism, **o), message)
    table = build()
    if hasattr(table, "append_column"):
        table = table.append_column("stars", [[1, 2, 3, 4]])
    elif hasattr(table, "reset_index"):
        table = table.rename(columns={"day": "stars"})
    else:
        return  # it cannot have two columns of one name
    message = "expected a column 'stars', the table has 2 columns with this name"
    assert_error(ParameterError, lambda: dptext.privatize(table, mechanism, keep=["stars"]), message)


def test_other_values_are_refused_with_advice(mechanism):
    import datasets
    import polars

    for value, advice in (
        (polars.LazyFrame(columns()), "polars.LazyFrame: call collect() first"),
        (datasets.DatasetDict(), "pass one split at a time"),
        (dataset().to_iterable_dataset(), "pass its texts"),
        ({"text": ["a"]}, "got builtins.dict"),
        (np.array([["a", "b"]]), "got numpy.ndarray"),
    ):
        assert_error(ParameterError, lambda value=value: dptext.privatize(value, mechanism), advice)
    assert_error(ParameterError, lambda: dptext.privatize(TEXTS, mechanism, keep=["stars"]), "keep names columns of a")


def test_indices_attributes_metadata_and_categories_do_not_come_along(mechanism):
    import pandas

    result = dptext.privatize(pandas_frame(), mechanism, keep=["stars"]).table
    assert (list(result.index), result.attrs) == ([0, 1, 2, 3], {})
    frame = pandas.DataFrame({"text": pandas.Series([f"{MARKER} the", "of"], dtype="category")})
    result = dptext.privatize(frame, mechanism).table
    assert str(result["text"].dtype) == "object" and MARKER not in repr(result["text"].tolist())
    assert dptext.privatize(arrow_table(), mechanism, keep=["stars"]).table.schema.metadata is None


def test_a_shuffled_dataset_keeps_its_rows_together_and_its_name_reveals_nothing(mechanism):
    result = dptext.privatize(dataset().select([3, 0, 2]), mechanism, keep=["stars"], seed=1).table
    assert result["stars"][:] == [2, 5, 3]
    assert result["text"][:] == dptext.privatize(["", "the doctor", "of the city"], mechanism, seed=1).texts
    # `datasets` names a dataset by a hash, here of the released data alone, and save_to_disk writes the name
    others = pytest.importorskip("datasets").Dataset.from_dict(columns(name=["other"] * 4))
    for keep in (["stars"], []):
        output = [dptext.privatize(other, mechanism, keep=keep, seed=1).table for other in (dataset(), others)]
        assert output[0].to_list() == output[1].to_list()
        assert output[0]._fingerprint == output[1]._fingerprint


def test_types_of_pandas_stay():
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({
        "whole": pandas.array([1, None], dtype="Int64"),
        "truth": pandas.array([True, None], dtype="boolean"),
        "real": pandas.array([1.5, None], dtype="Float32"),
        "text": pandas.Series(["a", None], dtype="string"),
        "objects": pandas.Series([{"a": [1]}, None], dtype=object),
        "zone": pandas.to_datetime(["2020-10-25 02:30", None]).tz_localize("Europe/Berlin", ambiguous=True),
        "time": pandas.to_datetime(["2020-01-01", None]),
        "while": pandas.to_timedelta([1, None]),
        "period": pandas.PeriodIndex(["2020-01", "NaT"], freq="M"),
        "interval": pandas.arrays.IntervalArray.from_breaks([0, 1, 2]),
        "band": pandas.cut([1, 5], [0, 2, 9]),
        "grade": pandas.Categorical(["b", "a"], categories=["c", "b", "a"], ordered=True),
        "lists": pandas.Series([[1], None], dtype=pandas.ArrowDtype(arrow.list_(arrow.int8()))),
    })  # fmt: skip
    stripped = dptext.strip_metadata(frame)
    pandas.testing.assert_frame_equal(stripped, frame, check_categorical=False)
    assert list(stripped["grade"].cat.categories) == ["b", "a"]
    assert dptext.strip_metadata(frame.head(0))["whole"].dtype == "Int64"
    for unknown in [pandas.Series([object()])]:
        with pytest.raises(DataError, match="the kept column 'x' has values of type"):
            dptext.strip_metadata(pandas.DataFrame({"x": unknown}))


def test_types_of_polars_stay():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({
        "enum": polars.Series(["b", None], dtype=polars.Enum(["c", "b", "a"])),
        "category": polars.Series(["b", None], dtype=polars.Categorical),
        "fields": polars.Series([{"a": 1, "b": ["x"]}, None]),
        "array": polars.Series([[[1, 2]], None], dtype=polars.Array(polars.Int8, (1, 2))),
        "time": polars.Series([datetime.datetime(2020, 1, 1), None], dtype=polars.Datetime("ns", "UTC")),
        "real": polars.Series([1.5, None], dtype=polars.Decimal(10, 2)),
    })  # fmt: skip
    stripped = dptext.strip_metadata(frame)
    assert stripped.rows() == frame.rows()
    assert stripped["enum"].dtype == polars.Enum(["b"])
    others = ["category", "fields", "array", "time", "real"]
    assert stripped.select(others).schema == frame.select(others).schema
    enums = polars.Series([["b", "a"], None], dtype=polars.List(polars.Enum(["c", "b", "a"])))
    for unknown in (polars.Series([object()], dtype=polars.Object), polars.Series([1], dtype=polars.Int128), enums):
        with pytest.raises(DataError, match="the kept column 'x' has values of type"):
            dptext.strip_metadata(polars.DataFrame({"x": unknown}))


def test_classes_of_a_dataset_keep_their_numbers():
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["a", "unused 0", "b", "c"])
    features = datasets.Features({"label": names, "labels": datasets.List(names)})
    output = dptext.strip_metadata(
        datasets.Dataset.from_dict({"label": [2, None], "labels": [[1], None]}, features=features)
    )
    assert output.to_dict() == {"label": [2, None], "labels": [[1], None]}
    assert output.features["label"].names == ["unused 0", "unused 1", "b"]
    assert output.features["labels"].feature.dtype == "int64"  # within a list they are numbers


def test_a_release_names_its_outputs(mechanism):
    of_texts, of_table = dptext.privatize(TEXTS, mechanism), dptext.privatize(arrow_table(), mechanism)
    assert (of_texts.documents, of_table.documents, of_texts.tally.missing) == (4, 4, 1)
    assert_error(AttributeError, lambda: of_texts.table, "this release has no 'table', it has texts")
    assert_error(AttributeError, lambda: of_table.out, "this release has no 'out', it has table")
    with pytest.raises(AttributeError, match="cannot assign"):
        of_texts.documents = 3
