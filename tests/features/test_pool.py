"""`Pool`: distinct public texts from files, tables and iterables, with counts of entries that were left out."""

from pathlib import Path

import datasets
import pandas
import polars
import pyarrow
import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.features.pool import Pool

TEXTS = ["Tea, please.", "No tax today.", "Tea,\tplease. ", "", None, "  ", "No tax today."]
KEPT = ("Tea, please.", "No tax today.")


@pytest.fixture
def file(tmp_path):
    rows = ['{"body": "Tea, please.", "topic": "food"}', '{"body": "No tax today."}', '{"body": null}']
    (tmp_path / "pool.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path / "pool.jsonl"


def test_each_text_is_kept_once_in_order():
    for texts in [
        TEXTS,
        (text for text in TEXTS),
        [dptext.Document(text) for text in TEXTS],
        pandas.Series(TEXTS),
        pandas.DataFrame({"other": range(7), "text": TEXTS}),
        polars.DataFrame({"text": TEXTS}),
        pyarrow.table({"text": TEXTS}),
        datasets.Dataset.from_dict({"text": TEXTS}),
    ]:
        pool = Pool(texts)
        assert pool.texts == KEPT == tuple(pool)
        assert (pool.given, pool.empty, pool.repeated, pool.skipped) == (7, 3, 2, 0)
        assert pool.sha256 == Pool(KEPT).sha256 != Pool(KEPT[::-1]).sha256
    assert Pool(["ab", "c"]).sha256 != Pool(["a", "bc"]).sha256
    assert Pool(["odd \ud800 text"]).texts == ("odd ? text",)
    assert Pool.of(pool) is pool
    assert Pool.of(list(KEPT)).texts == KEPT


def test_files_and_folders_are_read_and_broken_rows_counted(file):
    for paths in (str(file), file, [file], file.parent):
        assert Pool(paths, text="body").texts == KEPT
    file.write_text(file.read_text() + "not json\n")
    with pytest.raises(DataError, match="row 4"):
        Pool(file, text="body")
    assert Pool(file, text="body", on_error="skip").skipped == 1


def test_the_statement_has_source_assumptions_and_exposed_texts():
    pool = Pool(TEXTS, name="sayings", licence="CC0-1.0")
    expected = {"pool": "sayings", "pool_texts": 2, "pool_sha256": pool.sha256, "pool_licence": "CC0-1.0"}
    assert pool.parameters() == expected
    assert "pool_licence" not in Pool(TEXTS).parameters()
    assert any("chosen without regard to the private texts" in line for line in pool.assumptions())
    assert any("no candidate was removed because it occurs in them" in line for line in pool.assumptions())
    assert any("real sentences" in line for line in pool.exposed())


def test_invalid_pools_are_refused(file):
    for texts, error, part in [
        ([], ParameterError, "empty entries: 0"),
        (["", None, " \n"], ParameterError, "empty entries: 3"),
        (3, ParameterError, "paths, texts or a table, got 3"),
        (b"text", ParameterError, "got bytes"),
        (["one", 2], DataError, "entry 2 is int"),
        (["one", Path("x.txt")], ParameterError, "got both"),
        ([Path("x.txt"), 3], ParameterError, "must be a path"),
        (Path("nowhere.txt"), StorageError, "nowhere.txt"),
        ("text without a suffix", ParameterError, "suffix"),
        (pandas.DataFrame({"body": ["one"]}), ParameterError, "expected a column 'text'"),
        (datasets.DatasetDict({"train": datasets.Dataset.from_dict({})}), ParameterError, "one split at a time"),
        ({"text": ["one"]}, ParameterError, "got builtins.dict"),
    ]:
        with pytest.raises(error, match=part):
            Pool(texts)
    for options in ({"name": ""}, {"licence": 3}, {"text": ""}, {"on_error": "stop"}):
        with pytest.raises(ParameterError):
            Pool(file, **options)


def test_a_pool_of_parts_counts_them_and_names_its_unit():
    texts = ["One. Two.\n\nThree.", "Two.", "", None]
    expected = {"sentence": ("One.", "Two.", "Three."), "paragraph": ("One. Two.", "Three.", "Two.")}
    for unit, parts in expected.items():
        pool = Pool(texts, unit=unit)
        assert (pool.texts, pool.unit, pool.parameters()["pool_unit"]) == (parts, unit, unit)
        assert pool.given - pool.empty - pool.repeated == len(pool)
        assert (pool.empty, pool.sha256) == (2, Pool(parts).sha256)
    assert "pool_unit" not in Pool(texts).parameters()
    with pytest.raises(ParameterError, match="unit must be"):
        Pool(texts, unit="page")
