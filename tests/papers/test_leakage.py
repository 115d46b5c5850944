"""papers/leakage runs without gensim, resumes, and its README has the numbers of its rows."""

import io
import tarfile
from pathlib import Path

import numpy as np

PAPERS = ("leakage.leakage",)
README = Path(__file__).resolve().parents[2] / "papers" / "leakage" / "README.md"


def test_the_quick_form_needs_no_gensim_and_resumes(papers, tmp_path, glove, monkeypatch, capsys):
    leakage = papers.leakage
    monkeypatch.setattr(leakage, "has_word2vec", lambda: False)
    monkeypatch.setattr(leakage, "WORDS", 2400)  # quick: an eighth
    monkeypatch.setattr(leakage, "ANCHORS", 50)
    (tmp_path / "blog_authorship").mkdir()
    generator = np.random.default_rng(1)
    with tarfile.open(tmp_path / "blog_authorship" / "blogs_subset.tar.xz", "w:xz") as archive:
        for place in range(32):
            words = " ".join(generator.choice(glove.words[:300], size=60))
            content = f"<Blog><post>{words}</post></Blog>".encode()
            member = tarfile.TarInfo(f"{place}.male.{20 + place}.indUnk.Leo.xml")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    arguments = ["--data", str(tmp_path), "--quick", "--out", str(tmp_path)]
    leakage.main(arguments)
    assert "pip install 'gensim" in capsys.readouterr().out
    out = tmp_path / "results.csv"
    rows = leakage.read_rows(out)
    assert [leakage._cell(row) for row in rows] == list(leakage.cells(word2vec=False))
    assert all(float(row["recovered"]) > 0.9 for row in rows)  # both sides have the same public vectors
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:2]))
    leakage.main(arguments)
    assert out.read_text() == "".join(lines)
