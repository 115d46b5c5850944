"""Tables of other libraries: their own kind comes back, with the kept columns as they were and nothing else."""

import datetime

import pytest

import dptext
from dptext.errors import DataError, ParameterError

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


KINDS = pytest.mark.parametrize("make", [pandas_frame, polars_frame, arrow_table, dataset])


@KINDS
def test_the_same_kind_comes_back(mechanism, make):
    table = make()
    before = as_rows(table)
    result = dptext.privatize_table(table, mechanism, keep=["stars", "day"], seed=3)
    assert type(result.table) is type(table)
    rows = as_rows(result.table)
    assert [list(row) for row in rows] == [["text", "stars", "day"]] * 4
    assert [row["stars"] for row in rows] == STARS
    assert [row["day"] for row in rows] == DAYS
    assert [row["text"] for row in rows] == dptext.privatize(TEXTS, mechanism, seed=3).texts
    assert as_rows(table) == before
    assert MARKER not in repr(result.table)
    assert "the column 'stars', as it was" in result.statement.exposed
    assert "which rows had no text (null)" in result.statement.exposed
    assert result.statement.seeded


@KINDS
def test_without_kept_columns_the_texts_are_alone(mechanism, make):
    rows = as_rows(dptext.privatize_table(make(), mechanism).table)
    assert [list(row) for row in rows] == [["text"]] * 4
    assert rows[1]["text"] is None


@KINDS
def test_what_is_wrong_is_said_in_one_line(mechanism, make):
    with pytest.raises(ParameterError, match="expected a column 'review', the table has none among its 4"):
        dptext.privatize_table(make(), mechanism, text="review")
    with pytest.raises(ParameterError, match="expected a column 'age'"):
        dptext.privatize_table(make(), mechanism, keep=["age"])
    with pytest.raises(ParameterError, match="would release it as it was"):
        dptext.privatize_table(make(), mechanism, keep=["text"])
    with pytest.raises(DataError, match="row 1: expected a string, the value is of type"):
        dptext.privatize_table(make(), mechanism, text="stars")


def test_an_index_and_attributes_of_pandas_do_not_come_along(mechanism):
    result = dptext.privatize_table(pandas_frame(), mechanism, keep=["stars"]).table
    assert list(result.index) == [0, 1, 2, 3]
    assert result.attrs == {}


def test_categories_of_texts_do_not_come_along(mechanism):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": pandas.Series([f"{MARKER} the", "of"], dtype="category")})
    result = dptext.privatize_table(frame, mechanism).table
    assert str(result["text"].dtype) == "object"
    assert MARKER not in repr(result["text"].tolist())


def test_metadata_of_arrow_does_not_come_along(mechanism):
    assert dptext.privatize_table(arrow_table(), mechanism, keep=["stars"]).table.schema.metadata is None


def test_a_dataset_that_was_shuffled_keeps_its_rows_together(mechanism):
    shuffled = dataset().select([3, 0, 2])
    result = dptext.privatize_table(shuffled, mechanism, keep=["stars"], seed=1).table
    assert result["stars"][:] == [2, 5, 3]
    assert result["text"][:] == dptext.privatize(["", "the doctor", "of the city"], mechanism, seed=1).texts


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: pytest.importorskip("polars").LazyFrame(columns()), r"polars\.LazyFrame: collect\(\) it first"),
        (lambda: pytest.importorskip("datasets").DatasetDict(), "privatize its splits one by one"),
        (lambda: dataset().to_iterable_dataset(), "give dptext.privatize its texts"),
        (lambda: [1, 2], r"got builtins\.list"),
    ],
)
def test_another_kind_is_refused_with_advice(mechanism, make, advice):
    with pytest.raises(ParameterError, match=advice):
        dptext.privatize_table(make(), mechanism)


def test_the_name_of_a_dataset_is_no_test_of_the_original_texts(mechanism):
    """`datasets` names a dataset by a hash of what it was made from, and save_to_disk writes the name out."""
    made = [dptext.privatize_table(dataset(), mechanism, keep=["stars"], seed=1).table for _ in range(2)]
    assert made[0].to_list() == made[1].to_list()
    assert made[0]._fingerprint != made[1]._fingerprint
    # without kept columns the name is a hash of the private texts alone
    other = pytest.importorskip("datasets").Dataset.from_dict(columns(name=["other"] * 4))
    assert len({dptext.privatize_table(each, mechanism, seed=1).table._fingerprint for each in (dataset(), other)}) == 1
