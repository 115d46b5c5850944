"""The reviews of papers/dpnr on a made-up file of TrustPilot's form and made-up news."""

import csv

import numpy as np
import pytest

from dptext import WordVectors
from dptext.errors import DataError

PAPERS = ("dpnr.blogs", "dpnr.blogs_printed", "dpnr.blogs_report", "dpnr.reviews")
pytest.importorskip("sklearn")
pytest.importorskip("scipy")

WORDS = [f"{one}{other}" for one in "abcdefghij" for other in "klmnopqrst"]


@pytest.fixture(scope="module")
def trustpilot(tmp_path_factory):
    """Reviews of two countries; those of the United States by every age and gender."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("trustpilot") / "reviews.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "rating", "gender", "age", "country"])
        for place in range(120):
            words = rng.choice(WORDS[:50] if place % 2 else WORDS[50:], 12)
            country = "US" if place % 6 else "DK"
            rows.writerow([" ".join(words), 1 + 4 * (place % 2), "FM"[place // 2 % 2], 20 + 20 * (place % 3), country])
    return path


def test_tp_us_are_the_young_and_the_old_of_the_united_states(papers, trustpilot, tmp_path):
    result = papers.reviews.tp_us(trustpilot)
    assert set(result.attributes) == {"gender", "age"}
    assert set(result.attributes["age"]) == {"under 35", "over 45"}
    assert set(result.attributes["gender"]) == {"female", "male"}
    assert set(result.labels) == {"1", "5"}
    assert len(result.texts) == len(result.people) == result.people.max() + 1 == 60
    danish = tmp_path / "danish.csv"
    danish.write_text(trustpilot.read_text().replace(",US", ",DK"))
    with pytest.raises(DataError, match="0 of the countries United States have an English review"):
        papers.reviews.tp_us(danish)


def test_printed_numbers_of_every_task(papers):
    printed = papers.blogs_printed.printed_accuracy
    assert printed(None, 0.0, "TP-US") == pytest.approx(0.8553)
    assert printed(5.0, 0.0, "AG News") == pytest.approx(0.7959)
    assert printed(1.0, 0.8, "TP-US") == pytest.approx(0.8070)
    assert printed(1.0, 0.0, "industry") is None


def test_it_runs_and_what_was_not_run_stands_there_as_printed(papers, trustpilot, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    vectors = WordVectors([*WORDS, "<unk>"], np.vstack([rng.normal(size=(len(WORDS), 20)), np.zeros(20)]))
    (tmp_path / "ag_news").mkdir()
    lines = [f'"{1 + place % 4}","{WORDS[place % 4]} {WORDS[place]}","{WORDS[-1 - place]}"' for place in range(48)]
    for name in ("train", "test"):
        (tmp_path / "ag_news" / f"{name}.csv").write_text("\n".join(lines[: 48 if name == "test" else 1]) + "\n")
    lines[0] = '"1","other","words"'
    (tmp_path / "ag_news" / "train.csv").write_text(lines[0] + "\n")
    monkeypatch.setattr(papers.reviews, "load_vectors", lambda *_, **__: vectors)
    monkeypatch.setattr(papers.reviews, "cells", lambda *_: [{"mechanism": "DPNR", "epsilon": 1.0, "mu": 0.0}])
    out = tmp_path / "out"
    options = ["--data", str(tmp_path), "--quick", "--out", str(out)]
    papers.reviews.main(options)
    text = (out / "reviews.md").read_text()
    assert "| DPNR |  | 1 | 20 |" in text
    assert "| 0.794 |" in text  # printed for AG at epsilon 1, beside ours
    assert "| no noise | not run (printed 0.8553) |" in text
    assert "| DPNR: young, old less young | not run (printed 0.8608, +0.0031) |" in text
    papers.reviews.main([*options, "--trustpilot", str(trustpilot)])
    text = (out / "reviews.md").read_text()
    assert "(printed 0.8553)" not in text  # it has been run
    assert "60 texts, 2 classes" in text
    assert "over 45 minus under 35" in text or "under 35 minus over 45" in text
