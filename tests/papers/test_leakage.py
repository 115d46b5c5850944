"""papers/leakage runs without gensim, resumes, and its README has the numbers of its rows."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from papers.leakage.leakage import cross_corpus_recovery

from laws import most_by_luck

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


@pytest.fixture(scope="module")
def spaces():
    """A victim's space; the attacker's is another sample of the same, turned."""
    generator = np.random.default_rng(6)
    words = [f"w{n}" for n in range(500)]
    points = generator.normal(size=(500, 20))
    turn = np.linalg.qr(generator.normal(size=(20, 20)))[0]
    turned_points = (points + 0.3 * generator.normal(size=points.shape)) @ turn
    return words, points, turned_points, turn


def test_equal_axes_give_words_away_and_turned_ones_hide_them_until_pairs_are_known(spaces):
    words, points, turned_points, turn = spaces
    straight = cross_corpus_recovery((words, points), (words, turned_points @ turn.T))
    assert straight.score.value > 0.95
    assert straight.succeeded
    turned = cross_corpus_recovery((words, points), (words, turned_points))
    assert turned.score.value <= most_by_luck(500, 5 / 500)
    aligned = cross_corpus_recovery((words, points), (words, turned_points), anchors=60)
    assert aligned.score.value > 0.9
    assert aligned.score.count == 440
    assert aligned.attack == "cross-corpus recovery (aligned)"
    noise = np.random.default_rng(7).normal(size=turned_points.shape)
    nothing = cross_corpus_recovery((words, points), (words, noise), anchors=60)
    assert nothing.score.value <= most_by_luck(440, 5 / 500)
    assert not nothing.succeeded


@pytest.mark.parametrize("anchors", [10, 20])
def test_a_few_known_pairs_are_enough(spaces, anchors):
    """Ten pairs span ten of twenty directions; the words that they bring together span the others."""
    words, points, turned_points, _ = spaces
    result = cross_corpus_recovery((words, points), (words, turned_points), anchors=anchors)
    assert result.score.value > 0.95
    noise = np.random.default_rng(9).normal(size=turned_points.shape)
    nothing = cross_corpus_recovery((words, points), (words, noise), anchors=anchors)
    assert nothing.score.value <= most_by_luck(500 - anchors, 5 / 500)


def test_words_the_attacker_does_not_know_are_not_recovered(spaces):
    words, points, _, _ = spaces
    half = cross_corpus_recovery((words, points), (words[::2], points[::2]))
    assert half.score.value == 0.5
    assert half.baseline == 0.5 * 5 / 250
    assert "500 words of the victim, 250 of them known to the attacker, 250 of these recovered" in half.detail
    none = cross_corpus_recovery((words, points), ([f"x{n}" for n in range(500)], points))
    assert (none.score.value, none.baseline, none.succeeded) == (0.0, 0.0, False)
