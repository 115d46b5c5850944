"""Reports on a synthetic corpus: their contents, the numbers for the owner only, and noise that is missing."""

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.methods.corpus import Corpus, check_noise
from dptext.noise.gaussian_sums import CELL, count_off_grid, grid_step, noisy_matrix
from dptext.privacy.randomness import RandomBits
from dptext.release.release import statement_path
from dptext.reports.summary import answers, recommendation
from dptext.synthesis import synthesizer
from repeated import same_draws
from reports.corpora import SECRET, edit, make

pytest.importorskip("sklearn")
MORE = "More was measured with the original texts; those numbers are the owner's and not on this card.\n\n"


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
    """A report on the release and public data."""
    return report(folder, public=[folder / "pool.txt"])


@pytest.fixture(scope="module")
def everything(folder):
    """A report with the original and the held-out texts."""
    files = {"original": folder / "in.jsonl", "held_out": folder / "held.jsonl", "public": [folder / "pool.txt"]}
    return report(folder, **files, user="who")


@pytest.mark.usefixtures("same_draws")
def test_a_model_of_the_corpus_is_compared_with_every_baseline(everything):
    assert not everything.refuted and everything.has_owner_numbers
    result = {entry.name.partition(":")[0]: entry for entry in everything.utility}
    assert [(name, entry.is_rival) for name, entry in result.items()] == [
        ("trained on the corpus", False),
        ("trained on original texts", False),
        ("the release alone", True),
        ("the nearest label name", True),
        ("random texts of the pool, labelled by the release", True),
    ]
    assert all(entry.owner_only and entry.detail.startswith("macro-F1 ") for entry in everything.utility)
    assert min(entry.score.value for entry in everything.utility) > 0.9  # names of labels lie among their words
    assert "60 texts; tested on 200 held-out texts" in result["trained on the corpus"].detail
    assert [name for name, entry in result.items() if entry.lead] == [*result][4:]
    topics = {answer.topic: answer for answer in answers(everything)["utility"]}
    assert "A model trained on original texts is right for" in topics["use"].words
    assert topics["selection"].words.startswith("Selection did not help: a model")


def test_membership_is_attacked_and_compared_with_the_bound_of_the_noise(everything, alone):
    assert [attack.attack for attack in everything.attacks] == ["membership (knows everybody else)"]
    [bound] = alone.attacks
    assert bound.score.low == bound.score.high > 0.5
    measured = everything.owner_attacks
    assert [entry.attack for entry in measured] == ["membership (guesses the others)"] * 4
    assert all(entry.detail.startswith("at most 0.") for entry in measured)
    assert "200 members, 50 others" in measured[0].detail


def test_shared_numbers_do_not_depend_on_the_originals(everything, alone):
    assert not alone.has_owner_numbers and alone.utility == []
    assert alone.corpus == everything.corpus == Corpus(texts=60, pool=512)
    assert "This page is for the owner" in everything.html() and "This page is for the owner" not in alone.html()
    card = everything.card()
    assert MORE in card and alone.card() == card.replace(MORE, "")
    for word in ("held", "trained on", "guesses the others", "private/"):
        assert word not in card
    for entry in (everything, alone):
        assert SECRET not in entry.html() + entry.card()


@pytest.mark.usefixtures("same_draws")
def test_a_corpus_without_labels_pool_or_users_gets_notes(folder):
    make(folder, "plain.jsonl", columns=(), n=40)
    result = report(folder, "plain.jsonl", original=folder / "in.jsonl", held_out=folder / "held.jsonl")
    assert result.utility == [] and not result.refuted
    for words in ("no labels", "no column names them", "not compared with the public pool", "name the column of users"):
        assert any(words in note for note in result.notes), words
    notes = report(folder, label="topic").notes
    assert "No model was trained: name real texts to test it on (--original)." in notes


@pytest.mark.slow
@pytest.mark.usefixtures("same_draws")
def test_two_columns_of_labels_are_classes_together(folder):
    make(folder, "two.csv", columns=("topic", "stars"), n=60, unit="document", epsilon=8.0)
    result = report(folder, "two.csv", public=[folder / "pool.txt"], original=folder / "in.jsonl")
    assert not result.refuted
    assert result.utility[0].name == "trained on the corpus"
    assert "the other half of the original texts" in result.utility[0].detail
    assert any("was not attacked: no file of people" in note for note in result.notes)


# -- noise ---------------------------------------------------------------------------------------------------------

BROKEN = {
    "no noise": lambda cells, _sigma, _bits: cells * CELL,
    "floating-point noise": lambda cells, sigma, bits: cells * CELL + sigma * bits.normal(*cells.shape),
    "no noise, on the grid": lambda cells, sigma, _bits: np.rint(cells * CELL / grid_step(sigma)) * grid_step(sigma),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_release_without_its_noise_is_refuted(name, tmp_path, monkeypatch):
    """By the grid; with the original texts, also if its numbers were rounded to the grid."""
    monkeypatch.setattr(synthesizer, "noisy_matrix", BROKEN[name])
    output = make(tmp_path)
    owner = {"original": tmp_path / "in.jsonl", "user": "who"}
    for options in {}, owner, {**owner, "held_out": tmp_path / "held.jsonl"}:
        result = dptext.report(output, seed=1, **options)
        failed = {check.name for check in result.checks if check.passed is False}
        of_grid, of_noise = name != "no noise, on the grid", bool(options) and name != "floating-point noise"
        assert ("the numbers lie on the grid of the stated noise" in failed) == of_grid
        assert ("the noise has the stated distribution" in failed) == of_noise
        assert result.refuted == (of_grid or of_noise)
        assert recommendation(result, to_recipient=True).good is (False if result.refuted else None)
        assert "the guarantee was refuted" in result.card() or "cannot show that this noise" in result.card()


def test_a_false_statement_is_refuted_and_an_honest_release_is_consistent(tmp_path, alone, everything):
    output = make(tmp_path)
    edit(statement_path(output), sigma=0.9)
    false = dptext.report(output, seed=1)
    assert false.refuted and "NO: the guarantee was refuted" in false.html()
    for result in (alone, everything):
        [answer] = [entry for entry in answers(result)["guarantee"] if entry.topic == "held"]
        assert answer.words.startswith("CONSISTENT: the stated noise is sufficient for the guarantee. The file cannot")
        assert answer.good is None
    [noise] = [check for check in everything.checks if check.owner_only]
    assert noise.passed is None and "too few numbers for a conclusion" in noise.detail


@pytest.mark.parametrize("scale", [0.9, 1.0, 1.1])
def test_noise_of_another_scale_is_noticed(scale):
    """Too much of it does not refute a release: the file may be of other people."""
    exact, sigma, count = np.ones((12, 500)), 3.0, 30 if scale == 1 else 3
    for seed in range(count):
        matrix = noisy_matrix((exact / CELL).astype(np.int64), scale * sigma, RandomBits(seed))
        assert count_off_grid(matrix, scale * sigma) == 0
        assert check_noise(matrix, exact, sigma).passed is {0.9: False, 1.0: True, 1.1: None}[scale]
        assert check_noise(matrix, exact + sigma, sigma).passed is (False if scale == 0.9 else None)
    laplace = sigma / np.sqrt(2) * np.log(RandomBits(1).uniform(6000) / RandomBits(2).uniform(6000)).reshape(12, 500)
    assert check_noise(exact + laplace, exact, sigma).passed is False


def test_noise_that_is_missing_in_a_part_or_shared_is_noticed():
    exact, sigma = np.ones((4, 300)), 3.0
    matrix = noisy_matrix((exact / CELL).astype(np.int64), sigma, RandomBits(1))
    assert check_noise(matrix, exact, sigma).passed is True
    without_counts, shared = matrix.copy(), matrix.copy()
    without_counts[:, 0] = 1.0
    shared[:] = matrix[0]
    assert check_noise(without_counts, exact, sigma).passed is False
    assert check_noise(shared, exact, sigma).passed is False
    few = check_noise(matrix[:3, :7], exact[:3, :7], sigma)
    assert few.passed is None and "too few numbers" in few.detail
    assert check_noise(exact[:3, :7], exact[:3, :7], sigma).passed is False


def test_unsuitable_options_are_refused(folder, tmp_path):
    for options, message in [
        ({"label": "who"}, r"only labels \(topic\): omit other columns"),
        ({"label": "topic", "attribute": "stars"}, "omit other columns"),
        ({"held_out": folder / "held.jsonl"}, "held_out needs original"),
        ({"original": folder / "in.jsonl", "held_out": folder / "in.jsonl"}, "must be different"),
        ({"name": "made.jsonl.distribution"}, "is a folder of dptext: name a private file"),
    ]:
        with pytest.raises(ParameterError, match=message):
            report(folder, **options)
    output = tmp_path / "made.jsonl"
    output.write_bytes((folder / "made.jsonl").read_bytes())
    statement_path(output).write_bytes(statement_path(folder / "made.jsonl").read_bytes())
    alone = dptext.report(output, original=folder / "in.jsonl", seed=1)
    assert any("(OUT.distribution) was not named" in note for note in alone.notes)
    assert not alone.refuted and alone.corpus == Corpus(texts=60, pool=512) and alone.utility == []
    assert [bound.score for bound in alone.attacks] == [bound.score for bound in report(folder).attacks]
    assert not dptext.report(output, distribution=folder / "made.jsonl.distribution", seed=1).refuted
