"""Files of private vectors: noise of the job, kept columns, users and ledger. Resumed runs are in contracts."""

import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dptext
from dptext import statement_for_user
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.io import batches
from dptext.ledger.ledger import Ledger
from dptext.representations.bounds import Bound
from dptext.representations.device import VECTOR, DeviceEncoder, encode_file, vectors_in
from dptext.representations.encoders import CallableEncoder
from dptext.representations.privunit import PrivUnit
from secrecy import assert_error

SECRET = "qsecretq"
WIDTH = 8


def counts(texts):
    """Counts of letters."""
    return [np.bincount([ord(letter) % WIDTH for letter in text], minlength=WIDTH) for text in texts]


def device(epsilon=8.0, function=counts):
    return DeviceEncoder(CallableEncoder(function), Bound(mean=np.zeros(WIDTH)), PrivUnit(epsilon=epsilon))


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches, "BATCH_ROWS", 10)
    return tmp_path


def rows(count):
    return [
        {"text": f"the doctor of {SECRET}{n % 7} said {n}, fine.", "id": n, "author": f"a{n % 2}"} for n in range(count)
    ]


def write(name, rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def vectors_of(name):
    return np.array(pq.read_table(name)[VECTOR].to_pylist(), dtype=np.float32)


def names():
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.usefixtures("same_draws")
def test_vectors_are_those_of_the_texts_with_the_noise_of_their_job(work):
    """Blocks of ten rows have streams of their own; other parameters get other noise under one seed."""
    write("in.jsonl", rows(25))
    strong = device(400.0)
    for name in ("one", "two"):
        encode_file("in.jsonl", f"{name}.parquet", strong)
    one, two = vectors_of("one.parquet"), vectors_of("two.parquet")
    assert np.abs(one - strong.clean([row["text"] for row in rows(25)])).max() < 0.2
    assert (one != two).any(axis=1).all()
    write("same.jsonl", [{"text": "tea"}] * 25)
    seeded = []
    for epsilon, seed in ((8.0, 1), (8.0, 1), (8.0001, 1), (8.0, 2)):
        encode_file("same.jsonl", "same.parquet", device(epsilon), seed=seed, force=True)
        seeded.append(vectors_of("same.parquet"))
    assert len(np.unique(seeded[0], axis=0)) == 25
    np.testing.assert_array_equal(seeded[0], seeded[1])
    for other in seeded[2:]:
        assert not np.isclose(seeded[0], other, atol=0.01).all(axis=1).any()


def test_kept_columns_of_parquet_keep_their_values_and_no_other_column_is_published(work):
    table = pa.table(
        {
            "when": pa.array([datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * 30, pa.timestamp("us", "UTC")),
            "kind": pa.array(["a", "b"] * 15).dictionary_encode(),
            "text": ["the doctor", None] * 15,
            "dropped": [SECRET] * 30,
        },
        metadata={"note": SECRET},
    )
    pq.write_table(table, "in.parquet", row_group_size=7)
    encode_file(dptext.TextFiles("in.parquet", keep=["when", "kind"]), "out.parquet", device())
    result = pq.read_table("out.parquet")
    assert result.schema.names == [VECTOR, "when", "kind"]
    assert result.schema.field(VECTOR).type == pa.list_(pa.float32(), WIDTH)
    assert result[VECTOR].null_count == 0
    assert result.select(["when", "kind"]).to_pylist() == table.select(["when", "kind"]).to_pylist()
    assert SECRET.encode() not in (work / "out.parquet").read_bytes()


def test_file_does_not_show_the_ends_of_blocks(work, monkeypatch):
    """A block ends after a number of characters; a row group that ends there would reveal the length of texts."""
    monkeypatch.setattr(batches, "BATCH_CHARACTERS", 300)
    monkeypatch.setattr("dptext.representations.device._ROW_GROUP", 16)
    for text in ("cat", "y" * 250):
        write("in.jsonl", [{"text": text}] * 40)
        encode_file("in.jsonl", "out.parquet", device(), force=True)
        file = pq.read_metadata("out.parquet")
        assert [file.row_group(n).num_rows for n in range(file.num_row_groups)] == [16, 16, 8]


def test_bad_arguments_and_columns_leave_no_file_and_show_no_text(work):
    for arguments, value, error, message in [
        ({"out": "out.jsonl"}, "2", ParameterError, "expected a name that ends in .parquet"),
        ({"out": "out.parquet.gz"}, "2", ParameterError, "expected a file name that ends in"),
        ({"keep": [VECTOR]}, "2", ParameterError, "a kept column cannot be named 'vector'"),
        ({"keep": ["text"]}, "2", ParameterError, "would be released unchanged"),
        ({"keep": ["id"]}, '"a"', DataError, "Convert or drop them"),
        ({"keep": ["id"]}, '[1, "a"]', DataError, "Convert or drop them"),
    ]:
        Path("in.jsonl").write_text(f'{{"text": "{SECRET}", "id": 1}}\n{{"text": "{SECRET}", "id": {value}}}\n')
        with pytest.raises(error, match=message) as caught:
            files = dptext.TextFiles("in.jsonl", keep=arguments.get("keep", ()))
            encode_file(files, arguments.get("out", "out.parquet"), device())
        assert SECRET not in str(caught.value)
        assert names() == ["in.jsonl"]


def test_vectors_of_a_folder_of_parts_are_read(tmp_path):
    """As Spark writes them: parts, some without rows, of lists whose type has no length."""
    numbers = pa.list_(pa.float32())
    for name, rows in (("part-0", [[1.0, 2.0], [3.0, 4.0]]), ("part-1", []), ("part-2", [[5.0, 6.0]])):
        pq.write_table(pa.table({"vector": pa.array(rows, numbers)}), tmp_path / f"{name}.snappy.parquet")
    (tmp_path / "_SUCCESS").touch()
    assert np.concatenate(list(vectors_in(tmp_path))).tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    pq.write_table(pa.table({"vector": pa.array([[1.0], [1.0, 2.0]], numbers)}), tmp_path / "part-3.parquet")
    with pytest.raises(DataError, match="vectors of one length"):
        list(vectors_in(tmp_path))


# -- users and ledger ----------------------------------------------------------------------------------------------


def test_ledger_is_charged_for_every_text(work):
    """Six texts of two authors at epsilon 8: 24 each. The vector of a missing text is a release like any other."""
    write("in.jsonl", rows(6))
    Ledger.create("small.db", epsilon=23.9)
    with pytest.raises(RefusedError, match="2 of 2 values of 'author' would be overspent"):
        encode_file("in.jsonl", "out.parquet", device(), ledger="small.db", user="author")
    Ledger.create("l.db", epsilon=48)
    for name in ("a", "b"):
        encode_file("in.jsonl", f"{name}.parquet", device(), ledger="l.db", user="author")
    assert Ledger("l.db").left("a0").left == 0.0
    with pytest.raises(RefusedError):
        encode_file("in.jsonl", "c.parquet", device(), ledger="l.db", user="author")
    Ledger.create("missing.db", epsilon=8)
    write("null.jsonl", [{"text": None}])
    write("empty.jsonl", [{"text": ""}])
    encode_file("null.jsonl", "d.parquet", device(), ledger="missing.db")
    with pytest.raises(RefusedError, match="1 of 1"):
        encode_file("empty.jsonl", "e.parquet", device(), ledger="missing.db")


def test_guarantee_of_a_user_is_the_sum_over_the_texts(work):
    texts = [("ann", "a cat"), ("ann", None), ("bob", "a dog"), (None, "tax"), ("ann ", "a cat")]
    write("in.jsonl", [{"text": text, "who": who} for who, text in texts])
    error = "1 of 5 rows has no usable value in the column 'who' (first: in.jsonl, row 4)"
    assert_error(DataError, lambda: encode_file("in.jsonl", "out.parquet", device(), user="who"), error)
    release = encode_file(dptext.TextFiles("in.jsonl", on_error="skip"), "out.parquet", device(), user="who")
    assert (release.most_texts, release.skipped) == ((3, 0), 1)  # with missing texts
    assert release.for_user == statement_for_user(release.statement, 3)
    assert pq.read_schema("out.parquet").names == [VECTOR]
    assert "who" not in (work / "out.parquet.privacy.json").read_text()
