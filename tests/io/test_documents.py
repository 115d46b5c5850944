"""A reader streams files one after the other; a folder or a pattern stands for its files."""

import os
import threading

import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.batches import describe_columns
from dptext.io.documents import (
    Document,
    NoDocumentsError,
    canonical_label,
    check_one_column,
    find_files,
    read_documents,
)
from sample_files import WITH_COLUMNS, put, raw, read, rows_and_rejects
from secrecy import MARKER, assert_error


def test_a_document_shows_nothing_of_what_it_holds():
    assert MARKER not in repr(Document(MARKER, user=MARKER, label=MARKER, attributes={"a": MARKER}))


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_one_column_may_have_several_parts_and_all_others_are_dropped(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", ["x"], {"who": ["ann"], "n": ["7"], "secret": [MARKER]})
    (row,) = read_documents(path, user="who", label="who", keep=("who", "n"))
    assert (row.user, row.label, row.attributes) == ("ann", "ann", {"who": "ann", "n": "7"})
    (row,) = read_documents(path, text="who", label="who")
    assert (row.text, row.user, row.label, row.attributes) == ("ann", None, "ann", None)


def test_what_cannot_be_asked_is_refused_before_a_file_is_opened(tmp_path):
    missing = tmp_path / "no.csv"
    assert_error(ParameterError, lambda: read_documents(missing, on_error="pass"), "on_error")
    assert_error(ParameterError, lambda: read_documents(missing, keep=("text",)), "keeping it would release it")
    assert_error(ParameterError, lambda: read_documents(missing, keep=("n", "n")), "named twice")
    assert_error(ParameterError, lambda: read_documents(tmp_path / "no.txt", user="n"), "has no columns to keep")
    assert_error(ParameterError, lambda: read_documents(tmp_path / "no.pdf"), "ends in .txt, .jsonl")
    assert_error(StorageError, lambda: read_documents(missing), "No such file")
    tmp_path.joinpath("a.jsonl").mkdir()
    assert_error(StorageError, lambda: read_documents(tmp_path / "a.jsonl"), "Is a directory")


def test_files_follow_each_other_and_count_their_own_rows(tmp_path):
    first = raw(tmp_path / "a.jsonl", '{"text": "one"}\n{"text": "two"}\n')
    empty = raw(tmp_path / "b.jsonl", "")
    last = put(tmp_path / "c.parquet", ["three"])
    assert read([first, empty, last]) == ["one", "two", "three"]
    assert read([raw(tmp_path / "odd", "x\n")], suffix=".txt") == ["x"]
    reader = read_documents([first, last])
    seen = []
    reader.watch(lambda batch: seen.append(list(batch.texts)), at_end=lambda: seen.append("end"))
    assert [list(batch.texts) for batch in reader.batches()] == [["one", "two"], ["three"]]
    assert seen == [["one", "two"], ["three"], "end"]
    assert (reader.count, reader.skipped, reader.position) == (3, 0, reader.size)
    reader = read_documents(first)
    assert [len(list(reader)), len(list(reader))] == [2, 0]
    with pytest.raises(NoDocumentsError, match="holds no documents"):
        read([empty])
    raw(last, "cut")
    assert_error(DataError, lambda: read([first, last]), "c.parquet is not a parquet file")


def test_rows_that_cannot_be_read_are_left_out_in_order_and_listed(tmp_path):
    lines = ['{"text": "a"}', MARKER, MARKER, "", '{"text": "b"}', "5"]
    path = raw(tmp_path / "a.jsonl", "\n".join(lines) + "\n")
    result, rejects = rows_and_rejects([path, put(tmp_path / "b.txt", ["c"])])
    assert result == ["a", "b", "c"]
    assert [(name, row) for name, row, _ in rejects] == [("a.jsonl", row) for row in (2, 3, 4, 6)]
    assert MARKER not in str(rejects)
    raw(path, MARKER)
    assert_error(DataError, lambda: rows_and_rejects(path), "no row could be read; the first is a.jsonl, row 1")


def test_many_rejects_leave_in_batches_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("dptext.io.batches.BATCH_REJECTS", 2)
    monkeypatch.setattr("dptext.io.documents._REJECTS_KEPT", 3)
    path = raw(tmp_path / "a.jsonl", "x\n\n" * 5 + '{"text": "a"}\n')
    reader = read_documents(path, on_error="skip")
    assert [(len(batch.texts), len(batch.rejects)) for batch in reader.batches()] == [(0, 2)] * 5 + [(1, 0)]
    assert (reader.skipped, len(reader.rejects)) == (10, 3)


def test_a_reader_closes_its_files_however_it_ends(tmp_path, monkeypatch):
    path = raw(tmp_path / "a.csv", "text\none\ntwo\nx,y\n")
    opened = []
    real = type(tmp_path).open
    monkeypatch.setattr(type(tmp_path), "open", lambda *arguments: opened.append(real(*arguments)) or opened[-1])
    for use in (lambda reader: next(reader.batches(1)), lambda reader: reader.close(), rows):
        reader = read_documents([path])
        use(reader)
        del reader
    assert len(opened) == 3
    assert all(stream.closed for stream in opened)


def rows(reader):
    with pytest.raises(DataError):
        list(reader)


def test_a_named_pipe_is_read_once_from_start_to_end(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")

    def write():
        (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')

    writer = threading.Thread(target=write)
    writer.start()
    assert read(tmp_path / "a.jsonl") == ["one", "two"]
    writer.join()
    os.mkfifo(tmp_path / "a.parquet")
    assert_error(ParameterError, lambda: read_documents(tmp_path / "a.parquet"), "a pipe or a device: name a file")


# -- folders and patterns -------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("in/b.csv", "in/a.txt", "in/below/c.jsonl.gz", "in/d.pdf", "in/.hidden.txt", "in/.git/e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("in/a.txt.privacy.json", "in/a.rejects.jsonl", "in/a.answers.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "none").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["in"], ["a.txt", "b.csv", "below/c.jsonl.gz"]),
        (["in/b.csv", "in/below"], ["b.csv", "c.jsonl.gz"]),
        (["-"], ["-"]),
        (["in/*.csv", "in/*.txt"], ["b.csv", "a.txt"]),
        (["in/**/*"], ["a.txt", "b.csv", "below/c.jsonl.gz"]),
        (["in/?.txt"], ["a.txt"]),
        (["no.csv"], ["no.csv"]),
    ],
)
def test_folders_and_patterns_stand_for_their_files(tree, sources, expected):
    assert [relative.as_posix() for _, relative in find_files(sources)] == expected
    if sources[0].startswith("in/*"):
        assert find_files([str(tree / sources[0])])[0][1].as_posix() == expected[0]


def test_names_that_stand_for_nothing_or_for_one_file_twice_are_refused(tree):
    assert_error(DataError, lambda: find_files(["none"]), "holds no file of a known format: name a file")
    assert_error(DataError, lambda: find_files(["in/*.pdf"]), "no file of a known format matches")
    assert [path.name for path, _ in find_files(["in/*.pdf"], any_format=True)] == ["d.pdf"]
    for sources in (["in/a.txt", "in/a.txt"], ["in", "in/../in/a.txt"], ["in/*", "in/a.txt"]):
        assert_error(ParameterError, lambda s=sources: find_files(s), "a file is named twice")
    (tree / "in/[x].txt").touch()
    assert [path.name for path, _ in find_files(["in/[x].txt"])] == ["[x].txt"]


# -- values ---------------------------------------------------------------------------------------------------


def test_one_column_is_neither_a_string_nor_a_table():
    import pandas

    for texts in ("text", b"text", {"text": ["x"]}, 5, pandas.DataFrame({"text": ["x"]})):
        assert_error(ParameterError, lambda t=texts: check_one_column(t), "texts must be")
    assert list(check_one_column(pandas.Series(["x"]))) == ["x"]
    assert canonical_label(2.50) == "2.5"


# -- names of columns ---------------------------------------------------------------------------------------------

USUAL = ["review_text", "userId", "Overall rating (1-5)", "stars"]


def test_the_columns_that_there_are_stand_in_the_error_the_nearest_first():
    assert describe_columns("star", USUAL) == (
        "none among its 4: 'stars', 'review_text', 'userId', 'Overall rating (1-5)'"
    )
    many = [f"field_{place}" for place in range(30)]
    assert describe_columns("text", many).endswith("'field_18', 'field_19' and 10 more")
    assert describe_columns("text", [0, 1, 2]).startswith("none among its 3 (not shown")
    assert describe_columns("text", []) == "none among its 0"


def test_a_first_line_that_may_hold_values_is_not_shown():
    for values in [
        ["qsecretq", "5"],  # a number is no name
        ["qsecretq"],
        ["qsecretq", "Ann"],  # could be names, and nothing says that they are
        ["stars", "qsecretq came home, and never left again"],
        ["stars", "qsecretq one two three four"],
        ["stars", "qsecretq@example.org"],
        ["stars", "qsecretq\x1b[2J"],
        ["stars", "+49 30 qsecretq"],
        ["stars", "", "qsecretq"],
        ["qsecretq is late", "lovely"],
        ["x" * 41 + "qsecretq", "stars"],
    ]:
        result = describe_columns("text", values)
        assert "qsecretq" not in result
        assert result.startswith(f"none among its {len(values)} (not shown")


def test_a_column_that_was_asked_for_says_that_it_is_a_header():
    names = ["befund", "zeile"]
    assert "not shown" in describe_columns("text", names)
    assert describe_columns("text", names, required=("text", "zeile")) == "none among its 2: 'befund', 'zeile'"


def test_names_of_a_schema_are_shown_but_what_is_a_sentence():
    assert (
        describe_columns("text", ["befund", "he came home late that night"], sure=True) == "none among its 2: 'befund'"
    )
