"""Part three of papers/dpugc on made-up bloggers: levels, their prediction, and the quick form."""

import numpy as np
import pytest
from papers.dpugc.similarity import BENCHMARKS

PAPERS = ("dpugc.personal", "dpugc.trained", "dpugc.levels", "blogs")


@pytest.fixture(scope="module")
def people(papers, glove):
    """Older people use more of the later words."""
    generator = np.random.default_rng(3)
    result = []
    for place in range(60):
        age = 13 + place // 2
        rows = 400 + 30 * (age - 13) + generator.integers(0, 120, 60)
        posts = (" ".join(glove.words[row] for row in rows),)
        result.append(papers.blogs.Blogger(str(place), "male", age, "indUnk", ("Leo", "Virgo")[place % 2], posts))
    return result


def test_texts_predict_levels_by_age_and_not_by_chance(papers, people):
    cold = papers.levels.ColdStart(people[::2], people[1::2], people, resamples=20)
    cells = {
        (by, source): cold.cell({"by": by, "source": source, "margin": 0.0, "epsilon": epsilon}, 1)
        for by in papers.levels.BY
        for source, epsilon in (("public profile", None), ("texts", None), ("device", 1.0), ("vector", 16.0))
    }
    assert len({frozenset(cell) for cell in cells.values()}) == 1
    assert cells["age", "texts"]["of the mean"] < 0.8 < cells["chance", "texts"]["of the mean"]
    for cell in cells.values():
        assert cell["right"] + cell["too much"] + cell["too little"] == pytest.approx(1)
    assert cells["age", "device"]["right"] < cells["age", "texts"]["right"]  # it is randomised
    blind = cold.cell({"by": "age", "source": "vector", "margin": 0.0, "epsilon": 0.1}, 1)
    assert blind["of the mean"] > cells["age", "vector"]["of the mean"]
    margin = cold.cell({"by": "age", "source": "texts", "margin": 0.5, "epsilon": None}, 1)
    assert margin["too much"] <= cells["age", "texts"]["too much"]
    assert set(cold.guessed_levels("age")) == {person.user for person in people[1::2]}


def test_true_epsilons_of_systems(papers):
    systems = papers.personal.SYSTEMS
    assert [systems["levels, by age"].epsilon_of(level) for level in papers.levels.LEVELS] == [1.0, 4.0, 16.0]
    assert systems["the liberal alone, by age"].epsilon_of("moderate") == 0.0
    assert systems["no noise"].epsilon_of("liberal") == float("inf")
    largest = systems["the largest for all"].max_epsilon
    assert {systems[f"levels, by {by}"].max_epsilon for by in papers.levels.BY} == {largest}


def test_the_quick_form_resumes_and_reports(papers, people, glove, tmp_path, monkeypatch):
    personal = papers.personal
    (tmp_path / "wordsim").mkdir()
    generator = np.random.default_rng(1)
    for file in BENCHMARKS.values():
        pairs = generator.integers(400, 1400, (300, 2))
        lines = [f"{glove.words[one]}\t{glove.words[other]}\t{generator.random():.2f}" for one, other in pairs]
        (tmp_path / "wordsim" / file).write_text("\n".join(lines), encoding="utf-8")
    few = ("the least for all", "levels, by age", "levels, half guessed, by age", "no noise", personal.COMMON)
    monkeypatch.setattr(personal, "WORDS_LIMIT", 1500)
    monkeypatch.setattr(personal, "SYSTEMS", {name: personal.SYSTEMS[name] for name in few})
    monkeypatch.setattr(personal, "bloggers", lambda _: people)
    schedule = papers.trained.Schedule(words=1500, dimension=4, marks=(0, 2), rate=0.5, pairs=5)
    small = {"held_out": 20, "draws": (1,), "runs": (1, 2), "trained": ("levels, by age",), "training_runs": (1,)}
    small |= {"margins": (0.0,), "device": (1.0,), "printed_steps": (5,), "sigmas": (5.0,), "printed_runs": (1,)}
    monkeypatch.setattr(personal, "QUICK", personal.Plan(**small, schedule=schedule, resamples=10))
    arguments = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--quick"]
    personal.main(arguments)
    files = sorted((tmp_path / "out").glob("*.jsonl"))
    parts = ["cold_start", "personal", "personal_account", "personal_printed", "personal_training"]
    assert [file.stem for file in files] == parts
    before = [file.read_bytes() for file in files]
    personal.main(arguments)
    assert [file.read_bytes() for file in files] == before
    text = (tmp_path / "out" / "personal.md").read_text(encoding="utf-8")
    for words in ("levels by age", "levels at random", "Predicted levels", "Algorithm 1-b as printed"):
        assert words in text
    assert "| levels, half predicted | 1 / 4 / 16; no stated level: 16 |" in text
