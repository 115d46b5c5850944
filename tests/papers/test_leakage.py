"""The experiment of papers/leakage: it goes on where it stopped, does without gensim, and its README says its rows."""

import io
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

PAPERS = ("leakage.leakage",)
README = Path(__file__).resolve().parents[2] / "papers" / "leakage" / "README.md"


@pytest.fixture
def leakage(papers, monkeypatch):
    """Without gensim, on few words."""
    monkeypatch.setattr(papers.leakage, "has_word2vec", lambda: False)
    monkeypatch.setattr(papers.leakage, "WORDS", 2400)  # an eighth is left
    monkeypatch.setattr(papers.leakage, "ANCHORS", 50)
    return papers.leakage


@pytest.fixture
def data(tmp_path, glove):
    (tmp_path / "blog_authorship").mkdir()
    generator = np.random.default_rng(1)
    with tarfile.open(tmp_path / "blog_authorship" / "blogs_subset.tar.xz", "w:xz") as archive:
        for place in range(32):
            words = " ".join(generator.choice(glove.words[:300], size=60))
            content = f"<Blog><post>{words}</post></Blog>".encode()
            member = tarfile.TarInfo(f"{place}.male.{20 + place}.indUnk.Leo.xml")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return tmp_path


def test_it_says_that_gensim_is_missing_and_goes_on_where_it_stopped(leakage, data, monkeypatch, capsys):
    out = data / "results.csv"
    monkeypatch.setattr("sys.argv", ["leakage", "--data", str(data), "--quick", "--out", str(out)])
    leakage.main()
    err = capsys.readouterr().err
    assert "pip install 'gensim" in err
    rows = leakage.rows_of(out)
    assert [leakage.cell_of(row) for row in rows] == list(leakage.cells(word2vec=False))
    # public vectors go through the release: whoever has the same ones lays them on each other
    assert all(float(row["recovered"]) > 0.9 for row in rows)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:2]))
    leakage.main()
    assert out.read_text() == "".join(lines)
    assert "infinite: " in capsys.readouterr().err


def test_the_tables_of_the_readme_come_from_the_rows(papers):
    leakage = papers.leakage
    rows = leakage.rows_of(leakage.HERE / "results.csv")
    assert {leakage.cell_of(row) for row in rows} == set(leakage.cells(word2vec=True))
    written = README.read_text().partition(leakage.START)[2].partition(leakage.END)[0]
    assert written.strip() == leakage.tables(rows).strip()


def test_numbers_that_the_readme_says_of_its_rows_are_there(papers):
    """Shares in the text, such as .522, are a recovered share of a row."""
    leakage = papers.leakage
    files = ("results.csv", "eighth.csv")  # of all texts, of an eighth
    rows = [row for file in files for row in leakage.rows_of(leakage.HERE / file)]
    shares = {f"{float(row['recovered']):.{places}f}".lstrip("0") for row in rows for places in (3, 4)}
    prose = README.read_text().partition(leakage.END)[2]
    values = set(re.findall(r"(?<![\d.])\.\d{3,4}\b", prose))
    assert values - {".0001"} <= shares | {".33", ".41"}, "chance and printed numbers aside"
