"""What every private file keeps: no row lost or repeated, one noise per text, and no text where none belongs."""

import json
import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io import batches
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from dptext.privacy.randomness import NoiseKey
from dptext.release.release import rejects_path, statement_path
from dptext.representations.device import VECTOR
from secrecy import MARKER, assert_error

WORDS = ["the", "doctor", "said", "fine"]
VECTORS = dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(4, 3))))
BANK = dptext.TextBank(
    [" ".join(words) for words in product(WORDS, repeat=3)], encoder=dptext.MeanOfWords(VECTORS), cache=False
)


@dataclass(frozen=True)
class Kind:
    """One kind of private file.

    Attributes:
        release: (source, output, what makes it, options) -> the release.
        suffix: of its output.
        built: epsilon -> what makes it.
        column: where its private values stand.
    """

    release: Any
    suffix: str
    built: Any
    column: str

    def __call__(self, source="in.jsonl", out=None, *, epsilon=4.0, keep=(), on_error="fail", **options):
        files = dptext.TextFiles(source, keep=keep, on_error=on_error)
        return self.release(files, out or self.out, self.built(epsilon), **options)

    @property
    def out(self):
        return f"out{self.suffix}"

    def rows(self, out=None):
        path = Path(out or self.out)
        if self.suffix == ".parquet":
            return pq.read_table(path).to_pylist()
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _words(epsilon):
    return dptext.TEM(VECTORS, epsilon=epsilon)


def _sentences(epsilon):
    return dptext.BankRewriter(BANK, epsilon=epsilon, unit="document", max_sentences=4)


def _encoder(epsilon):
    return dptext.PrivateEncoder(VECTORS, dptext.PrivUnit(epsilon=epsilon)).fit(["the doctor", "said fine"]).release_


KINDS = {
    "words": Kind(dptext.privatize_file, ".jsonl", _words, "text"),
    "sentences": Kind(dptext.privatize_file, ".jsonl", _sentences, "text"),
    "vectors": Kind(dptext.encode_file, ".parquet", _encoder, VECTOR),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path, monkeypatch):
    """In an empty folder, with blocks of ten rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches, "BATCH_ROWS", 10)
    return KINDS[request.param]


def rows(count, start=0):
    return [
        {"text": f"the doctor of {MARKER}{n % 7} said {n}, fine.", "n": n, "author": f"a{n % 2}"}
        for n in range(start, start + count)
    ]


def write(content, name="in.jsonl"):
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in content]
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def names():
    return sorted(path.name for path in Path().iterdir())


class Stop(BaseException):
    """What a power cut is to a program, as far as a test in the same process can say."""


def stop_after(count):
    def progress(_reader, done):
        if done >= count:
            raise Stop

    return progress


# -- one run ----------------------------------------------------------------------------------------------------------


def test_every_row_is_released_with_its_kept_columns_and_a_statement(kind):
    write(rows(25))
    release = kind(keep=["n"])
    assert (release.documents, release.skipped, release.resumed) == (25, 0, 0)
    assert [set(row) for row in kind.rows()] == [{kind.column, "n"}] * 25
    assert [row["n"] for row in kind.rows()] == list(range(25))
    assert MARKER.encode() not in Path(kind.out).read_bytes()
    statement = dptext.PrivacyStatement.from_json(statement_path(Path(kind.out)).read_text())
    assert statement == release.statement
    assert statement.data_sha256 == file_digest(kind.out)
    assert not statement.seeded
    assert "the column 'n', unchanged" in statement.exposed
    assert MARKER not in statement.to_json()
    assert names() == ["in.jsonl", kind.out, f"{kind.out}.privacy.json"]


def test_equal_blocks_and_two_runs_get_different_noise_and_a_seed_repeats(kind):
    write([{"text": "the doctor said that he was of the city and of the house " * 4}] * 20)
    kind()
    private = [json.dumps(row) for row in kind.rows()]
    assert len(set(private)) > 15
    kind(force=True)
    assert [json.dumps(row) for row in kind.rows()] != private
    write(rows(15))
    assert kind(seed=5, force=True).statement.seeded
    before = Path(kind.out).read_bytes()
    kind(seed=5, force=True)
    assert Path(kind.out).read_bytes() == before


# -- bad rows ---------------------------------------------------------------------------------------------------------


def test_bad_rows_are_refused_by_their_place_or_skipped_and_listed(kind):
    values = [json.dumps(row) for row in rows(30)]
    values[3] = '{"text": "' + MARKER
    values[17] = json.dumps({"text": 7, "n": 17, "other": MARKER})
    values[29] = json.dumps({"n": MARKER})
    write(values)
    assert_error(DataError, kind, "in.jsonl", "row 4")
    assert names() == ["in.jsonl"]
    release = kind(keep=["n"], on_error="skip")
    assert (release.documents, release.skipped) == (27, 3)
    assert [row["n"] for row in kind.rows()] == [n for n in range(30) if n not in (3, 17, 29)]
    listed = rejects_path(Path(kind.out)).read_text()
    places = [(row["file"], row["row"]) for row in map(json.loads, listed.splitlines())]
    assert places == [("in.jsonl", n) for n in (4, 18, 30)]
    assert MARKER not in listed
    assert any("rows" in entry and "missing" in entry for entry in release.statement.exposed)
    write(rows(2))
    kind(on_error="skip", force=True)
    assert not rejects_path(Path(kind.out)).exists()


def test_a_file_of_bad_rows_is_an_error(kind):
    write([f'{{"text": "{MARKER}', "[]"])
    assert_error(DataError, lambda: kind(on_error="skip"), "in.jsonl", "row 1")
    assert names() == ["in.jsonl"]


# -- interrupted ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [7, None])
def test_a_resumed_run_equals_one_that_was_not_interrupted(kind, seed, monkeypatch):
    write(rows(95))
    if seed is None:  # one key for all jobs, so that two of them can be compared
        key = NoiseKey.restored(bytes(range(32)), seeded=False)
        monkeypatch.setattr("dptext.release.run.NoiseKey", lambda _seed: key)
    whole = f"whole{kind.suffix}"
    statement = kind(out=whole, keep=["n"], seed=seed).statement
    for count in (10, 41, 90):
        with pytest.raises(Stop) as caught:
            kind(keep=["n"], seed=seed, resume=count > 10, progress=stop_after(count))
        assert f"{(count + 9) // 10 * 10} rows are done and kept" in caught.value.__notes__[0]
        assert not Path(kind.out).exists()
    with pytest.raises(ParameterError, match="--resume"):
        kind(keep=["n"], seed=seed)
    release = kind(keep=["n"], seed=seed, resume=True)
    assert (release.resumed, release.documents) == (90, 95)
    assert Path(kind.out).read_bytes() == Path(whole).read_bytes()
    assert release.statement.replace(release_id=None) == statement.replace(release_id=None)
    assert not [name for name in names() if name.startswith(".")]


def test_files_of_an_interrupted_run_are_private_and_hold_no_text(kind):
    write(rows(30))
    for name in ("job", "rows"):  # as if others could read the existing files
        Path(f".{kind.out}.{name}").touch()
        Path(f".{kind.out}.{name}").chmod(0o666)
    with pytest.raises(Stop):
        kind(progress=stop_after(10))
    left = [Path(f".{kind.out}.{name}") for name in ("job", "rows")]
    assert all(entry.stat().st_mode & 0o777 == 0o600 for entry in left)
    assert not any(MARKER.encode() in entry.read_bytes() for entry in left)
    kind(force=True)
    assert names() == ["in.jsonl", kind.out, f"{kind.out}.privacy.json"]
    Path("usual").touch()
    assert Path(kind.out).stat().st_mode == Path("usual").stat().st_mode


def test_a_change_since_the_interruption_is_refused(kind):
    write(rows(30))
    with pytest.raises(Stop):
        kind(keep=["n"], progress=stop_after(10))
    for label, options in (("epsilon", {"epsilon": 2.0}), ("keep", {"keep": ["author"]}), ("seed", {"seed": 1})):
        with pytest.raises(ParameterError, match=label):
            kind(resume=True, **{"keep": ["n"], **options})
    for other in (rows(30, start=1), rows(5), [{**row, "n": -1} for row in rows(30)]):
        write(other)
        with pytest.raises(RefusedError, match="the input has changed since"):
            kind(keep=["n"], resume=True)


def test_a_run_goes_on_after_a_row_is_repaired(kind):
    values = rows(30)
    write([*values[:25], "{", *values[26:]])
    with pytest.raises(DataError, match="row 26") as caught:
        kind()
    assert "20 rows are done and kept" in caught.value.__notes__[0]
    write(values)
    assert kind(resume=True).resumed == 20


def test_a_second_release_needs_force(kind):
    write(rows(30))
    assert kind(resume=True, seed=1).resumed == 0
    before = Path(kind.out).read_bytes()
    for options in ({}, {"resume": True}):
        with pytest.raises(ParameterError, match="already exists"):
            kind(seed=1, **options)
    with pytest.raises(Stop):
        kind(force=True, seed=2, progress=stop_after(10))
    assert Path(kind.out).read_bytes() == before  # the old one stays until the new one is whole
    kind(resume=True, seed=2)
    assert Path(kind.out).read_bytes() != before


def test_an_output_that_appears_meanwhile_is_not_overwritten(kind):
    write(rows(30))
    with pytest.raises(StorageError, match="appeared during the run"):
        kind(progress=lambda _reader, _rows: Path(kind.out).write_text("mine"))
    assert Path(kind.out).read_text() == "mine"


def test_no_output_is_the_input(kind):
    write(rows(3))
    os.link("in.jsonl", kind.out)
    os.link("in.jsonl", f"{kind.out}.rejects.jsonl")
    before = Path("in.jsonl").read_bytes()
    for source in ("in.jsonl", "./in.jsonl", f"{kind.out}.rejects.jsonl"):
        with pytest.raises(ParameterError, match="is the same file as IN"):
            kind(source, force=True)
    assert Path("in.jsonl").read_bytes() == before


# -- the ledger -------------------------------------------------------------------------------------------------------


def test_a_ledger_that_refuses_leaves_no_file_and_names_no_text(kind):
    write(rows(6))
    Ledger.create("book.db", epsilon=0.5)
    message = assert_error(RefusedError, lambda: kind(ledger="book.db"), "6 of 6")
    assert "the doctor" not in message
    assert names() == ["book.db", "in.jsonl"]
    assert not Ledger("book.db").releases()


def test_a_ledger_is_charged_once_for_a_text_and_a_key_column_does_not_come_out(kind):
    write(rows(6))
    Ledger.create("book.db", epsilon=1e6)
    kind(ledger="book.db", user="author")
    assert [set(row) for row in kind.rows()] == [{kind.column}] * 6
    left = Ledger("book.db").left("a0").left
    assert left < 1e6
    with pytest.raises(Stop):
        kind(out=f"second{kind.suffix}", ledger="book.db", user="author", progress=stop_after(1))
    kind(out=f"second{kind.suffix}", ledger="book.db", user="author", resume=True)
    assert Ledger("book.db").left("a0").left == pytest.approx(2 * left - 1e6)
    assert [release.state for release in Ledger("book.db").releases()] == ["released"] * 2
