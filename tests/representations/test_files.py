"""Files of private vectors: noise of the job, kept columns and ledger. Resumed runs are in contracts."""

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
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from dptext.release.release import statement_path
from dptext.representations.device import VECTOR, encode_file, vectors_in
from dptext.representations.privunit import PrivUnit

MARKER = "qsecretq"
WIDTH = 8


class StandIn:
    """Counts of letters through PrivUnit, with the interface that `encode_file` needs."""

    def __init__(self, epsilon=8.0, width=WIDTH):
        self.randomizer, self.width = PrivUnit(epsilon=epsilon), width
        self.statement = self.randomizer.statement(width)

    def parameters(self):
        return dict(self.statement.parameters)

    def embed(self, texts):
        counts = np.zeros((len(texts), self.width))
        for row, text in enumerate(texts):
            for letter in text or "":
                counts[row, ord(letter) % self.width] += 1
        return counts

    def _encode(self, texts, bits):
        return self.randomizer.channel(self.width).sample(self.embed(texts), bits)


@pytest.fixture
def encoder():
    return StandIn()


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 10)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(count, start=0):
    return [
        {"text": f"the doctor of {MARKER}{n % 7} said {n}, fine.", "id": n, "author": f"a{n % 2}"}
        for n in range(start, start + count)
    ]


def write(name, rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def vectors_of(name):
    return np.array(pq.read_table(name)[VECTOR].to_pylist(), dtype=np.float32)


def statement_of(name):
    return dptext.PrivacyStatement.from_json(statement_path(Path(name)).read_text())


def names():
    return sorted(path.name for path in Path().iterdir())


# -- one run --------------------------------------------------------------------------------------------------


def test_file_has_vectors_kept_columns_and_a_statement(work, encoder):
    write("in.jsonl", rows(5))
    release = encode_file("in.jsonl", "out.parquet", encoder, keep=["id"])
    assert (release.documents, release.skipped, release.resumed) == (5, 0, 0)
    table = pq.read_table("out.parquet")
    assert table.schema.names == [VECTOR, "id"]
    assert table.schema.field(VECTOR).type == pa.list_(pa.float32(), WIDTH)
    assert table["id"].to_pylist() == list(range(5))
    assert vectors_of("out.parquet").shape == (5, WIDTH)
    assert MARKER.encode() not in (work / "out.parquet").read_bytes()
    statement = statement_of("out.parquet")
    assert statement == release.statement
    assert statement.data_sha256 == file_digest("out.parquet")
    assert statement.guarantee == encoder.statement.guarantee
    assert (statement.unit, statement.relation, statement.trust) == ("document", "substitution", "local")
    assert "the column 'id', unchanged" in statement.exposed
    assert not statement.seeded
    assert names() == ["in.jsonl", "out.parquet", "out.parquet.privacy.json"]


@pytest.mark.usefixtures("same_draws")
def test_vectors_have_the_noise_of_their_job(work, encoder, small_blocks):
    """Blocks of ten rows, each with a stream of its own, and the same rows in memory."""
    write("in.jsonl", rows(25))
    strong = StandIn(epsilon=400.0)
    encode_file("in.jsonl", "out.parquet", strong)
    unit = strong.embed([row["text"] for row in rows(25)])
    unit /= np.sqrt((unit**2).sum(axis=1, keepdims=True))
    assert np.abs(vectors_of("out.parquet") - unit).max() < 0.2
    encode_file("in.jsonl", "other.parquet", strong)
    assert (vectors_of("out.parquet") != vectors_of("other.parquet")).any(axis=1).all()


def test_kept_columns_of_parquet_keep_their_types_and_no_other_column_is_published(work, encoder, small_blocks):
    import datetime

    table = pa.table(
        {
            "when": pa.array([datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * 30, pa.timestamp("us", "UTC")),
            "kind": pa.array(["a", "b"] * 15).dictionary_encode(),
            "text": ["the doctor", None] * 15,
            "dropped": [MARKER] * 30,
        },
        metadata={"note": MARKER},
    )
    pq.write_table(table, "in.parquet", row_group_size=7)
    encode_file("in.parquet", "out.parquet", encoder, keep=["when", "kind"])
    result = pq.read_table("out.parquet")
    assert result.schema.names == [VECTOR, "when", "kind"]
    assert result.select(["when", "kind"]).equals(table.select(["when", "kind"]).replace_schema_metadata(None))
    assert MARKER.encode() not in (work / "out.parquet").read_bytes()


def test_missing_text_is_encoded_as_the_empty_one(work, encoder):
    (work / "in.jsonl").write_text('{"text": null}\n{"text": ""}\n{"text": "the"}\n')
    seen = []
    encoder.embed = lambda texts: seen.extend(texts) or np.ones((len(texts), WIDTH))
    release = encode_file("in.jsonl", "out.parquet", encoder)
    assert seen == ["", "", "the"]
    assert pq.read_table("out.parquet")[VECTOR].null_count == 0
    assert np.isfinite(vectors_of("out.parquet")).all()
    assert not any("null" in entry for entry in release.statement.exposed)


def test_other_parameters_get_other_noise_under_one_seed(work):
    """Equal noise at two budgets would give the text away."""
    write("in.jsonl", rows(3))
    draws = []
    for epsilon in (8.0, 8.5):
        encoder = StandIn(epsilon)
        encoder._encode = lambda texts, bits: bits.normal(len(texts), WIDTH).astype(np.float32)
        encode_file("in.jsonl", f"{epsilon}.parquet", encoder, seed=1)
        draws.append(vectors_of(f"{epsilon}.parquet"))
    assert not np.isclose(*draws).any()


def test_file_does_not_show_the_ends_of_blocks(work, encoder, monkeypatch):
    """A block ends after a number of characters; a row group that ends there would reveal the length of texts."""
    monkeypatch.setattr(batches, "BATCH_CHARACTERS", 300)
    monkeypatch.setattr("dptext.representations.device._ROW_GROUP", 16)
    shapes = set()
    for text in ("cat", "y" * 250):
        write("in.jsonl", [{"text": text}] * 40)
        encode_file("in.jsonl", "out.parquet", encoder, force=True)
        file = pq.read_metadata("out.parquet")
        shapes.add(tuple(file.row_group(n).num_rows for n in range(file.num_row_groups)))
    assert shapes == {(16, 16, 8)}


def test_bad_arguments_are_refused_before_anything_is_read(work, encoder):
    write("in.jsonl", rows(2))
    for arguments, message in [
        ({"out": "out.jsonl"}, "expected a name that ends in .parquet"),
        ({"out": "out.parquet.gz"}, "expected a file name that ends in"),
        ({"keep": [VECTOR]}, "a kept column cannot be named 'vector'"),
        ({"keep": ["text"]}, "keeping it would release it unchanged"),
        ({"out": "in.jsonl"}, "expected a name that ends in .parquet"),
    ]:
        with pytest.raises(ParameterError, match=message):
            encode_file("in.jsonl", **{"out": "out.parquet", "encoder": encoder, **arguments})
    assert names() == ["in.jsonl"]


def test_unstorable_kept_column_is_reported_without_its_text(work, encoder):
    for value in ['"a"', "{}", '[1, "a"]']:
        (work / "in.jsonl").write_text(f'{{"text": "{MARKER}", "id": 1}}\n{{"text": "{MARKER}", "id": {value}}}\n')
        with pytest.raises(DataError, match="convert the column, or do not keep it") as caught:
            encode_file("in.jsonl", "out.parquet", encoder, keep=["id"])
        assert MARKER not in str(caught.value)
    assert names() == ["in.jsonl"]


# -- ledger, users and parts --------------------------------------------------------------------------------


def test_ledger_is_charged_for_every_text(work, encoder):
    """Six texts of two authors at epsilon 8: 24 each. The vector of a missing text is a release like any other."""
    write("in.jsonl", rows(6))
    Ledger.create("small.db", epsilon=23.9)
    with pytest.raises(RefusedError, match="2 of 2 values of 'author' would be overspent"):
        encode_file("in.jsonl", "out.parquet", encoder, ledger="small.db", user="author")
    Ledger.create("l.db", epsilon=48)
    for name in ("a", "b"):
        encode_file("in.jsonl", f"{name}.parquet", encoder, ledger="l.db", user="author")
    assert Ledger("l.db").left("a0").left == 0.0
    with pytest.raises(RefusedError):
        encode_file("in.jsonl", "c.parquet", encoder, ledger="l.db", user="author")
    Ledger.create("missing.db", epsilon=8)
    write("null.jsonl", [{"text": None}])
    write("empty.jsonl", [{"text": ""}])
    encode_file("null.jsonl", "d.parquet", encoder, ledger="missing.db")
    with pytest.raises(RefusedError, match="1 of 1"):
        encode_file("empty.jsonl", "e.parquet", encoder, ledger="missing.db")


def test_vectors_of_a_folder_of_parts_are_read(tmp_path):
    """As Spark writes them: parts, some without rows, of lists whose type does not say their length."""
    numbers = pa.list_(pa.float32())
    for name, rows in (("part-0", [[1.0, 2.0], [3.0, 4.0]]), ("part-1", []), ("part-2", [[5.0, 6.0]])):
        pq.write_table(pa.table({"vector": pa.array(rows, numbers)}), tmp_path / f"{name}.snappy.parquet")
    (tmp_path / "_SUCCESS").touch()
    assert np.concatenate(list(vectors_in(tmp_path))).tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    pq.write_table(pa.table({"vector": pa.array([[1.0], [1.0, 2.0]], numbers)}), tmp_path / "part-3.parquet")
    with pytest.raises(DataError, match="vectors of one length"):
        list(vectors_in(tmp_path))


def test_guarantee_of_a_user_is_the_sum_over_the_texts(encoder):
    statement = encoder.statement.replace(slack=1e-6, claimed_epsilon=0.5)
    of_user = statement_for_user(statement, texts=3)
    assert (of_user.guarantee, str(of_user.unit)) == (dptext.PureDP(24.0), "user")
    assert of_user.slack == pytest.approx(3e-6)
    assert of_user.claimed_epsilon == 1.5
    assert "at most 3" in of_user.neighbours
    approximate = statement.replace(guarantee=dptext.ApproxDP(2.0, 1e-6))
    assert statement_for_user(approximate, texts=4).guarantee == dptext.ApproxDP(8.0, 4e-6)
    for texts in (0, True, 1.5, 10**9):
        with pytest.raises(ParameterError, match="texts must be an integer from 1 to 1,000,000"):
            statement_for_user(statement, texts=texts)
    with pytest.raises(ParameterError, match="expected a statement for one text"):
        statement_for_user(of_user, texts=2)


def test_texts_of_a_user_are_counted_with_missing_ones(work, encoder):
    texts = [("ann", "a cat"), ("ann", None), ("bob", "a dog"), (None, "tax"), ("ann ", "a cat")]
    write("in.jsonl", [{"text": text, "who": who} for who, text in texts])
    release = encode_file("in.jsonl", "out.parquet", encoder, user="who")
    assert release.most_texts == (3, 1)
    assert release.for_user == statement_for_user(release.statement, 3)
    assert pq.read_schema("out.parquet").names == [VECTOR]
    assert "who" not in (work / "out.parquet.privacy.json").read_text()
