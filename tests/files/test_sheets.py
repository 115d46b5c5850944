"""Sheets of Excel: rows as they are numbered there, plain values, and one clear error for what cannot be read."""

import datetime
import zipfile

import pytest

from dptext.cli import main
from dptext.errors import DataError, MissingExtraError, ParameterError
from dptext.io import formats
from dptext.io.documents import DocumentWriter, find_files, read_documents

MARKER = "qsecretq"


@pytest.fixture
def book(tmp_path):
    """A function that writes a workbook: rows by the title of their sheet."""
    openpyxl = pytest.importorskip("openpyxl")

    def write(name="a.xlsx", **sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for title, rows in sheets.items():
            sheet = made.create_sheet(title)
            for row in rows:
                sheet.append(row)
        made.save(tmp_path / name)
        return tmp_path / name

    return write


def read(path, **options):
    return [(each.text, each.attributes) for each in read_documents(path, **options)]


def test_rows_are_plain_values_and_dates_their_spelling(book):
    day, moment = datetime.datetime(2024, 5, 1), datetime.datetime(2024, 5, 1, 8, 30)
    rows = [
        ["text", "stars", "when", "at", "ok"],
        ["one", 5, day, datetime.time(7, 15), True],
        [None, None, None, None, None],
        ["two", 1.5, moment, None, False],
        [None, 3, None, None, None],
    ]
    found = read(book(Reviews=rows, Empty=[]), keep=["stars", "when", "at", "ok"])
    assert found == [
        ("one", {"stars": 5, "when": "2024-05-01", "at": "07:15:00", "ok": True}),
        ("two", {"stars": 1.5, "when": "2024-05-01T08:30:00", "at": None, "ok": False}),
        (None, {"stars": 3, "when": None, "at": None, "ok": None}),
    ]


def test_a_row_that_does_not_fit_into_memory_is_refused(book, tmp_path):
    """A few kilobytes that unpack to one cell of 20 MB."""
    whole, bomb = book(S=[["text"], ["a cell"], ["another"]]), tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"a cell", b"a" * 20_000_000))
    with pytest.raises(DataError, match="a row must have at most 16,777,216 bytes of XML, got more"):
        read(bomb)


def test_a_formula_counts_as_its_stored_value(book):
    # a program that does not compute stores none: the text is then missing, and never the formula
    assert read(book(S=[["text", "n"], ["=1+1", 1], ["a", 2]])) == [(None, None), ("a", None)]


@pytest.mark.parametrize(
    ("sheets", "options", "message"),
    [
        ({"S": [["text"], ["a"], [7]]}, {}, "a.xlsx, row 3: expected a string in 'text', the value is of type int"),
        ({"S": [["text"], [], [], [7]]}, {}, "a.xlsx, row 4: expected a string in 'text', the value is of type int"),
        ({"S": [["body", "stars"], [MARKER, 1]]}, {}, "the header has none among its 2: 'body', 'stars'"),
        ({"S": [[MARKER, "it was late"], ["a", "b"]]}, {}, "the header has none among its 2 (not shown"),
        ({"S": [["text"], ["a"]]}, {"keep": ["age"]}, "expected a column 'age', the header has none among its 1"),
        ({"S": [["text", 7], ["a", "b"]]}, {}, "expected the names of the columns in the first row"),
        ({"S": [["text", None, "x"], ["a", "b", "c"]]}, {}, "expected the names of the columns in the first row"),
        ({"S": [["text", "text"], ["a", "b"]]}, {}, "two columns of the header have the same name"),
        (
            {"S": [["text"], ["a", MARKER]]},
            {},
            "a.xlsx, row 2: expected 1 columns as in the first row, got a value beyond",
        ),
        ({"S": [["text"], ["a"]], "T": [["text"], [MARKER]]}, {}, "expected one sheet with rows, 2 hold some"),
        ({"S": []}, {}, "holds no documents"),
        ({"S": [["text"]]}, {}, "holds no documents"),
    ],
)
def test_what_cannot_be_read_is_one_error(book, sheets, options, message):
    with pytest.raises(DataError) as caught:
        read(book(**sheets), **options)
    assert message in str(caught.value)
    assert MARKER not in str(caught.value)


def test_broken_rows_are_skipped_by_their_number(book):
    reader = read_documents(book(S=[["text"], ["a"], [7], ["a", "beyond"], ["b"]]), on_error="skip")
    assert [each.text for each in reader] == ["a", "b"]
    assert [(each.first, each.last) for each in reader.rejects] == [(3, 3), (4, 4)]


def altered(path, **changes):
    """The workbook with pieces of its sheet replaced, as other programs write them."""
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    [sheet] = [name for name in parts if name.endswith("sheet1.xml")]
    for old, new in changes["replace"]:
        assert old in parts[sheet]
        parts[sheet] = parts[sheet].replace(old, new)
    with zipfile.ZipFile(path, "w") as out:
        for name, content in parts.items():
            out.writestr(name, content)
    return path


@pytest.mark.parametrize("size", [b"A1", b"A1:A2", b"A1:B9"])
def test_rows_and_columns_beyond_the_size_that_a_sheet_says_are_read(book, size):
    """Some programs write a size that is wrong."""
    path = altered(
        book(S=[["text", "n"], ["a", 1], ["b", 2], ["c", 3]]), replace=[(b'ref="A1:B4"', b'ref="%s"' % size)]
    )
    assert read(path, keep=["n"]) == [("a", {"n": 1}), ("b", {"n": 2}), ("c", {"n": 3})]


def test_a_row_that_no_sheet_has_is_damage_and_is_not_counted_up_to(book):
    far = b"99999999999"
    path = altered(
        book(S=[["text"], ["a"]]), replace=[(b'<row r="2">', b'<row r="%s">' % far), (b'"A2"', b'"A%s"' % far)]
    )
    with pytest.raises(DataError, match="cut or damaged"):
        read(path)


def test_a_file_that_is_none_or_damaged(book, tmp_path):
    whole = book(S=[["text"], *([f"{MARKER} {n}"] for n in range(200))])
    (tmp_path / "cut.xlsx").write_bytes(whole.read_bytes()[:-300])
    (tmp_path / "text.xlsx").write_text(f"text\n{MARKER}\n")
    for name in ("cut.xlsx", "text.xlsx"):
        with pytest.raises(DataError, match=r"is not an \.xlsx file, or was cut or damaged") as caught:
            read(tmp_path / name)
        assert caught.value.__cause__ is None
        assert MARKER not in str(caught.value)


def test_it_is_read_and_never_written(book, tmp_path):
    with pytest.raises(ParameterError, match=r"read and not written: end OUT in .txt, .jsonl, .csv, .tsv, .parquet"):
        DocumentWriter(tmp_path / "out.xlsx")
    assert formats.FORMATS[".xlsx"].needs_file
    assert [path.name for path, _ in find_files([book(S=[["text"], ["a"]]).parent])] == ["a.xlsx"]


def test_the_command_reads_it(book, tmp_path, capsys):
    path = book(S=[["text", "stars"], ["good", 5], ["bad", 1]])
    options = ["--epsilon", "5", "--keep", "stars", "--limit", "100", "-q"]
    assert main(["privatize", str(path), "-o", str(tmp_path / "out.xlsx"), *options]) == 2
    assert "read and not written" in capsys.readouterr().err
    (tmp_path / "outs").mkdir()
    assert main(["privatize", str(path), "-o", str(tmp_path / "outs"), *options]) == 0, capsys.readouterr().err
    assert [each.attributes for each in read_documents(tmp_path / "outs" / "a.jsonl", keep=["stars"])] == [
        {"stars": 5},
        {"stars": 1},
    ]


def test_columns_are_looked_at(book):
    file = formats.file_format(book(S=[["text", "stars"], ["a", 1], ["b", 2]]))
    assert list(file.format.rows(book(S=[["text", "stars"], ["a", 1]]), "", only=["stars"])) == [{"stars": 1}]


def test_the_package_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[excel\]"'):
        read(tmp_path / "a.xlsx")
