"""`dptext report` of a synthetic corpus."""

import json

import pytest

from dptext.release.release import statement_path
from reports.corpora import SECRET, edit, make

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")


@pytest.mark.slow
@pytest.mark.usefixtures("same_draws")
def test_a_page_and_a_card_of_a_corpus(tmp_path, run, monkeypatch):
    folder = tmp_path
    make(folder)
    monkeypatch.chdir(folder)
    code, out, err = run(
        *("report", "made.jsonl", "-o", "page.html", "--public", "pool.txt", "--original", "in.jsonl"),
        *("--held-out", "held.jsonl", "--user", "who", "--card", "card.md", "--json"),
    )
    assert code == 0, err
    result = json.loads(out)
    assert result["corpus"]["texts"] == 60
    assert {measurement["is_rival"] for measurement in result["utility"]} == {True, False}
    page = (folder / "page.html").read_text()
    assert "--public pool.txt" in page
    assert "--held-out held.jsonl" in page
    assert "<script" not in page
    assert SECRET not in out + err + page
    card = (folder / "card.md").read_text()
    assert "held" not in card
    code, _, err = run("report", "made.jsonl", "-o", "pool.html", "--public", "pool.html")
    assert code == 2
    assert "an input" in err
    edit(statement_path(folder / "made.jsonl"), sigma=0.9)
    assert run("report", "made.jsonl", "-o", "other.html")[0] == 3
    assert (folder / "other.html").exists()
