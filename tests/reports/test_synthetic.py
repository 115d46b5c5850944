"""A page about a synthetic corpus: what is on it, what is the owner's alone, and no text of who was described."""

import re
from importlib.util import find_spec

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.evaluation.corpus_quality import MEASURES
from dptext.methods.checks import check_noise
from dptext.noise.gaussian_sums import CELL, count_off_grid, grid_step, noisy_matrix
from dptext.privacy.randomness import RandomBits
from dptext.release.release import statement_path
from dptext.reports.summary import answers, recommendation
from dptext.synthesis import synthesizer
from repeated import same_draws
from reports.corpora import SECRET, edit, make

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    with same_draws():
        make(folder)
    return folder


def report(folder, name="made.jsonl", **more):
    return dptext.report(folder / name, seed=1, **more)


@pytest.fixture(scope="module")
def alone(folder):
    """What anybody can make."""
    return report(folder, public=[folder / "pool.txt"], command="dptext report made.jsonl")


@pytest.fixture(scope="module")
def everything(folder):
    """What the owner can make."""
    return report(
        folder,
        public=[folder / "pool.txt"],
        original=folder / "in.jsonl",
        held_out=folder / "held.jsonl",
        user="who",
        command="dptext report made.jsonl --original private/in.jsonl --held-out private/held.jsonl",
    )


def headings(report):
    return re.findall(r"<h2>(.*?)</h2>", report.html())


@pytest.mark.usefixtures("same_draws")
def test_a_page_of_the_owner_holds_all_of_it(everything):
    assert not everything.refuted
    assert everything.has_owner_numbers
    assert headings(everything) == [
        "Recommendation",
        "Guarantee",
        "Attacks",
        "Utility",
        "Details",
    ]
    assert "This page is for the owner of the data" in everything.html()


def test_a_model_of_the_corpus_stands_beside_every_trivial_way(everything):
    result = {entry.name.partition(":")[0]: entry for entry in everything.utility}
    assert list(result) == [
        "trained on the corpus",
        "trained on original texts",
        "trained on original texts, as many as the corpus has",
        "the release alone",
        "the nearest label name",
        "random texts of the pool, labelled by the release",
        "random texts of the pool, labelled by label names",
        "the corpus with its labels shuffled",
    ]
    assert [entry.is_rival for entry in everything.utility] == [False] * 3 + [True] * 5
    assert all(entry.owner_only for entry in everything.utility)
    assert result["trained on the corpus"].score.value > 0.9
    assert result["the release alone"].score.value > 0.9
    for name in ("the nearest label name", "random texts of the pool, labelled by label names"):
        assert result[name].score.value > 0.9  # the names lie among their words here
    assert result["the corpus with its labels shuffled"].score.value < result["trained on the corpus"].score.value
    assert "tested on 200 held-out texts" in result["trained on the corpus"].detail
    assert [entry.texts for entry in everything.utility] == [60, 400, 60, None, None, 60, 60, 60]
    assert [name for name, entry in result.items() if entry.lead] == [
        "the release alone",
        "random texts of the pool, labelled by the release",
    ]
    parameters = {answer.topic: answer for answer in answers(everything)["utility"]}
    assert "A model trained on as many original texts (60) is right for" in parameters["use"].words
    assert parameters["selection"].words.startswith("Selecting texts adds nothing that this test shows: a model")
    assert "compared with" in parameters["selection"].words
    assert all(entry.detail.startswith("macro-F1 ") for entry in everything.utility)


def test_who_is_in_it_is_attacked_beside_what_the_noise_allows(everything, alone):
    assert [attack.attack for attack in everything.attacks] == ["membership (knows everybody else)"]
    [best] = alone.attacks
    assert best.score.low == best.score.high > 0.5
    measured = everything.owner_attacks
    assert {entry.attack for entry in measured} == {"membership (guesses the others)"}
    assert len(measured) == 4
    assert all(entry.detail.startswith("at most 0.") for entry in measured)
    assert "200 members, 50 others" in measured[0].detail


def test_what_is_shown_of_the_texts(everything):
    corpus = everything.corpus
    assert (corpus.texts, corpus.pool, corpus.more_labels) == (60, 512, 0)
    assert {label.name for label in corpus.labels} == {"drinks", "rules"}
    assert sum(label.count for label in corpus.labels) == 60
    assert all(label.real == 0.5 and len(label.samples) == 3 for label in corpus.labels)
    rows = {entry.name: entry for entry in corpus.spread}
    assert rows["distinct texts"].corpus == "60 of 60"
    assert rows["share of the pool that is used"].corpus == f"{100 * 60 / 512:.1f}%"
    measures = [name for name in MEASURES if name != "MAUVE" or find_spec("mauve")]
    assert [entry.owner_only for entry in corpus.spread] == [False] * 4 + [True] * len(measures)
    rows = {name.partition(":")[0]: entry for name, entry in rows.items()}
    assert [*rows][4:] == measures

    def mean(name, of):
        return float(getattr(rows[name], of).partition(" ± ")[0])

    assert mean("precision", "pool") < mean("precision", "corpus") < mean("precision", "real")
    assert mean("distinct-2", "corpus") < mean("distinct-2", "real")  # which name a secret
    assert "5 draws of 60 texts: mean" in rows["precision"].detail


def test_without_originals_the_page_is_for_everybody(alone):
    assert not alone.has_owner_numbers
    assert alone.utility == []
    assert all(label.real is None for label in alone.corpus.labels)
    assert not any(entry.real or entry.owner_only for entry in alone.corpus.spread)
    assert "This page is for the owner" not in alone.html()


def test_the_card_is_the_same_whether_originals_had_a_part_or_not(everything, alone):
    """Not even the draws of what may be shared follow from how many original rows there are."""
    shared, owned = alone.card(), everything.card()
    assert "more was measured" in owned.lower()
    more = "More was measured with the original texts; those numbers are the owner's and not on this card.\n\n"
    assert shared == owned.replace(more, "")
    for word in ("Fréchet", "two-sample", "real texts", "held", "trained on", "guesses the others", "private/"):
        assert word not in owned


def test_no_private_word_is_on_page_or_card(everything, alone):
    for entry in (everything, alone):
        assert SECRET not in entry.html() + entry.card()


@pytest.mark.usefixtures("same_draws")
def test_a_corpus_without_labels(folder):
    make(folder, "plain.jsonl", columns=(), n=40)
    result = report(
        folder,
        "plain.jsonl",
        public=[folder / "pool.txt"],
        original=folder / "in.jsonl",
        held_out=folder / "held.jsonl",
    )
    assert result.utility == []
    assert [label.name for label in result.corpus.labels] == ["all texts"]
    assert any("no labels" in note for note in result.notes)
    assert any("no column names them" in note for note in result.notes)
    assert "<h3>Texts of the corpus</h3>" in result.html()
    assert not result.refuted


@pytest.mark.slow
@pytest.mark.usefixtures("same_draws")
def test_two_columns_of_labels_are_classes_together(folder):
    make(folder, "two.csv", columns=("topic", "stars"), n=60, unit="document", epsilon=8.0)
    result = report(folder, "two.csv", public=[folder / "pool.txt"], original=folder / "in.jsonl")
    assert len(result.corpus.labels) == 6
    assert result.utility[0].name == "trained on the corpus"
    assert "the other half of the original texts" in result.utility[0].detail
    assert any("was not attacked: --held-out" in note for note in result.notes)
    assert not result.refuted


def test_without_the_pool_it_is_not_compared_with_it(folder):
    result = report(folder)
    assert not any(entry.pool for entry in result.corpus.spread)
    assert any("not compared with the public pool" in note for note in result.notes)
    assert "public pool</th>" not in result.html()


def test_its_own_label_may_be_named(folder):
    result = report(folder, label="topic")
    assert "No model was trained: name real texts to test it on (--original)." in result.notes


def test_a_promise_that_does_not_hold_is_on_top(folder, tmp_path):
    output = make(tmp_path)
    edit(statement_path(output), sigma=0.9)
    report = dptext.report(output, seed=1)
    assert report.refuted
    assert "NO: the guarantee was refuted" in report.html()


BROKEN = {
    "no noise": lambda cells, _sigma, _bits: cells * CELL,
    "floating-point noise": lambda cells, sigma, bits: cells * CELL + sigma * bits.normal(*cells.shape),
    "no noise, on the grid": lambda cells, sigma, _bits: np.rint(cells * CELL / grid_step(sigma)) * grid_step(sigma),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_release_without_its_noise_is_refuted(name, tmp_path, monkeypatch):
    """On the grid, by the grid; with the original, also if its numbers were rounded to the grid."""
    monkeypatch.setattr(synthesizer, "noisy_matrix", BROKEN[name])
    output = make(tmp_path)
    owner = {"original": tmp_path / "in.jsonl", "user": "who"}
    for options in {}, owner, {**owner, "held_out": tmp_path / "held.jsonl"}:
        report = dptext.report(output, seed=1, **options)
        failed = {check.name for check in report.checks if check.passed is False}
        of_grid, of_noise = name != "no noise, on the grid", bool(options) and name != "floating-point noise"
        assert ("the numbers lie on the grid of the stated noise" in failed) == of_grid
        assert ("the noise has the stated distribution" in failed) == of_noise
        assert report.refuted == (of_grid or of_noise)
        decision = recommendation(report, to_recipient=True)
        assert decision.good is (False if report.refuted else None)
        assert "the guarantee was refuted" in report.card() or "cannot show that this noise" in report.card()


def test_an_honest_release_is_consistent_and_too_few_numbers_show_no_more(folder, alone, everything):
    [expected] = [answer for answer in answers(alone)["guarantee"] if answer.topic == "held"]
    assert expected.words.startswith(
        "CONSISTENT: the stated noise is sufficient for the guarantee. The file cannot show"
    )
    assert expected.good is None
    [compared] = [answer for answer in answers(everything)["guarantee"] if answer.topic == "held"]
    assert (compared.words, compared.good) == (expected.words, None)
    [noise] = [check for check in everything.checks if check.owner_only]
    assert noise.passed is None and "too few numbers for a conclusion" in noise.detail
    unnamed = report(folder, original=folder / "in.jsonl")
    assert any("name the column of users" in note for note in unnamed.notes)


@pytest.mark.parametrize("scale", [0.9, 1.0, 1.1])
def test_noise_of_another_scale_is_seen(scale):
    """Too much of it is no proof against a release: the file may be of other people."""
    exact, sigma, count = np.ones((12, 500)), 3.0, 30 if scale == 1 else 3
    for seed in range(count):
        matrix = noisy_matrix((exact / CELL).astype(np.int64), scale * sigma, RandomBits(seed))
        assert count_off_grid(matrix, scale * sigma) == 0
        assert check_noise(matrix, exact, sigma).passed is {0.9: False, 1.0: True, 1.1: None}[scale]
        assert check_noise(matrix, exact + sigma, sigma).passed is (False if scale == 0.9 else None)
    laplace = sigma / np.sqrt(2) * np.log(RandomBits(1).uniform(6000) / RandomBits(2).uniform(6000)).reshape(12, 500)
    assert check_noise(exact + laplace, exact, sigma).passed is False


def test_noise_that_is_missing_in_a_part_or_shared_is_seen():
    exact, sigma = np.ones((4, 300)), 3.0
    matrix = noisy_matrix((exact / CELL).astype(np.int64), sigma, RandomBits(1))
    assert check_noise(matrix, exact, sigma).passed is True
    without_counts, shared = matrix.copy(), matrix.copy()
    without_counts[:, 0] = 1.0
    shared[:] = matrix[0]
    assert check_noise(without_counts, exact, sigma).passed is False
    assert check_noise(shared, exact, sigma).passed is False


def test_few_numbers_conclude_nothing():
    exact, sigma = np.ones((3, 7)), 3.0
    matrix = noisy_matrix((exact / CELL).astype(np.int64), sigma, RandomBits(1))
    assert check_noise(matrix, exact, sigma).passed is None
    assert "too few numbers" in check_noise(matrix, exact, sigma).detail
    assert check_noise(exact, exact, sigma).passed is False


def test_what_a_corpus_has_not_is_refused(folder, tmp_path):
    with pytest.raises(ParameterError, match=r"known \(topic\): leave group and label out"):
        report(folder, label="who", group="stars")
    with pytest.raises(ParameterError, match="leave group out"):
        report(folder, label="topic", group="stars")
    with pytest.raises(ParameterError, match="held_out needs original"):
        report(folder, held_out=folder / "held.jsonl")
    with pytest.raises(ParameterError, match="must be different files"):
        report(folder, original=folder / "in.jsonl", held_out=folder / "in.jsonl")
    with pytest.raises(ParameterError, match="is a description: make a report about a corpus"):
        report(folder, "made.jsonl.distribution")
    output = tmp_path / "made.jsonl"
    output.write_bytes((folder / "made.jsonl").read_bytes())
    statement_path(output).write_bytes(statement_path(folder / "made.jsonl").read_bytes())
    with pytest.raises(DataError, match=r"its description .* is missing"):
        dptext.report(output)
    assert not dptext.report(output, distribution=folder / "made.jsonl.distribution", seed=1).refuted
