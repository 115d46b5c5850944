"""What every word mechanism of the registry keeps: its guarantee, its law, its statement, and no random state.

Audits refute a true claim, and chi-square tests reject a true law, at most once in a million.
"""

import math
import pickle
from itertools import combinations

import numpy as np
import pytest

import dptext
from contracts.forked import outputs_of_processes
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.words.mechanism import ShownMechanism
from dptext.words.registry import MECHANISMS, PUBLISHED_ONLY, mechanism_from_statement
from laws import follows

EVERY = MECHANISMS | PUBLISHED_ONLY
OPTIONS = {
    "vickrey": {"t": 0.3},
    "mahalanobis": {"lambda_": 0.4},
    "custext": {"size": 7},
    "santext+": {"p": 0.2, "sensitive": 0.7, "reach": 2.0},
    "truncatedgumbel": {"scale": 1.0, "unsafe_as_published": True},
}
SHOWN = [name for name in EVERY if issubclass(EVERY[name], ShownMechanism)]
"""The audit samples the guarantee of the other mechanisms; their own tests check the distribution."""
LINE = dptext.load_vectors((["ape", "bee", "cow"], [[0.0], [1.0], [3.0]]))
BROKEN_FACTOR = {"custext": 2.0, "vickrey": 4.0}
"""Factor of the epsilon that a known-broken mechanism uses, if 1.5 is not enough to refute it."""


@pytest.fixture(scope="module")
def words():
    """60 words with their unknown word, two of them at one point."""
    points = np.random.default_rng(3).normal(size=(60, 3))
    points[17] = points[4]
    return dptext.load_vectors(([f"word{'abcdefghij'[n % 10]}{n}x" for n in range(60)], points))


@pytest.fixture(scope="module")
def stored(words, tmp_path_factory):
    """The same in a file."""
    file = tmp_path_factory.mktemp("vectors") / "words.txt"
    dptext.save_vectors(words, file)
    return str(file)


def build(name, vectors, epsilon=3.0, **options):
    return EVERY[name](vectors, epsilon=epsilon, **OPTIONS.get(name, {}), **options)


# -- guarantee and distribution ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_guarantee_stands_and_too_little_noise_is_refuted(name, words):
    """Exact over all pairs of 60 words where the law is shown; else sampled, of words on a line."""
    vectors = words if issubclass(EVERY[name], ShownMechanism) else LINE
    mechanism, broken = (build(name, vectors, epsilon) for epsilon in (1.0, BROKEN_FACTOR.get(name, 1.5)))
    known = {"seed": 1, "samples": 60_000}
    if mechanism.labels is not None:
        known["labels"] = mechanism.labels
    verdict = dptext.audit(mechanism, **known)
    assert not verdict.refuted and verdict.refutable
    assert dptext.audit(broken, mechanism.statement, **known).refuted


@pytest.mark.parametrize("name", SHOWN)
def test_draws_follow_the_shown_probabilities_and_not_others(name, words):
    mechanism, other = (build(name, words, epsilon) for epsilon in (2.0, 3.0))
    for word in (words.words[4], "nobody-knows-me"):
        row = words.vocabulary.row(word)
        counts = np.bincount(mechanism.sample_rows(np.full(100_000, row), RandomBits(7)), minlength=len(words))
        assert follows(counts, mechanism.probabilities(word))
        assert not follows(counts, other.probabilities(word))


@pytest.mark.parametrize("name", PUBLISHED_ONLY)
def test_mechanisms_without_proof_are_refused_by_default_and_have_no_guarantee(name, words):
    with pytest.raises(RefusedError):
        EVERY[name](words, epsilon=14.0)
    statement = build(name, words).document_statement(3)
    assert isinstance(statement.guarantee, NoGuarantee)
    assert (statement.epsilon, statement.claimed_epsilon) == (math.inf, 3.0)


# -- arguments and draws -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_a_mechanism_is_frozen_and_its_statement_builds_it_again(name, stored):
    vectors = dptext.load_vectors(stored)
    mechanism = build(name, vectors)
    repeated = mechanism_from_statement(mechanism.document_statement(7), vectors=stored)
    assert type(repeated) is EVERY[name]
    assert repeated.statement == mechanism.statement
    assert repeated.document_statement(7) == mechanism.document_statement(7)
    texts = ["worde4x", "nobody-knows-me"] * 20
    assert repeated.sample(texts, seed=1) == mechanism.sample(texts, seed=1)
    for attribute in (*vars(mechanism), "new"):
        with pytest.raises(AttributeError, match=r"frozen|immutable"):
            setattr(mechanism, attribute, 0.01)
    for epsilon in (0, math.inf, None):  # other values: `test_numbers`
        with pytest.raises(ParameterError, match="epsilon must be"):
            build(name, vectors, epsilon)
    with pytest.raises(ParameterError, match=r"use dptext\.load_vectors"):
        build(name, np.eye(3))


@pytest.mark.parametrize("name", EVERY)
def test_any_word_becomes_a_known_one_and_only_seeds_repeat(name, words):
    mechanism = build(name, words)
    before = pickle.dumps(mechanism)
    assert mechanism.sample([]) == []
    texts = ["nobody-knows-me", "", "\ud800", "WORDA0X", *words.words] * 10
    private = mechanism.sample(texts, seed=1)
    assert len(private) == len(texts) and set(private) <= set(words.words)
    assert private == mechanism.sample(texts, seed=1) == pickle.loads(before).sample(texts, seed=1)
    assert private != mechanism.sample(texts, seed=2)
    assert mechanism.sample(texts) != mechanism.sample(texts)
    assert pickle.dumps(mechanism) == before
    assert not any(state in before for state in (b"RandomBits", b"NoiseKey", b"privacy.randomness"))
    for bad, message in (("word", r"got (one|a single) string"), (["word", 3], "entry 1 is int")):
        with pytest.raises(ParameterError, match=message):
            mechanism.sample(bad)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_forked_processes_draw_afresh(words):
    mechanisms = {name: build(name, words, epsilon=0.1) for name in EVERY}
    texts = [words.words[50]] * 600

    def draw(inherited):
        return {name: np.array(mechanism.sample(texts)) for name, mechanism in inherited.items()}

    draw(mechanisms)
    outputs = outputs_of_processes(mechanisms, draw)
    for name in EVERY:  # of 600 places two independent draws share less than a third, on average
        for one, other in combinations(outputs, 2):
            assert np.mean(one[name] == other[name]) < 0.5, name
