"""Sampling rates for levels, and the published accountant beside what is true."""

from __future__ import annotations

import pytest

from dptext import Document, ParameterError, SkipGram, load_vectors
from dptext.embeddings.personal import PublishedAccount, personal_participation

LEVELS = {"strict": 1.0, "standard": 3.0, "open": 8.0}


@pytest.fixture(scope="module")
def participation():
    return personal_participation(LEVELS, delta=1e-6, steps=1000, noise_multiplier=1.5, default="standard")


def test_rates_are_those_of_the_check_values_and_keep_each_level(participation):
    expected = {"strict": 0.00946, "standard": 0.0260, "open": 0.0625}
    assert participation.rates == pytest.approx(expected, rel=0.005)
    for level, epsilon in LEVELS.items():
        assert 0.99 * epsilon < participation.guarantee(level).epsilon <= epsilon
    assert participation.most == "open"
    assert participation.default == "standard"


def test_from_a_rate_the_noise_follows_and_the_largest_level_has_it():
    found = personal_participation({"a": 1.0, "b": 8.0}, delta=1e-6, steps=1000, sampling_rate=0.05)
    assert found.noise_multiplier == 1.273
    assert found.rates["b"] == 0.05
    assert found.rates["a"] < 0.01
    assert found.default == "a"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": LEVELS}, "either sampling_rate or noise_multiplier"),
        ({"levels": LEVELS, "sampling_rate": 0.1, "noise_multiplier": 1.0}, "and not both"),
        ({"levels": {}, "noise_multiplier": 1.0}, "at least one"),
        ({"levels": {"a": 0.01}, "noise_multiplier": 1.0}, "floor"),
        ({"levels": LEVELS, "noise_multiplier": 1.0, "default": "none"}, "default"),
    ],
)
def test_bad_arguments_say_what_was_expected(arguments, message):
    with pytest.raises(ParameterError, match=message):
        personal_participation(delta=1e-6, steps=10, **arguments)


def test_each_level_of_a_training_has_its_statement():
    vectors = load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))
    documents = [
        Document("a cup of tea", user=str(n), attributes={"wish": ("strict", "open")[n % 2]}) for n in range(9)
    ]
    given = personal_participation({"strict": 1.0, "open": 8.0}, delta=1e-6, steps=20, sampling_rate=0.5)
    model = SkipGram(vectors, epsilon=given, level="wish", public_users=20, seed=1).fit(documents)
    strict, other = (model.statements_[level] for level in ("strict", "open"))
    assert strict.epsilon <= 1.0 < other.epsilon <= 8.0
    assert model.statement_ == other  # what holds for everybody
    assert "level 'strict'" in strict.neighbours
    assert "level" not in other.neighbours


def test_the_published_accountant_claims_an_eighth_of_what_is_spent():
    account = PublishedAccount(noise_multiplier=5.0, lot=128, taken_part=1000, samples=1, delta=1e-5)
    assert account.claimed == pytest.approx(5.7, abs=0.05)
    assert account.true == pytest.approx(46.2, abs=0.05)
    several = PublishedAccount(noise_multiplier=5.0, lot=128, taken_part=1000, samples=4, delta=1e-5)
    assert several.claimed == account.claimed  # however many samples he has
    assert several.true > 4 * account.true
