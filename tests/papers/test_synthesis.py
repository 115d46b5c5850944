"""papers/synthesis: settings, tables, baselines, quality and votes."""

import math

import numpy as np
import papers.synthesis.votes as votes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.synthesis.votes import VoteSynthesizer, vote_sum

from dptext.errors import ParameterError
from dptext.features.features import fit_features
from dptext.io.documents import Document
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta
from dptext.representations.encoders import MeanOfWords
from dptext.users.grouping import texts_of
from dptext.vectors.formats import load_vectors

PAPERS = ("synthesis.baselines", "synthesis.corpus", "synthesis.experiment", "synthesis.quality", "synthesis.report")


@pytest.mark.parametrize("quick", [False, True])
def test_every_part_has_distinct_settings_of_the_same_names(papers, check_settings, quick):
    for part in papers.experiment.PARTS:
        part_settings = list(papers.experiment.settings_of(part, quick=quick))
        check_settings(part_settings)
        assert {"described", "real", "random labels"} <= {setting["method"] for setting in part_settings}


# -- votes: a user moves the sum by at most 1 --------------------------------------------------------------------------

WORDS = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u")]
TEXTS = [f"{WORDS[n]} {WORDS[(7 * n + 3) % 60]} {WORDS[(11 * n + 5) % 60]}" for n in range(60)]
LABELS = ["one", "two", "three"]
EVERYWHERE = [(text, label) for text in TEXTS for label in range(3)]


@pytest.fixture(scope="module")
def features():
    points = np.random.default_rng(1).normal(size=(60, 8))
    return fit_features(MeanOfWords(load_vectors((WORDS, points))), TEXTS, cache=False)


@pytest.fixture(scope="module")
def candidates(features):
    return features.units(TEXTS[:20])


def total(features, candidates, users):
    """The sum of votes; users are lists of (text, class)."""
    documents = [
        Document(text, user=str(user), label=str(code)) for user, row in enumerate(users) for text, code in row
    ]
    with texts_of(documents, columns=["label"], code=lambda values: int(values[0])) as people:
        return vote_sum(features, candidates, 3, people)


def squared_length(cells):
    return sum(int(cell) ** 2 for cell in cells.ravel())


USER_VOTES = st.lists(st.tuples(st.sampled_from([*TEXTS, "", "zzz", "\ud800"]), st.integers(-1, 2)), max_size=12)


@given(users=st.lists(USER_VOTES, max_size=5), added=USER_VOTES)
@settings(max_examples=15, deadline=None)
def test_a_user_changes_the_sum_by_their_own_votes(features, candidates, users, added):
    difference = total(features, candidates, [*users, added]) - total(features, candidates, users)
    assert (difference == total(features, candidates, [added])).all()
    assert squared_length(difference) <= 2**48


@pytest.mark.parametrize("votes_of_user", [EVERYWHERE, [(TEXTS[0], 0)], [(TEXTS[0], 0)] * 3000, EVERYWHERE * 20])
def test_the_votes_of_a_user_have_norm_1(features, candidates, votes_of_user):
    assert (1 - 1e-6) ** 2 < squared_length(total(features, candidates, [votes_of_user])) / 2**48 <= 1


def test_a_norm_of_each_label_is_refuted(features, candidates, monkeypatch):
    """Scaled label by label, a user under all three labels moves the sum by the root of 3."""
    synthesizer = VoteSynthesizer(epsilon=2.0, delta=1e-5, labels=LABELS, features=features)

    def delta():
        length = math.sqrt(squared_length(total(features, candidates, [EVERYWHERE]))) * CELL
        return gaussian_delta(synthesizer.terms.budget.sigma, epsilon=2.0, sensitivity=length)

    assert delta() <= 1e-5
    scale, cells = votes.scale_votes, len(candidates)
    monkeypatch.setattr(votes, "scale_votes", lambda counts, starts: scale(counts, np.arange(0, len(counts), cells)))
    assert delta() > 50 * 1e-5


@pytest.mark.parametrize("unit", ["user", "document"])
def test_texts_with_votes_come_out_with_their_labels(features, unit):
    documents = [
        Document(TEXTS[place], user=f"{label} {user}", label=label)
        for user in range(400)
        for label, place in (("one", user % 3), ("two", 30 + user % 3))
    ]
    options = {"epsilon": 8.0, "delta": 1e-6, "features": features, "seed": 1}
    texts, labels = VoteSynthesizer(labels=LABELS, unit=unit, **options).make(documents, TEXTS, 6)
    result = set(zip(labels, texts, strict=True))
    assert result == {("one", TEXTS[n]) for n in range(3)} | {("two", TEXTS[30 + n]) for n in range(3)}
    synthesizer = VoteSynthesizer(labels=LABELS[:2], **options)
    texts, labels = synthesizer.make(documents, TEXTS, 40)  # more than have votes: their neighbours
    assert len(set(texts)) == 40 and set(texts) <= set(TEXTS)
    assert labels.count("one") == 20
    with pytest.raises(ParameterError, match="number of public texts, 60, got 61"):
        synthesizer.make(documents, TEXTS, 61)
