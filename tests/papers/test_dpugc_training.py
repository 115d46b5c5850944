"""Part two of papers/dpugc on made-up texts: what is trained, what the paper's deltas are, and what is said of it."""

import gzip
import math
import zipfile

import numpy as np
import pytest
from papers.dpugc.neighbours import PAPER_QUERIES

import dptext
from dptext.errors import DataError
from dptext.privacy.gaussian import SampledGaussian

PAPERS = (
    "dpugc.compare",
    "dpugc.corpus",
    "dpugc.published",
    "dpugc.trained",
    "dpugc.training",
    "dpugc.training_report",
    "made_up_users",
)


@pytest.fixture(scope="module")
def documents(glove):
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 300, (60, 40))
    return [dptext.Document(" ".join(glove.words[row] for row in entry), user=str(n)) for n, entry in enumerate(rows)]


# -- texts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", ["text8", "text8.zip", "text8.gz"])
def test_text8_is_cut_into_users_of_equal_length_in_its_order(papers, tmp_path, monkeypatch, packed):
    words = [f"w{place}" for place in range(25)]
    text = " " + " ".join(words)
    if packed == "text8.zip":
        with zipfile.ZipFile(tmp_path / packed, "w") as archive:
            archive.writestr("text8", text)
    else:
        content = text.encode("ascii")
        (tmp_path / packed).write_bytes(gzip.compress(content) if packed == "text8.gz" else content)
    blocks = papers.made_up_users._blocks
    monkeypatch.setattr(papers.made_up_users, "_blocks", lambda path: blocks(path, size=7))  # words across blocks
    result = list(papers.made_up_users.text8_users(tmp_path, words=10))
    assert result == list(papers.made_up_users.text8_users(tmp_path / packed, words=10))
    assert [entry.user for entry in result] == ["0", "1", "2"]
    assert [len(entry.text.split()) for entry in result] == [10, 10, 5]
    assert " ".join(entry.text for entry in result).split() == words


def test_wikitext_has_a_user_a_paragraph(papers, tmp_path):
    lines = [" ", " = Title = ", " A <unk> paragraph . ", "", " = = Part = = ", " Another one . "]
    (tmp_path / "wiki.train.tokens").write_text("\n".join(lines), encoding="utf-8")
    result = list(papers.made_up_users.wikitext_users(tmp_path))
    assert [entry.text.split() for entry in result] == [["A", "paragraph", "."], ["Another", "one", "."]]
    assert len({entry.user for entry in result}) == 2


@pytest.mark.parametrize("name", ["text8_users", "wikitext_users", "imdb_users"])
def test_missing_texts_are_named(papers, tmp_path, name):
    with pytest.raises(DataError, match="expected one of"):
        next(papers.made_up_users.__dict__[name](tmp_path))


# -- the paper's deltas ----------------------------------------------------------------------------------------


def test_the_printed_deltas_are_those_of_the_vocabulary_as_the_number_of_examples(papers):
    published = papers.published
    rate = published.LOT / published.VOCABULARY
    for steps, printed in published.PRINTED.items():
        result, _ = published.moments_delta(steps, rate=rate, sigma=5.0, epsilon=0.125, orders=32)
        assert result == pytest.approx(printed, abs=7e-5), steps
    of_text8, order = published.moments_delta(
        100_000, rate=published.LOT / published.TEXT8_PAIRS, sigma=5.0, epsilon=0.125, orders=32
    )
    assert of_text8 == pytest.approx(math.exp(-32 * 0.125), rel=1e-4)  # no loss: all of it is the largest order
    assert order == 32


def test_the_loss_of_one_pair_is_that_of_a_poisson_sample_and_a_user_loses_more(papers):
    costs = papers.published.measure_costs
    steps = 10_000
    one = costs({"of": "a pair of 50,000", "steps": steps}, 1)
    account = SampledGaussian(noise_multiplier=5.0, sampling_rate=128 / 50_000, steps=steps)
    assert one["epsilon"] == pytest.approx(account.epsilon(delta=1e-6), rel=5e-3)
    assert one["delta"] < one["moments delta"] / 100  # the accountant's bound, not the training's loss
    pair, user = (costs({"of": f"a {of}", "steps": steps}, 1) for of in ("pair of text8", "user of myPersonality"))
    assert user["epsilon"] > 10 * pair["epsilon"]


# -- trainings -------------------------------------------------------------------------------------------------


def test_vectors_after_the_last_step_are_those_of_the_library(papers, documents, glove, tmp_path):
    public = dptext.load_vectors((glove.words[:300], glove.matrix[:300]))
    schedule = papers.trained.Schedule(words=300, dimension=8, marks=(0, 2, 5), rate=0.5, pairs=20, pair_marks=(3,))
    with papers.trained.Trainings(public, papers.corpus.Corpus("x", documents), schedule, tmp_path) as trainings:
        start, middle, end = (trainings.vectors("private", 8.0, mark, 1) for mark in schedule.marks)
        assert trainings.spent("private", 8.0, 0)["spent"] == 0
        assert 0 < trainings.spent("private", 8.0, 2)["spent"] < trainings.spent("private", 8.0, 5)["spent"] <= 8
        less = trainings.vectors("simulated: 100 times the people", 8.0, 5, 1)
        clipped = trainings.vectors("clipped", None, 5, 1)
    model = dptext.SkipGram(
        public, dimension=8, epsilon=8.0, steps=5, sampling_rate=0.5, pairs=20, public_users=60, distance=1000, seed=1
    )
    model.fit(documents)
    assert np.array_equal(end.matrix, model.vectors_.matrix)
    assert not np.array_equal(start.matrix, middle.matrix)
    far, near = (np.abs(entry.matrix - clipped.matrix).max() for entry in (end, less))
    assert near < far / 3  # a hundredth of the noise, but other gradients after it, and at this rate they matter
    assert len(list(tmp_path.iterdir())) == 3  # each training is made once


def test_a_run_is_gone_on_with_and_reported(papers, documents, glove, tmp_path, monkeypatch, capsys):
    training = papers.training
    schedule = papers.trained.Schedule(words=2000, dimension=4, marks=(0, 2), rate=0.5, pairs=5, pair_marks=(0, 3))
    trained = (("plain", None, 2), ("private", 8.0, 2), ("private pairs", 8.0, 1))
    plan = training.Plan(schedules={"text8": schedule}, trained=trained, pairs={"text8": 5}, runs=(1, 2), resamples=10)
    monkeypatch.setattr(training, "Plan", lambda: plan)
    monkeypatch.setattr(training, "TESTED", ("MEN",))
    monkeypatch.setattr(training, "WORDS_LIMIT", 2000)
    data = tmp_path / "data"
    (data / "wordsim").mkdir(parents=True)
    (data / "text8").write_text(" ".join(document.text for document in documents) + " three", encoding="ascii")
    pairs = [f"{glove.words[n]} {glove.words[n + 1]} {n % 7}" for n in range(40)]
    (data / "wordsim" / "EN-MEN-TR-3k.txt").write_text("\n".join(pairs), encoding="utf-8")
    monkeypatch.setattr(training, "text8_users", lambda where: papers.made_up_users.text8_users(where, words=40))
    arguments = ["--data", str(data), "--out", str(tmp_path / "out"), "--parts", "steps"]
    arguments += ["--corpora", "--text8", str(data / "text8")]
    training.main(arguments)
    rows = (tmp_path / "out" / "steps_text8.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 2 + 4 + 2  # its head; plain but for the gold model; private; pairs
    training.main(arguments)
    assert (tmp_path / "out" / "steps_text8.jsonl").read_text(encoding="utf-8").splitlines() == rows
    text = (tmp_path / "out" / "training.md").read_text(encoding="utf-8")
    assert "MAP-Word, text8, noise for users" in text
    assert "no guarantee" in text
    assert (tmp_path / "out" / "training.png").exists()
    assert len(PAPER_QUERIES) == 11
    capsys.readouterr()


def test_nothing_to_report_is_said(papers, tmp_path):
    with pytest.raises(DataError, match="no rows"):
        papers.training_report.write_report(tmp_path, readme=None)
