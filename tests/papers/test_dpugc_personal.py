"""Part three of papers/dpugc on made-up bloggers: who wants what, what is promised, and what is said of it."""

import numpy as np
import pytest
from papers.dpugc.semantic import LISTS

from dptext.errors import ParameterError

PAPERS = ("dpugc.personal", "dpugc.personal_report", "dpugc.trained", "dpugc.levels", "blogs")


@pytest.fixture(scope="module")
def people(papers, glove):
    """The older, the more of the later words."""
    generator = np.random.default_rng(3)
    result = []
    for place in range(60):
        age = 13 + place // 2
        rows = 400 + 30 * (age - 13) + generator.integers(0, 120, 60)
        posts = (" ".join(glove.words[row] for row in rows),)
        sign = ("Leo", "Virgo")[place % 2]
        result.append(papers.blogs.Blogger(str(place), "male", age, "indUnk", sign, posts))
    return result


@pytest.fixture
def data(tmp_path, glove):
    (tmp_path / "wordsim").mkdir()
    generator = np.random.default_rng(1)
    for file in LISTS.values():
        pairs = generator.integers(400, 1400, (300, 2))
        lines = [f"{glove.words[one]}\t{glove.words[other]}\t{generator.random():.2f}" for one, other in pairs]
        (tmp_path / "wordsim" / file).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_levels_have_the_shares_of_the_study_and_follow_the_age_or_nothing(papers, people):
    assignments = papers.levels
    by_age, by_chance = (assignments.assign_levels(people, by) for by in assignments.BY)
    for result in (by_age, by_chance):
        levels = list(result.levels.values())
        assert {name: levels.count(name) for name in assignments.LEVELS} == {
            "conservative": 32,
            "moderate": 23,
            "liberal": 5,
        }
        assert sorted(result.concerns.values())[0] == 0.5 / 60
    ages = {person.user: person.age for person in people}
    oldest_liberal = max(ages[user] for user, level in by_age.levels.items() if level == "liberal")
    assert oldest_liberal <= min(ages[user] for user, level in by_age.levels.items() if level == "moderate")
    assert by_age.levels != by_chance.levels
    with pytest.raises(ValueError, match="by must be one of"):
        assignments.assign_levels(people, "sign")


def test_cold_start_learns_what_texts_tell_and_nothing_of_chance(papers, people):
    cold = papers.levels.ColdStart(people[::2], people[1::2], people, resamples=20)
    cells = {
        (by, source): cold.cell({"by": by, "source": source, "margin": 0.0, "epsilon": epsilon}, 1)
        for by in papers.levels.BY
        for source, epsilon in (("public profile", None), ("texts", None), ("device", 1.0), ("vector", 16.0))
    }
    assert len({frozenset(cell) for cell in cells.values()}) == 1
    assert cells["age", "texts"]["of the mean"] < 0.8
    assert cells["chance", "texts"]["of the mean"] > 0.8
    for cell in cells.values():
        assert cell["right"] + cell["too much"] + cell["too little"] == pytest.approx(1)
    assert cells["age", "device"]["right"] < cells["age", "texts"]["right"]  # it is drawn
    blind = cold.cell({"by": "age", "source": "vector", "margin": 0.0, "epsilon": 0.1}, 1)
    assert blind["of the mean"] > cells["age", "vector"]["of the mean"]
    margin = cold.cell({"by": "age", "source": "texts", "margin": 0.5, "epsilon": None}, 1)
    assert margin["too much"] <= cells["age", "texts"]["too much"]
    assert set(cold.guessed_levels("age")) == {person.user for person in people[1::2]}


def test_what_systems_promise(papers):
    systems = papers.personal.SYSTEMS
    assert [systems["levels, by age"].epsilon_of(level) for level in papers.levels.LEVELS] == [1.0, 4.0, 16.0]
    assert systems["the liberal alone, by age"].epsilon_of("moderate") == 0.0
    assert systems["no noise"].epsilon_of("liberal") == float("inf")
    assert {systems[f"levels, by {by}"].max_epsilon for by in papers.levels.BY} == {
        systems["the largest for all"].max_epsilon
    }


def test_the_experiment_runs_goes_on_and_is_reported(papers, people, data, tmp_path, monkeypatch):
    personal = papers.personal
    monkeypatch.setattr(personal, "WORDS_LIMIT", 1500)
    few = ("the least for all", "levels, by age", "levels, half guessed, by age", "no noise", personal.COMMON)
    monkeypatch.setattr(personal, "SYSTEMS", {name: personal.SYSTEMS[name] for name in few})
    schedule = papers.trained.Schedule(words=1500, dimension=4, marks=(0, 2), rate=0.5, pairs=5)
    plan = personal.Plan(
        held_out=20,
        draws=(1,),
        runs=(1, 2),
        trained=("levels, by age",),
        training_runs=(1,),
        margins=(0.0,),
        device=(1.0,),
        schedule=schedule,
        printed_steps=(5,),
        sigmas=(5.0,),
        printed_runs=(1,),
        resamples=10,
    )
    monkeypatch.setattr(personal, "Plan", lambda: plan)
    monkeypatch.setattr(personal, "bloggers", lambda _: people)
    readme = tmp_path / "README.md"
    report = papers.personal_report
    readme.write_text(f"before\n{report.START}\n{report.END}\nafter\n")
    arguments = ["--data", str(data), "--out", str(tmp_path / "out")]
    personal.main(arguments)
    files = sorted((tmp_path / "out").glob("*.jsonl"))
    more = ["personal_account", "personal_printed", "personal_training"]
    assert [file.stem for file in files] == ["cold_start", "personal", *more]
    before = [file.read_bytes() for file in files]
    personal.main(arguments)
    assert [file.read_bytes() for file in files] == before
    text = (tmp_path / "out" / "personal.md").read_text(encoding="utf-8")
    for words in ("levels by age", "levels at random", "Predicted levels", "Algorithm 1-b as printed"):
        assert words in text
    assert "| levels, half predicted | 1 / 4 / 16; no stated level: 16 |" in text
    report.write_report(tmp_path / "out", readme=readme)
    assert text.strip() in readme.read_text(encoding="utf-8")


def test_a_policy_is_refused_without_its_parts(papers):
    with pytest.raises(ParameterError):
        papers.levels.policy_of(None)
