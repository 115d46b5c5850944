"""Previews of whole texts: a bank, a synthetic corpus, private vectors."""

import math

import numpy as np
import pytest

from dptext import BankRewriter, Document, MeanOfWords, Synthesizer
from dptext.methods.bank import BankPreviewer
from dptext.methods.synthesis import CorpusPreviewer
from dptext.methods.vectors import VectorPreviewer
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta

TEXT = "the cat and the dog"


@pytest.fixture(scope="module")
def sentences(vectors, samples):
    return BankPreviewer(vectors, samples)


@pytest.fixture(scope="module")
def synthetic(vectors, samples):
    return CorpusPreviewer(vectors, samples)


@pytest.fixture(scope="module")
def private(vectors, samples):
    return VectorPreviewer(vectors, samples)


def show(previewer, text=TEXT, epsilon=2.0, choice="", neighbour=None, draws=3):
    return previewer.show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)


# -- sentences -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_chances_of_texts_are_those_of_the_rewriter(sentences, samples, epsilon):
    result = show(sentences, epsilon=epsilon, neighbour="tax law")
    rewriter = BankRewriter(sentences._bank, epsilon=epsilon, unit="document")
    one, other = rewriter.distributions([TEXT, "tax law"])
    rows = {text: row for row, text in enumerate(sentences._bank.texts)}
    assert all(chance == one[rows[name]] for name, chance in result.pieces[0].replacements)
    assert result.pieces[0].replacements[0][1] == one.max() and result.pieces[0].stays == 0.0
    assert result.neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)
    assert result.neighbours.overlap >= 1 - math.tanh(epsilon / 2) - 1e-12
    for name, first, second in result.neighbours.outcomes[:-1]:
        assert (first, second) == (one[rows[name]], other[rows[name]])
    known = samples.candidates(TEXT)
    assert result.attack.success == pytest.approx(rewriter.relinking(len(known), known), abs=1e-12)
    assert result.guarantee and set(result.draws) <= set(samples.public)


def test_a_text_of_the_bank_may_stay(sentences):
    result = show(sentences, "cat dog", epsilon=10.0)
    rewriter = BankRewriter(sentences._bank, epsilon=10.0, unit="document")
    assert result.pieces[0].stays == rewriter.probabilities("cat dog").max()


# -- a synthetic corpus --------------------------------------------------------------------------------------------


def test_membership_is_the_total_variation_of_the_release(synthetic, vectors):
    """Against a run of the synthesizer itself on one person more, and one fewer."""
    result = show(synthetic, epsilon=2.0)
    synthesizer = Synthesizer(epsilon=2.0, delta=1e-6, features=MeanOfWords(vectors), cache=False)
    plan = synthesizer.plan(synthetic._samples.public)
    people = [Document(text, user=f"user {number}") for number, text in enumerate(synthetic._samples.people)]
    moved = plan.total_of([*people, Document(TEXT, user="one more")]) - plan.total_of(people)
    length = np.linalg.norm(moved.astype(float)) * CELL
    assert length == pytest.approx(1.0, abs=1e-5)
    distance = gaussian_delta(plan.terms.budget.sigma, epsilon=0.0, sensitivity=float(length))
    assert result.neighbours.overlap == pytest.approx(1 - distance, abs=1e-9)
    assert result.attack.success == pytest.approx((1 + distance) / 2, abs=1e-9) and result.attack.chance == 0.5
    assert result.guarantee.startswith("a person") and set(result.draws) <= set(synthetic._samples.public)


def test_chances_of_the_telling_number_add_up(synthetic):
    neighbours = show(synthetic, epsilon=4.0).neighbours
    ones, others = np.array([outcome[1:] for outcome in neighbours.outcomes]).T
    assert ones.sum() == pytest.approx(1.0) and others.sum() == pytest.approx(1.0)
    # the intervals meet at the middle, where the two densities cross
    assert np.minimum(ones, others).sum() == pytest.approx(neighbours.overlap, abs=1e-5)


def test_the_same_text_instead_changes_nothing(synthetic):
    assert show(synthetic, neighbour=TEXT).neighbours.overlap == 1.0
    assert show(synthetic, neighbour="tax law").neighbours.overlap < 1.0


# -- vectors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["PrivUnit", "L2Laplace", "Gaussian"])
def test_private_vectors_overlap_as_much_as_the_guarantee_demands(private, choice):
    result = show(private, epsilon=1.0, choice=choice, neighbour="tax law")
    delta = 1e-6 if choice == "Gaussian" else 0.0
    assert result.neighbours.overlap >= 1 - math.tanh(0.5) - delta - 0.05  # from draws: .05 is 10 standard errors
    assert len(result.points) == 300 and {point.source for point in result.points} == {0, 1}
    assert sum(outcome[1] for outcome in result.neighbours.outcomes) == pytest.approx(1.0)


@pytest.mark.parametrize("choice", ["PrivUnit", "L2Laplace"])
def test_outputs_of_two_inputs_differ_along_the_first_axis(private, choice):
    result = show(private, epsilon=50.0, choice=choice, neighbour="tax law")
    first, second = (np.mean([point.x for point in result.points if point.source == source]) for source in (0, 1))
    assert second > first


def test_the_same_vector_has_the_same_outputs(private):
    assert show(private, choice="PrivUnit", neighbour=TEXT).neighbours.overlap == 1.0


# -- all of them ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "choice", "maximum"),
    [
        ("sentences", "", 20.0),
        ("synthetic", "", 100.0),
        ("private", "PrivUnit", 100.0),
        ("private", "L2Laplace", 400.0),
        ("private", "Gaussian", 400.0),
    ],
)
def test_a_huge_epsilon_reveals_everything_and_a_tiny_one_nothing(request, name, choice, maximum):
    previewer = request.getfixturevalue(name)
    huge = show(previewer, epsilon=maximum, choice=choice, neighbour="tax law")
    assert huge.attack.success > 0.8 and huge.neighbours.overlap < 0.1 and not huge.protects
    tiny = show(previewer, epsilon=0.05, choice=choice, neighbour="tax law")
    assert tiny.attack.success < tiny.attack.chance + 0.05 and tiny.neighbours.overlap > 0.9 and tiny.protects


@pytest.mark.parametrize("name", ["sentences", "synthetic"])
def test_more_epsilon_hides_less(request, name):
    previewer = request.getfixturevalue(name)
    results = [
        show(previewer, epsilon=entry, neighbour="tax law").attack.success for entry in (0.25, 0.5, 1.0, 2.0, 4.0)
    ]
    assert results == sorted(results)
