"""A pool takes public texts from anything, keeps each once, and says what it left out."""

import copy
import pickle
from pathlib import Path

import datasets
import pandas
import polars
import pyarrow
import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.features.pool import Pool
from dptext.synthesis.prompts import Request, Source

TEXTS = ["Tea, please.", "No tax today.", "Tea,\tplease. ", "", None, "  ", "No tax today."]
KEPT = ("Tea, please.", "No tax today.")
NOTHING_ASKED = Request({}, (), 5)


def written(folder: Path) -> Path:
    path = folder / "pool.jsonl"
    dptext_rows = ['{"body": "Tea, please.", "topic": "food"}', '{"body": "No tax today."}', '{"body": null}']
    path.write_text("\n".join(dptext_rows) + "\n")
    return path


def test_each_text_is_kept_once_in_the_order_in_which_it_came():
    for make_texts in [
        lambda: TEXTS,
        lambda: (text for text in TEXTS),
        lambda: [dptext.Document(text) for text in TEXTS],
        lambda: pandas.Series(TEXTS),
        lambda: pandas.DataFrame({"other": range(7), "text": TEXTS}),
        lambda: polars.DataFrame({"text": TEXTS}),
        lambda: pyarrow.table({"text": TEXTS}),
        lambda: datasets.Dataset.from_dict({"text": TEXTS}),
    ]:
        pool = Pool(make_texts())
        assert pool.texts == KEPT == tuple(pool) == tuple(pool.propose(NOTHING_ASKED))
        assert (pool.given, pool.empty, pool.repeated, pool.skipped) == (7, 3, 2, 0)
        assert not list(pool.vary(KEPT, NOTHING_ASKED))
        assert pool.sha256 == Pool(KEPT).sha256 != Pool(KEPT[::-1]).sha256


@pytest.mark.parametrize("as_given", [str, Path, lambda path: [path]], ids=["str", "path", "paths"])
def test_files_and_folders_are_read(tmp_path, as_given):
    path = written(tmp_path)
    assert Pool(as_given(path), text="body").texts == KEPT
    assert Pool(as_given(tmp_path), text="body").texts == KEPT


def test_rows_that_cannot_be_read_end_it_or_are_counted(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text() + "not json\n")
    with pytest.raises(DataError, match="row 4"):
        Pool(path, text="body")
    assert Pool(path, text="body", on_error="skip").skipped == 1


def test_where_one_text_ends_belongs_to_the_digest():
    assert Pool(["ab", "c"]).sha256 != Pool(["a", "bc"]).sha256


def test_half_a_surrogate_pair_becomes_a_question_mark():
    assert Pool(["odd \ud800 text"]).texts == ("odd ? text",)


def test_the_statement_says_what_is_assumed_and_whose_texts_come_out():
    pool = Pool(TEXTS, name="sayings", licence="CC0-1.0")
    assert isinstance(pool, Source)
    assert pool.parameters() == {
        "pool": "sayings", "pool_texts": 2, "pool_sha256": pool.sha256, "pool_licence": "CC0-1.0",
    }  # fmt: skip
    assert "pool_licence" not in Pool(TEXTS).parameters()
    assert any("chosen without regard to the private texts" in line for line in pool.assumptions())
    assert any("no candidate was left out because it stands in them" in line for line in pool.assumptions())
    assert any("real sentences" in line for line in pool.exposed())


def test_a_pool_of_a_pool_is_that_pool():
    pool = Pool(KEPT)
    assert Pool.of(pool) is pool
    assert Pool.of(list(KEPT)).texts == KEPT


def test_what_is_no_pool_gets_one_clear_error():
    for make_texts, error, expected in [
        (list, ParameterError, "empty entries: 0"),
        (lambda: ["", None, " \n"], ParameterError, "empty entries: 3"),
        (lambda: 3, ParameterError, "paths, texts or a table, got 3"),
        (lambda: b"text", ParameterError, "got bytes"),
        (lambda: ["one", 2], DataError, "entry 2 is int"),
        (lambda: ["one", Path("x.txt")], ParameterError, "got both"),
        (lambda: [Path("x.txt"), 3], ParameterError, "must be a path"),
        (lambda: Path("nowhere.txt"), StorageError, "nowhere.txt"),
        (lambda: "text without a suffix", ParameterError, "suffix"),
        (lambda: [__file__, str(Path(__file__).parent.parent / "conftest.py")], ParameterError, "names of files"),
        (lambda: pandas.DataFrame({"body": ["one"]}), ParameterError, "expected a column 'text'"),
        (lambda: datasets.DatasetDict({"train": datasets.Dataset.from_dict({})}), ParameterError, "one by one"),
        (lambda: {"text": ["one"]}, ParameterError, "got builtins.dict"),
    ]:
        with pytest.raises(error, match=expected):
            Pool(make_texts())


@pytest.mark.parametrize("options", [{"name": ""}, {"licence": 3}, {"text": ""}, {"on_error": "stop"}])
def test_options_are_checked(options, tmp_path):
    with pytest.raises(ParameterError):
        Pool(written(tmp_path), **options)


def test_a_request_is_frozen_and_survives_a_pickle():
    label = {"topic": "sports"}
    request = Request(label, ["game", "season"], 3, ["An example."])
    label["topic"] = "politics"
    assert request.label["topic"] == "sports"
    assert request.hints == ("game", "season")
    assert pickle.loads(pickle.dumps(request)) == request == copy.copy(request)
    with pytest.raises(ParameterError, match="count"):
        Request({}, (), -1)
