"""Many files by one name: folders and patterns, each file once, and nothing of ours among them."""

import os
from pathlib import Path

import pytest
from secrecy import assert_error

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.documents import find_files


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder of files, where the process is."""
    for name in (
        "b.txt",
        "a.jsonl",
        "notes.md",
        "README",
        "a.jsonl.privacy.json",
        "a.jsonl.rejects.jsonl",
        "a.jsonl.answers.jsonl",
        ".hidden.txt",
        ".a.jsonl.job",
        ".a.jsonl.rows",
        "c.parquet",
        "D.CSV.GZ",
        "sub/e.tsv.zst",
        "sub/deep/f.ndjson",
        "sub/.hidden/g.txt",
        "sub/g.zip",
        ".git/h.txt",
        "empty/notes.md",
    ):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    monkeypatch.chdir(tmp_path / "data")
    return tmp_path / "data"


def names(found):
    return [str(name) for _, name in found]


ALL = ["D.CSV.GZ", "a.jsonl", "b.txt", "c.parquet", "sub/deep/f.ndjson", "sub/e.tsv.zst"]


def test_a_folder_stands_for_the_files_in_it_and_below(tree):
    found = find_files([tree])
    assert names(found) == ALL
    assert [path for path, _ in found] == [tree / name for name in ALL]


def test_a_folder_may_be_named_from_where_we_are(tree):
    assert find_files(["."]) == [(Path(name), Path(name)) for name in ALL]
    assert find_files(["sub"]) == [(Path("sub", name), Path(name)) for name in ("deep/f.ndjson", "e.tsv.zst")]
    assert find_files([os.fspath(tree) + "/sub/"]) == [
        (tree / "sub" / name, Path(name)) for name in ("deep/f.ndjson", "e.tsv.zst")
    ]


def test_a_folder_below_a_hidden_one_is_no_hidden_one(tree):
    assert names(find_files([".git"])) == ["h.txt"]
    assert names(find_files([tree / "sub" / ".hidden"])) == ["g.txt"]


def test_a_file_is_a_file_whatever_it_is_called(tree):
    for name in (".hidden.txt", "notes.md", "a.jsonl.rejects.jsonl", "not there.txt", "sub/g.zip"):
        assert find_files([name]) == [(Path(name), Path(Path(name).name))]


def test_standard_input_is_itself(tree):
    assert find_files(["-"]) == [(Path("-"), Path("-"))]
    assert names(find_files(["-", "b.txt"])) == ["-", "b.txt"]


def test_the_order_of_the_names_stays_and_each_is_sorted(tree):
    assert names(find_files(["sub", "b.txt", "*.jsonl"])) == ["deep/f.ndjson", "e.tsv.zst", "b.txt", "a.jsonl"]


# -- patterns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["b.txt"]),
        ("*", ["D.CSV.GZ", "a.jsonl", "b.txt", "c.parquet"]),
        ("?.*", ["D.CSV.GZ", "a.jsonl", "b.txt", "c.parquet"]),
        ("[ab].*", ["a.jsonl", "b.txt"]),
        ("[!ab].*", ["D.CSV.GZ", "c.parquet"]),
        ("**", ALL),
        ("**/*.ndjson", ["f.ndjson"]),
        ("**/*.[nt]*", ["b.txt", "sub/deep/f.ndjson", "sub/e.tsv.zst"]),
        (".hidden.*", [".hidden.txt"]),
    ],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_a_pattern_stands_for_the_files_that_match(tree, pattern, expected, absolute):
    found = find_files([os.fspath(tree / pattern) if absolute else pattern])
    assert names(found) == expected
    for path, name in found:
        assert path.is_absolute() == absolute
        assert path.absolute() == (path.absolute().parents[len(name.parts) - 1] / name)
        assert path.is_file()


def test_a_pattern_takes_files_of_any_suffix_where_the_format_is_told(tree):
    assert names(find_files(["*.md"], any_format=True)) == ["notes.md"]
    assert_error(DataError, lambda: find_files(["*.md"]), "'*.md'")


def test_what_we_write_beside_an_output_is_no_input(tree):
    assert names(find_files(["a.*"])) == ["a.jsonl"]
    assert names(find_files(["*rejects*", "b.txt"][1:])) == ["b.txt"]
    assert_error(DataError, lambda: find_files(["*.rejects.jsonl"]))


@pytest.mark.parametrize("name", ["a[1].txt", "what?.txt", "all*.txt", "[ab].txt"])
@pytest.mark.skipif(os.name == "nt", reason="Windows does not allow such names")
def test_a_name_that_looks_like_a_pattern_and_exists_is_a_name(tree, name):
    (tree / name).write_text("x\n")
    assert find_files([name]) == [(Path(name), Path(name))]
    folder = tree / f"folder {name}"
    folder.mkdir()
    (folder / "x.txt").write_text("x\n")
    assert names(find_files([folder])) == ["x.txt"]
    assert names(find_files([folder / "x.txt"])) == ["x.txt"]


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["empty", "new"])
def test_a_folder_without_files_is_refused(tree, folder):
    (tree / "new").mkdir()
    assert assert_error(DataError, lambda: find_files([folder])) == (
        f"the folder '{folder}' holds no file of a known format: name a file"
    )


@pytest.mark.parametrize("pattern", ["*.nothing", "no/*.txt", "**/*.xml", "sub*"])
def test_a_pattern_that_nothing_matches_is_refused(tree, pattern):
    assert assert_error(DataError, lambda: find_files([pattern])) == (
        f"no file of a known format matches {pattern!r}: name a file or a folder"
    )


@pytest.mark.parametrize(
    "sources",
    [
        ["b.txt", "b.txt"],
        ["b.txt", "./b.txt"],
        ["b.txt", "."],
        ["sub", "."],
        ["*.txt", "b.*"],
        ["-", "-"],
        ["b.txt", "sub/../b.txt"],
        ["sub", "sub/deep/../deep"],
    ],
)
def test_a_file_named_twice_is_refused(tree, sources):
    expected = "a file is named twice among the inputs: its rows would be released twice"
    assert assert_error(ParameterError, lambda: find_files(sources)) == expected
    absolute = [source if source == "-" else os.fspath(tree / source) for source in sources]
    assert assert_error(ParameterError, lambda: find_files([sources[0], *absolute[1:]])) == expected


def test_a_file_with_two_names_is_refused(tree):
    (tree / "link.txt").symlink_to("b.txt")
    assert_error(ParameterError, lambda: find_files(["b.txt", "link.txt"]), "named twice")


def test_a_folder_that_links_to_itself_is_read_once(tree):
    (tree / "sub" / "again").symlink_to(tree, target_is_directory=True)
    assert names(find_files(["."])) == ALL


def test_a_folder_that_cannot_be_read_is_a_storage_error(tree, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert assert_error(StorageError, lambda: find_files(["sub"])) == "cannot read 'sub': Permission denied"
