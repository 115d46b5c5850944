"""Previews of whole texts, their numbers compared with exact values, and all methods with the bundled data."""

import json
import math
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

from dptext import BankRewriter, Document, MeanOfWords, Synthesizer
from dptext.errors import DptextError
from dptext.methods.bank import BankPreviewer
from dptext.methods.preview import largest, log_densities, log_l2_laplace, overlap, sampled_overlap, sampled_success
from dptext.methods.synthesis import CorpusPreviewer
from dptext.methods.vectors import VectorPreviewer
from dptext.noise.discrete import l2_laplace
from dptext.noise.gaussian_sums import CELL
from dptext.playground.server import MAX_CHARACTERS, PREVIEWERS, Playground
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace
from dptext.representations.bounds import Domain
from dptext.representations.privunit import PrivUnit

TEXT = "the cat and the dog"
SECRET = "Zxqvy"


@pytest.fixture(scope="module")
def previewers(vectors, samples):
    kinds = (BankPreviewer, CorpusPreviewer, VectorPreviewer)
    return {kind.key: kind(vectors, samples) for kind in kinds}


def show(previewer, text=TEXT, epsilon=2.0, choice="", neighbour=None, draws=3):
    return previewer.show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)


# -- overlaps and densities ----------------------------------------------------------------------------------------


def test_draws_estimate_the_exact_overlap_and_rate():
    """For Gaussian noise both are known. The 95% interval is tripled here."""
    assert overlap(np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])).value == 0.5
    assert largest(np.array([0.1, 0.4, 0.4, 0.0, 0.2]), 3) == [1, 2, 4]
    bits, distance, sigma = RandomBits(4), 1.3, 0.7
    pair = np.array([[0.0], [distance]])
    outputs = np.repeat(pair, 4000, axis=0) + sigma * bits.normal(8000, 1)
    logs = -np.square(outputs - pair.T) / (2 * sigma**2)
    exact = 1 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance)
    for result, expected in ((sampled_overlap(logs[:, 0] - logs[:, 1]), exact), (sampled_success(logs), 1 - exact / 2)):
        half = (result.high - result.low) / 2
        assert abs(result.value - expected) < 3 * half and half < 0.03
    wrong = -np.square(outputs - pair.T) / (2 * (1.5 * sigma) ** 2)
    assert abs(sampled_overlap(wrong[:, 0] - wrong[:, 1]).value - exact) > 0.05


@pytest.mark.parametrize("randomizer", [PrivUnit(epsilon=3.0), L2Laplace(epsilon=3.0, domain=Domain.SPHERE)])
@pytest.mark.parametrize("dimension", [2, 8])
def test_densities_are_those_of_the_draws(randomizer, dimension):
    """The mean likelihood ratio is 1, and no ratio exceeds e^epsilon. With 20,000 draws the mean is off by at most .1
    (ratios are at most e^3), and a density with 1.5 times the epsilon is detected.
    """
    channel = randomizer.channel(dimension)
    vectors = channel.domain.bound(RandomBits(1).normal(2, dimension))
    outputs = np.asarray(channel.sample(np.repeat(vectors[:1], 20_000, axis=0), RandomBits(2)), dtype=np.float64)
    logs = log_densities(channel, outputs, vectors)
    losses = logs[:, 0] - logs[:, 1]
    assert np.abs(losses).max() <= 3.0 + 1e-6
    assert np.exp(-losses).mean() == pytest.approx(1.0, abs=0.1)
    assert abs(np.exp(-1.5 * losses).mean() - 1.0) > 0.1


def test_densities_of_normal_noise_and_of_noise_on_words():
    channel = Gaussian(epsilon=3.0, delta=1e-5, domain=Domain.SPHERE).channel(3)
    vectors = channel.domain.bound(RandomBits(1).normal(2, 3))
    outputs = np.asarray(channel.sample(np.repeat(vectors, 4000, axis=0), RandomBits(2)), dtype=np.float64)
    distance = float(np.linalg.norm(vectors[0] - vectors[1]))
    logs = log_densities(channel, outputs, vectors)
    exact = 1 - gaussian_delta(channel.parameters()["sigma"], epsilon=0.0, sensitivity=distance)
    assert sampled_overlap(logs[:, 0] - logs[:, 1]).value == pytest.approx(exact, abs=0.03)
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    logs = log_l2_laplace(points[:1] + l2_laplace(RandomBits(3), 20_000, 3, 0.5), points, 0.5)
    assert np.exp(logs[:, 1] - logs[:, 0]).mean() == pytest.approx(1.0, abs=0.1)


# -- each method ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_numbers_of_sentences_are_those_of_the_rewriter(previewers, samples, epsilon):
    previewer = previewers["sentences"]
    result = show(previewer, epsilon=epsilon, neighbour="tax law")
    rewriter = BankRewriter(previewer._bank, epsilon=epsilon, unit="document")
    one, other = rewriter.distributions([TEXT, "tax law"])
    rows = {text: row for row, text in enumerate(previewer._bank.texts)}
    assert all(chance == one[rows[name]] for name, chance in result.pieces[0].replacements)
    assert result.pieces[0].replacements[0][1] == one.max() and result.pieces[0].stays == 0.0
    assert result.neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)
    assert result.neighbours.overlap >= 1 - math.tanh(epsilon / 2) - 1e-12
    for name, first, second in result.neighbours.outcomes[:-1]:
        assert (first, second) == (one[rows[name]], other[rows[name]])
    known = samples.candidates(TEXT)
    assert result.attack.success == pytest.approx(rewriter.relinking(len(known), known), abs=1e-12)
    assert result.guarantee and set(result.draws) <= set(samples.public)
    assert show(previewer, "cat dog", epsilon=epsilon).pieces[0].stays == rewriter.probabilities("cat dog").max()


def test_membership_in_a_corpus_is_the_total_variation_of_the_release(previewers, vectors, samples):
    """Compared with a run of the synthesizer itself on one person more."""
    previewer = previewers["synthetic"]
    result = show(previewer)
    synthesizer = Synthesizer(epsilon=2.0, delta=1e-6, features=MeanOfWords(vectors), cache=False)
    plan = synthesizer.plan(samples.public)
    people = [Document(text, user=f"user {number}") for number, text in enumerate(samples.people)]
    moved = plan.total_of([*people, Document(TEXT, user="one more")]) - plan.total_of(people)
    length = np.linalg.norm(moved.astype(float)) * CELL
    assert length == pytest.approx(1.0, abs=1e-5)
    distance = gaussian_delta(plan.terms.budget.sigma, epsilon=0.0, sensitivity=float(length))
    assert result.neighbours.overlap == pytest.approx(1 - distance, abs=1e-9)
    assert result.attack.success == pytest.approx((1 + distance) / 2, abs=1e-9) and result.attack.chance == 0.5
    assert result.guarantee.startswith("a person") and set(result.draws) <= set(samples.public)
    one, other = np.array([outcome[1:] for outcome in result.neighbours.outcomes]).T
    assert one.sum() == pytest.approx(1.0) and other.sum() == pytest.approx(1.0)
    # the intervals meet in the middle, where the two densities cross
    assert np.minimum(one, other).sum() == pytest.approx(result.neighbours.overlap, abs=1e-5)
    assert (
        show(previewer, neighbour=TEXT).neighbours.overlap == 1.0 > show(previewer, neighbour="law").neighbours.overlap
    )


@pytest.mark.parametrize("choice", VectorPreviewer.choices)
def test_private_vectors_overlap_as_much_as_the_guarantee_demands(previewers, choice):
    result = show(previewers["vectors"], epsilon=1.0, choice=choice, neighbour="tax law")
    delta = 1e-6 if choice == "Gaussian" else 0.0
    assert result.neighbours.overlap >= 1 - math.tanh(0.5) - delta - 0.05  # from draws: .05 is 10 standard errors
    assert len(result.points) == 300 and {point.source for point in result.points} == {0, 1}
    assert sum(outcome[1] for outcome in result.neighbours.outcomes) == pytest.approx(1.0)
    assert show(previewers["vectors"], choice=choice, neighbour=TEXT).neighbours.overlap == 1.0
    points = show(previewers["vectors"], epsilon=50.0, choice=choice, neighbour="tax law").points
    first, second = (np.mean([point.x for point in points if point.source == source]) for source in (0, 1))
    assert second > first


@pytest.mark.parametrize(
    ("name", "choice", "maximum"),
    [
        ("sentences", "", 20.0),
        ("synthetic", "", 100.0),
        ("vectors", "PrivUnit", 100.0),
        ("vectors", "L2Laplace", 400.0),
        ("vectors", "Gaussian", 400.0),
    ],
)
def test_a_larger_epsilon_hides_less(previewers, name, choice, maximum):
    epsilons = (0.05, *((0.25, 0.5, 1.0, 2.0, 4.0) if name != "vectors" else ()), maximum)
    results = [show(previewers[name], epsilon=entry, choice=choice, neighbour="tax law") for entry in epsilons]
    tiny, *_, huge = results
    assert huge.attack.success > 0.8 and huge.neighbours.overlap < 0.1 and not huge.protects
    assert tiny.attack.success < tiny.attack.chance + 0.05 and tiny.neighbours.overlap > 0.9 and tiny.protects
    successes = [result.attack.success for result in results]
    assert successes == sorted(successes)


# -- all methods, with the bundled vectors and texts ---------------------------------------------------------------


@pytest.fixture(scope="module")
def playground():
    return Playground()


@pytest.mark.parametrize("method", PREVIEWERS)
def test_every_choice_works_at_both_ends_of_its_slider(playground, method):
    title, text = playground.samples[0]
    assert title and len(playground.samples) >= 5
    for choice in PREVIEWERS[method].choices:
        for epsilon in PREVIEWERS[method].epsilons[:2]:
            result = playground.show(method, text, epsilon, choice, draws=2)
            assert (result.method, result.epsilon, len(result.draws)) == (method, epsilon, 2)
            assert 0 <= result.neighbours.overlap <= 1
            assert result.attack.chance - 0.05 <= result.attack.success <= 1
            assert json.loads(json.dumps(asdict(result), allow_nan=False))["guarantee"] == result.guarantee


@pytest.mark.parametrize("method", PREVIEWERS)
def test_any_text_is_shown_unchanged_and_not_kept(playground, method):
    for text in (
        "!!!",
        "\x00\x07\x1b[31m <script>alert(1)</script>",
        "東京は 12 です 🎉 مرحبا بالعالم",
        "x" * MAX_CHARACTERS,
        "don't l'ami me@x.org @you http://a.b 12",
        "  x\n\n y \u202etest\u0301" * 20,
        f"{SECRET} {method}",
    ):
        result = playground.show(method, text, 4.0, draws=1)
        assert "".join(piece.text for piece in result.pieces) == text
        playground.show(method, "other text", 4.0, neighbour=text, draws=1)
    assert SECRET not in repr(_strings(playground))
    playground.secret = SECRET  # the positive control
    assert SECRET in repr(_strings(playground))
    del playground.secret


def _strings(thing, seen=None):
    """All strings that an object refers to, apart from other libraries' objects."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, (type, int, float, bytes)):
        return []
    seen[id(thing)] = thing  # kept, so that no other object gets its id
    if isinstance(thing, str):
        return [thing]
    if isinstance(thing, dict):
        return [entry for pair in thing.items() for part in pair for entry in _strings(part, seen)]
    if isinstance(thing, (list, tuple, set, frozenset)):
        return [entry for part in thing for entry in _strings(part, seen)]
    if type(thing).__module__.startswith("dptext"):
        slots = {name: getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())}
        return _strings({**getattr(thing, "__dict__", {})}, seen) + _strings(slots, seen)
    return []


def test_invalid_arguments_are_refused_without_the_text(playground):
    for change in (
        {"text": " \n"},
        {"text": SECRET * MAX_CHARACTERS},
        {"text": SECRET + "\ud800"},
        {"text": [SECRET]},
        {"neighbour": ""},
        {"neighbour": SECRET * MAX_CHARACTERS},
        {"method": "letters"},
        {"choice": "Synthesizer"},
        *({"epsilon": epsilon} for epsilon in (0.0, 1e9, float("nan"), "many")),
        {"draws": 0},
        {"draws": 10**6},
    ):
        with pytest.raises(DptextError) as error:
            playground.show(**{"method": "words", "text": f"{SECRET} text", "epsilon": 4.0} | change)
        assert SECRET not in str(error.value), change


def test_dptext_does_not_import_the_playground():
    code = "import dptext, sys; sys.exit(any(name.startswith('dptext.playground') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
