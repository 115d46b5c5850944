"""papers/referee: the parts of a split are disjoint, and copies are planted as stated."""

from pathlib import Path

import pytest

PAPERS = ("referee.experiment",)


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_copies_are_planted_into_disjoint_parts(papers, monkeypatch, share, edited):
    people = [[" ".join(f"word{place}x{number}" for place in range(20))] for number in range(300)]
    monkeypatch.setattr(papers.experiment, "people_of", lambda *_: people)
    settings = {"data": "SNIPS", "held-out": 80, "share": share, "edited": edited}
    private, held_out, output = papers.experiment.planted(settings, 1, Path(), 100)
    parts = [{document.text for document in part} for part in (private, held_out)] + [set(output)]
    assert [len(part) for part in parts] == [100, 80, 100]
    assert parts[0].isdisjoint(parts[1])
    assert parts[1].isdisjoint(parts[2])
    copies = 100 * share
    assert len(parts[0] & parts[2]) == (0 if edited else copies)
    words = [set(text.split()) for text in parts[0]]
    nearest = [max(len(set(text.split()) & other) for other in words) for text in output]
    assert sum(common >= 18 for common in nearest) == copies
    assert sum(common == 20 for common in nearest) == (0 if edited else copies)
