"""Shares of categories named after a release: exact without noise, intervals that cover, misfits that are noticed."""

import math

import numpy as np
import pytest
from scipy.stats import binom, f

import dptext
from dptext.errors import DataError, ParameterError
from dptext.synthesis import questions
from dptext.synthesis.moments import COUNT_WEIGHT
from dptext.synthesis.questions import FALSE_ALARMS, _f_tail, read_shares

RUNS, CLASSES, SIZE = 300, 3, 16
CENTRES = 0.3 * np.eye(SIZE)[:: SIZE // CLASSES][:CLASSES]
SPREAD = np.linspace(0.25, 0.02, SIZE)


def texts(generator, counts, centres=CENTRES):
    return [
        centre + SPREAD * generator.normal(size=(count, SIZE)) for centre, count in zip(centres, counts, strict=True)
    ]


def release(generator, counts, sigma, centres=CENTRES):
    private = np.concatenate(texts(generator, counts, centres))
    total = np.r_[COUNT_WEIGHT * len(private), math.sqrt(1 - COUNT_WEIGHT**2) * private.sum(axis=0)]
    return total + sigma * generator.normal(size=SIZE + 1)


def question(seed, *, sigma=8.0, assumed=8.0, public=80, repeated=1, centres=CENTRES, categories=CLASSES):
    """Return the true shares, and the answer for a release of 1,000 Gaussian texts of random shares."""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(1000, generator.dirichlet(np.ones(CLASSES)))
    released = release(generator, counts, sigma, centres)
    vectors = dict(
        enumerate(
            np.repeat(values, repeated, axis=0)
            for values in texts(generator, [public] * categories, CENTRES[:categories])
        )
    )
    return counts / counts.sum(), read_shares(released, assumed, vectors, np.diag(SPREAD**2))


def test_shares_are_exact_without_noise_and_sampling():
    generator = np.random.default_rng(3)
    # ten copies of each text, so that all folds have equal means
    vectors = {name: np.repeat(generator.normal(size=(5, 6)) / 4, 10, axis=0) for name in "abc"}
    shares = np.array([0.6, 0.37, 0.03])
    total = 1000 * math.sqrt(1 - COUNT_WEIGHT**2) * shares @ [values.mean(axis=0) for values in vectors.values()]
    result = read_shares(np.r_[1000 * COUNT_WEIGHT, total], 1e-3, vectors, np.eye(6) / 16)
    assert [estimate.value for estimate in result.shares.values()] == pytest.approx(shares, abs=1e-6)
    assert all(0 <= estimate.low <= estimate.value <= estimate.high <= 1 for estimate in result.shares.values())
    assert result.drift == 0


def covered(**changed):
    """Return how many of 300 intervals, of one category per release, contain the true share."""
    hits = 0
    for seed in range(RUNS):
        truth, answer = question(seed, **changed)
        estimate = answer.shares[seed % CLASSES]
        hits += estimate.low <= truth[seed % CLASSES] <= estimate.high
    return hits


FEWEST = binom.ppf(1e-6, RUNS, 0.95)
"""A sound interval covers less often with a probability of 1e-6."""


@pytest.mark.parametrize("sigma", [2.0, 8.0, 40.0])
def test_intervals_cover(sigma):
    """False alarm: 1e-6 per noise scale, for a coverage of exactly 95%."""
    assert covered(sigma=sigma, assumed=sigma) >= FEWEST


def test_an_interval_that_ignores_an_error_does_not_cover(monkeypatch):
    """Known-broken versions: the noise is a third of the truth, or each public text counts as thirty texts.

    The estimated drift would make up for both, so it is 0 here.
    """
    monkeypatch.setattr(questions, "_test_fit", lambda *_: (1.0, 0.0))
    assert covered(sigma=40.0, assumed=40.0) >= FEWEST
    assert covered(sigma=40.0, assumed=13.0) < FEWEST
    assert covered(sigma=2.0, assumed=2.0, public=20, repeated=30) < FEWEST


def test_refusals_of_sound_questions_are_rare_and_a_missing_category_is_noticed():
    """False alarm: 1e-6, for a probability of 1% (the approximation allows 3%)."""
    refused = sum(question(seed)[1].p_value < FALSE_ALARMS for seed in range(RUNS))
    assert refused <= binom.isf(1e-6, RUNS, 0.03)
    p_values = [
        answer.p_value for truth, answer in (question(seed, categories=2) for seed in range(40)) if truth[2] > 0.2
    ]
    assert len(p_values) > 10
    assert max(p_values) < FALSE_ALARMS


def test_a_difference_of_the_source_widens_the_intervals():
    """The private means are moved in a random direction: the estimated drift is positive, and most intervals cover."""
    hits, drifts = 0, []
    for seed in range(100):
        moved = CENTRES + 0.15 * SPREAD * np.random.default_rng([seed, 1]).normal(size=CENTRES.shape)
        truth, answer = question(seed, sigma=2.0, assumed=2.0, public=400, centres=moved)
        drifts.append(answer.drift)
        hits += answer.shares[seed % CLASSES].low <= truth[seed % CLASSES] <= answer.shares[seed % CLASSES].high
    assert 0.15**2 / 3 < np.median(drifts) < 3 * 0.15**2
    assert hits >= binom.ppf(1e-6, 100, 0.95)


def test_noise_alone_says_nothing():
    vectors = dict(enumerate(texts(np.random.default_rng(0), [30] * CLASSES)))
    for seed in range(20):
        noise = 8.0 * np.random.default_rng(seed).normal(size=SIZE + 1)
        estimates = read_shares(noise, 8.0, vectors, np.diag(SPREAD**2)).shares.values()
        assert np.mean([estimate.high - estimate.low for estimate in estimates]) > 0.5


@pytest.mark.parametrize(("above", "below"), [(1, 20), (30, 200), (120, 1000)])
def test_the_f_distribution_is_approximated(above, below):
    for probability in (0.2, 0.01):
        assert _f_tail(f.isf(probability, above, below), above, below) == pytest.approx(probability, rel=0.15)


# -- from a release ----------------------------------------------------------------------------------------------------

WORDS = {
    "drinks": ("tea", "cup", "cocoa", "coffee", "water", "milk"),
    "rules": ("law", "tax", "court", "rule", "state", "judge"),
    "games": ("ball", "team", "game", "goal", "player", "score"),
}


def texts_about(name, count, seed):
    generator = np.random.default_rng(seed)
    return [" and ".join(generator.choice(WORDS[name], 2)) for _ in range(count)]


CATEGORIES = {name: texts_about(name, 200, 1) for name in WORDS}


@pytest.fixture(scope="module")
def distribution():
    """A release of labels that the question does not use: 75% drinks, 25% rules."""
    texts = [*texts_about("drinks", 900, 2), *texts_about("rules", 300, 3)]
    documents = [dptext.Document(text, user=f"user {n}", label="xy"[n % 2]) for n, text in enumerate(texts)]
    synthesizer = dptext.Synthesizer(epsilon=4.0, labels=["x", "y"], features="static", cache=False, seed=1)
    return synthesizer.fit(documents, public=dptext.Pool(["a pool of sentences", "about nothing", "a few words"]))


def test_a_release_answers_a_question_that_came_later(distribution):
    shares = distribution.estimate_shares(CATEGORIES)
    assert list(shares) == list(WORDS)
    assert shares["drinks"].low < 0.75 < shares["drinks"].high
    assert shares["rules"].low < 0.25 < shares["rules"].high
    assert shares["drinks"].high - shares["drinks"].low < 0.15
    assert (shares["games"].count, shares["games"].of) == (200, "public texts")
    assert str(shares["games"]).startswith(f"{shares['games'].value:.3f} [")


def test_a_question_without_a_kind_of_text_is_refused(distribution):
    categories = {name: CATEGORIES[name] for name in ("drinks", "games")}
    with pytest.raises(DataError, match="do not look like a mixture of these categories"):
        distribution.estimate_shares(categories)
    with pytest.raises(DataError, match="do not look like a mixture of these categories"):
        distribution.estimate_shares(categories, other_source=True)  # the difference is too large


def test_another_source_is_accepted_if_it_differs_little(distribution, monkeypatch):
    categories = {name: CATEGORIES[name] for name in ("drinks", "games")}
    monkeypatch.setattr(questions, "MOST_DRIFT", 100.0)
    assert set(distribution.estimate_shares(categories, other_source=True)) == set(categories)
    with pytest.raises(DataError, match="do not look like a mixture"):
        distribution.estimate_shares(categories)


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        (["tea"], "must map two or more names"),
        ({"drinks": CATEGORIES["drinks"]}, "must map two or more names"),
        ({"drinks": CATEGORIES["drinks"], "rules": "law"}, "'rules' must be a list"),
        ({"drinks": CATEGORIES["drinks"], "rules": ["law"] * 50}, "needs 20 different public texts or more, got 1"),
        ({f"category {number}": CATEGORIES["drinks"] for number in range(129)}, "at most 128 categories"),
    ],
)
def test_wrong_categories_are_errors(distribution, categories, message):
    with pytest.raises(ParameterError, match=message):
        distribution.estimate_shares(categories)
