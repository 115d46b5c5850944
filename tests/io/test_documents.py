"""A reader streams files one after the other; a folder or a pattern stands for its files."""

import os
import threading

import pandas
import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.batches import describe_columns
from dptext.io.documents import (
    Document,
    canonical_label,
    check_one_column,
    find_files,
    read_documents,
)
from sample_files import WITH_COLUMNS, put, raw, read, rows_and_rejects
from secrecy import MARKER, assert_error


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_one_column_may_have_several_roles_and_all_others_are_dropped(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", ["x"], {"who": ["ann"], "n": ["7"], "secret": [MARKER]})
    (row,) = read_documents(path, user="who", label="who", keep=("who", "n"))
    assert (row.user, row.label, row.attributes) == ("ann", "ann", {"who": "ann", "n": "7"})
    (row,) = read_documents(path, text="who", label="who")
    assert (row.text, row.user, row.label, row.attributes) == ("ann", None, "ann", None)
    assert MARKER not in repr(Document(MARKER, user=MARKER, label=MARKER, attributes={"a": MARKER}))


def test_wrong_arguments_are_refused_before_a_file_is_opened(tmp_path):
    (tmp_path / "a.jsonl").mkdir()
    for kind, name, options, message in (
        (ParameterError, "no.csv", {"on_error": "pass"}, "on_error"),
        (ParameterError, "no.csv", {"keep": ("text",)}, "contains the text and would be released"),
        (ParameterError, "no.csv", {"keep": ("n", "n")}, "is kept twice: list it once"),
        (ParameterError, "no.txt", {"user": "n"}, "has no columns to keep"),
        (ParameterError, "no.pdf", {}, "ends in .txt, .jsonl"),
        (StorageError, "no.csv", {}, "No such file"),
        (StorageError, "a.jsonl", {}, "Is a directory"),
    ):
        assert_error(kind, lambda name=name, options=options: read_documents(tmp_path / name, **options), message)
    for texts in ("text", b"text", {"text": ["x"]}, 5, pandas.DataFrame({"text": ["x"]})):
        assert_error(ParameterError, lambda texts=texts: check_one_column(texts), "texts must be")
    assert list(check_one_column(pandas.Series(["x"]))) == ["x"] and canonical_label(2.50) == "2.5"


def test_files_follow_each_other_and_count_their_own_rows(tmp_path):
    first = raw(tmp_path / "a.jsonl", '{"text": "one"}\n{"text": "two"}\n')
    empty = raw(tmp_path / "b.jsonl", "")
    last = put(tmp_path / "c.parquet", ["three"])
    assert read([first, empty, last]) == ["one", "two", "three"]
    assert read([raw(tmp_path / "odd", "x\n")], suffix=".txt") == ["x"]
    assert read([tmp_path / "odd"], suffix="txt") == ["x"]
    assert_error(ParameterError, lambda: read([tmp_path / "odd"], suffix="odd"), "such as .txt, .jsonl", "got 'odd'")
    reader, seen = read_documents([first, last]), []
    reader.watch(lambda batch: seen.append(list(batch.texts)), at_end=lambda: seen.append("end"))
    assert [list(batch.texts) for batch in reader.batches()] == [["one", "two"], ["three"]]
    assert seen == [["one", "two"], ["three"], "end"]
    assert (reader.count, reader.skipped, reader.position) == (3, 0, reader.size)
    reader = read_documents(first)
    assert [len(list(reader)), len(list(reader))] == [2, 0]
    with pytest.raises(DataError, match="contains no documents: at least one row"):
        read([empty])
    raw(last, "cut")
    assert_error(DataError, lambda: read([first, last]), "c.parquet is not a parquet file")


def test_unreadable_rows_are_left_out_and_listed_in_order(tmp_path, monkeypatch):
    lines = ['{"text": "a"}', MARKER, MARKER, "", '{"text": "b"}', "5"]
    path = raw(tmp_path / "a.jsonl", "\n".join(lines) + "\n")
    result, rejects = rows_and_rejects([path, put(tmp_path / "b.txt", ["c"])])
    assert result == ["a", "b", "c"] and MARKER not in str(rejects)
    assert [(name, row) for name, row, _ in rejects] == [("a.jsonl", row) for row in (2, 3, 4, 6)]
    raw(path, MARKER)
    assert_error(DataError, lambda: rows_and_rejects(path), "no row could be read; the first error is a.jsonl, row 1")
    monkeypatch.setattr("dptext.io.batches.BATCH_REJECTS", 2)
    monkeypatch.setattr("dptext.io.documents._REJECTS_KEPT", 3)
    reader = read_documents(raw(path, "x\n\n" * 5 + '{"text": "a"}\n'), on_error="skip")
    assert [(len(batch.texts), len(batch.rejects)) for batch in reader.batches()] == [(0, 2)] * 5 + [(1, 0)]
    assert (reader.skipped, len(reader.rejects)) == (10, 3)


def test_a_reader_closes_its_files_and_reads_a_named_pipe_once(tmp_path, monkeypatch):
    def rows(reader):
        with pytest.raises(DataError):
            list(reader)

    path = raw(tmp_path / "a.csv", "text\none\ntwo\nx,y\n")
    opened, real = [], type(tmp_path).open
    with monkeypatch.context() as patch:
        patch.setattr("dptext.io.batches.BATCH_ROWS", 1)
        patch.setattr(type(tmp_path), "open", lambda *arguments: opened.append(real(*arguments)) or opened[-1])
        for use in (lambda reader: next(reader.batches()), lambda reader: reader.close(), rows):
            use(read_documents([path]))
    assert len(opened) == 3 and all(stream.closed for stream in opened)
    os.mkfifo(tmp_path / "a.jsonl")
    content = '{"text": "one"}\n{"text": "two"}\n'
    writer = threading.Thread(target=lambda: (tmp_path / "a.jsonl").write_text(content))
    writer.start()
    assert read(tmp_path / "a.jsonl") == ["one", "two"]
    writer.join()
    os.mkfifo(tmp_path / "a.parquet")
    assert_error(ParameterError, lambda: read_documents(tmp_path / "a.parquet"), "a pipe or a device: name a file")


# -- folders and patterns -------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["b.csv", "a.txt", "below/c.jsonl.gz", "d.pdf", ".hidden.txt", ".git/e.txt", "a.txt.privacy.json"]
    for name in (*names, "a.rejects.jsonl", "a.answers.jsonl"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).touch()
    (tmp_path / "none").mkdir()
    return tmp_path


def test_folders_and_patterns_stand_for_their_files(tree):
    for sources, expected in (
        (["in"], ["in/a.txt", "in/b.csv", "in/below/c.jsonl.gz"]),
        (["in/b.csv", "in/below"], ["in/b.csv", "in/below/c.jsonl.gz"]),
        (["-"], ["-"]),
        (["in/*.csv", "in/*.txt"], ["in/b.csv", "in/a.txt"]),
        (["in/**/*"], ["in/a.txt", "in/b.csv", "in/below/c.jsonl.gz"]),
        ([str(tree / "in/?.txt")], [str(tree / "in/a.txt")]),
        (["no.csv"], ["no.csv"]),
    ):
        assert [path.as_posix() for path in find_files(sources)] == expected
    assert_error(DataError, lambda: find_files(["none"]), "contains no file of a known format:")
    assert_error(DataError, lambda: find_files(["in/*.pdf"]), "no file of a known format matches")
    assert [path.name for path in find_files(["in/*.pdf"], any_format=True)] == ["d.pdf"]
    for sources in (["in/a.txt", "in/a.txt"], ["in", "in/../in/a.txt"], ["in/*", "in/a.txt"]):
        assert_error(ParameterError, lambda s=sources: find_files(s), "an input file is given twice, so")
    (tree / "in/[x].txt").touch()
    assert [path.name for path in find_files(["in/[x].txt"])] == ["[x].txt"]


# -- column names in errors ---------------------------------------------------------------------------------------


def test_present_columns_are_listed_the_most_similar_first():
    usual = ["review_text", "userId", "Overall rating (1-5)", "stars"]
    assert describe_columns("star", usual) == ("4 others: 'stars', 'review_text', 'userId', 'Overall rating (1-5)'")
    many = [f"field_{place}" for place in range(30)]
    assert describe_columns("text", many).endswith("'field_18', 'field_19' and 10 more")
    assert describe_columns("text", []) == "0 others"
    names = ["befund", "zeile"]
    assert describe_columns("text", names, required=("text", "zeile")) == "2 others: 'befund', 'zeile'"
    names = ["befund", "he came home late that night"]
    assert describe_columns("text", names, sure=True) == "2 others: 'befund'"


def test_a_first_line_that_may_hold_values_is_not_shown():
    for values in [
        [MARKER, "5"],  # a number is no name
        [MARKER, "Ann"],  # could be names, and nothing says that they are
        ["stars", f"{MARKER} came home, and never left again"],
        ["stars", f"{MARKER}@example.org"],
        ["stars", f"{MARKER}\x1b[2J"],
        ["stars", f"+49 30 {MARKER}"],
        ["stars", "", MARKER],
        ["x" * 41 + MARKER, "stars"],
        ["befund", MARKER],
        [0, 1, 2],
    ]:
        result = describe_columns("text", values)
        assert MARKER not in result and result.startswith(f"{len(values)} others (not shown")
