"""Nobody moves the votes of a round by more than 1, all rounds together cost what is said, and all else is public."""

import math

import numpy as np
import papers.synthesis.votes as module
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.synthesis.votes import VoteSum, VoteSynthesizer, sigma_of_a_round

from dptext.errors import ParameterError
from dptext.features.features import fit_features
from dptext.io.documents import Document
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta, gaussian_epsilon
from dptext.privacy.guarantee import ApproxDP
from dptext.representations.encoders import MeanOfWords
from dptext.synthesis.prompts import Request
from dptext.users.grouping import texts_of
from dptext.vectors.formats import load_vectors
from secrecy import MARKER

WORDS = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u")]
TEXTS = [f"{WORDS[n]} {WORDS[(7 * n + 3) % 60]} {WORDS[(11 * n + 5) % 60]}" for n in range(60)]
LABELS = ["one", "two", "three"]


@pytest.fixture(scope="module")
def features():
    points = np.random.default_rng(1).normal(size=(60, 8))
    return fit_features(MeanOfWords(load_vectors((WORDS, points))), TEXTS, cache=False)


def people_of(users):
    """From a list of [(text, class), ...], one for each user."""
    documents = [
        Document(text, user=str(user), label=str(code)) for user, message in enumerate(users) for text, code in message
    ]
    return texts_of(documents, columns=["label"], code=lambda values: int(values[0]))


def total(features, users, candidates, kind=VoteSum):
    peoples = kind(features, candidates)
    with people_of(users) as people:
        peoples.add(people)
    return peoples.cells


def squared_length(cells):
    return sum(int(cell) ** 2 for cell in cells.ravel())


@pytest.fixture(scope="module")
def candidates(features):
    units = features.units(TEXTS)
    return [units[:20], units[20:25], units[:20]]


# -- votes ----------------------------------------------------------------------------------------------------


def test_a_text_votes_for_the_nearest_candidate_of_its_class(features, candidates):
    """By hand, in Python's integers; of equally near ones for the first."""
    texts = [*TEXTS, "", "zzz", TEXTS[3] + " ba", TEXTS[21]]
    for label, first in enumerate((0, 20, 25)):
        classes = np.full(len(texts), label, dtype=np.int32)
        result = VoteSum(features, candidates).votes(texts, classes)
        for mine, cell in zip(features.units(texts).tolist(), result.tolist(), strict=True):
            far = [
                sum((a - b) ** 2 for a, b in zip(mine, candidate, strict=True))
                for candidate in candidates[label].tolist()
            ]
            assert cell - first == far.index(min(far))
    same = [np.repeat(candidates[0][:1], 4, axis=0)]
    assert VoteSum(features, same).votes(TEXTS, np.zeros(60, dtype=np.int32)).max() == 0


def test_the_votes_of_a_person_are_scaled_as_a_whole(features, candidates):
    lines = [(TEXTS[0], 0), (TEXTS[0], 0), (TEXTS[1], 0), (TEXTS[21], 1), (TEXTS[0], 2), (TEXTS[5], -1)]
    cells = total(features, [lines], candidates)
    expected = np.zeros(45)
    expected[[0, 1, 21, 25]] = [2, 1, 1, 1]
    assert np.abs(cells * CELL - expected / math.sqrt(7)).max() < 2 * CELL


SAID = st.lists(st.tuples(st.sampled_from([*TEXTS, "", "zzz", "\ud800"]), st.integers(-1, 2)), max_size=12)


@given(users=st.lists(SAID, max_size=5), mine=SAID, at_once=st.sampled_from([1, 3, 1024]))
@settings(max_examples=15, deadline=None)
def test_with_and_without_a_person_the_votes_differ_by_theirs_exactly(features, candidates, users, mine, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TEXTS_AT_ONCE", at_once)
        difference = total(features, [*users, mine], candidates) - total(features, users, candidates)
    assert (difference == total(features, [mine], candidates)).all()
    assert squared_length(difference) <= 2**48


EVERYWHERE = [(text, label) for text in TEXTS for label in range(3)]


@pytest.mark.parametrize("said", [EVERYWHERE, [(TEXTS[0], 0)], [(TEXTS[0], 0)] * 3000, EVERYWHERE * 20])
def test_whoever_says_something_has_all_of_their_norm_and_no_more(features, candidates, said):
    cells = total(features, [said], candidates)
    assert (1 - 1e-6) ** 2 < squared_length(cells) / 2**48 <= 1


class LabelByLabel(VoteSum):
    """The broken twin: the votes of a person scaled in each label by itself."""

    def _scaled(self, counts, cell, starts):
        person = np.searchsorted(starts, np.arange(len(cell)), side="right")
        key = person * 3 + np.searchsorted([20, 25], cell, side="right")
        lengths = np.sqrt(np.bincount(key, weights=counts.astype(float) ** 2))
        return np.trunc(counts / lengths[key] / CELL).astype(np.int64)


def test_a_norm_of_each_label_is_refuted(features, candidates):
    """Who writes under all three labels moves that sum by the root of 3: its delta is far above what is promised."""
    sigma = VoteSynthesizer(epsilon=2.0, delta=1e-5, labels=LABELS).sigma

    def delta(kind):
        length = math.sqrt(squared_length(total(features, [EVERYWHERE], candidates, kind))) * CELL
        return gaussian_delta(sigma, epsilon=2.0, sensitivity=length)

    assert delta(VoteSum) <= 1e-5
    assert delta(LabelByLabel) > 50 * 1e-5


# -- what it costs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 21, 1000])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-6), (8.0, 1e-5)])
def test_all_rounds_together_cost_the_budget_and_use_it(rounds, epsilon, delta):
    """Against the one Gaussian that they are; with a third less noise, or that of one round in each, it is exceeded."""
    synthesizer = VoteSynthesizer(epsilon=epsilon, delta=delta, rounds=rounds)
    together = synthesizer.sigma / math.sqrt(rounds)
    assert gaussian_epsilon(together, delta=delta, sensitivity=1.0) <= epsilon
    assert gaussian_epsilon(together * (1 - 1e-4), delta=delta, sensitivity=1.0) > epsilon
    assert synthesizer.release().epsilon(delta=delta) == pytest.approx(epsilon, rel=1e-4)
    assert synthesizer.release().epsilon(delta=delta) <= epsilon * (1 + 1e-12)
    assert gaussian_epsilon(together / 1.5, delta=delta, sensitivity=1.0) > 1.3 * epsilon
    assert sigma_of_a_round(synthesizer.terms.budget.sigma, rounds) >= synthesizer.terms.budget.sigma * math.sqrt(
        rounds
    )


@pytest.mark.usefixtures("same_draws")
def test_each_round_has_noise_of_its_own_of_that_size(features, monkeypatch):
    """The noise of 3 rounds of 6,000 candidates: two-sided at 5 standard deviations of a variance, 6e-7."""
    draws = []
    real = module.noisy_matrix

    def spied(cells, sigma, bits):
        noisy = real(cells, sigma, bits)
        draws.append((noisy - cells * CELL).ravel())
        return noisy

    monkeypatch.setattr(module, "noisy_matrix", spied)
    synthesizer = VoteSynthesizer(epsilon=1.0, features=features, rounds=3, candidates=50, labels=range(120))
    synthesizer.fit([Document(TEXTS[0], user="a", label=0)], public=TEXTS, n=3)
    assert len(draws) == 3
    noise = np.concatenate(draws) / synthesizer.sigma
    assert len(noise) == 3 * 6000
    assert abs((noise**2).mean() - 1) < 5 * math.sqrt(2 / len(noise))
    assert abs(np.corrcoef(draws[0][:5000], draws[1][:5000])[0, 1]) < 0.08


# -- a corpus -------------------------------------------------------------------------------------------------


def crowd(count=400):
    """People of two topics, who write like some texts of the pool."""
    return [
        Document(f"{TEXTS[place]} {MARKER}", user=f"{label} {user}", label=label)
        for user in range(count)
        for label, place in (("one", user % 3), ("two", 30 + user % 3))
    ]


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("unit", ["user", "document"])
def test_what_people_voted_for_comes_out_with_their_labels(features, rounds, unit):
    synthesizer = VoteSynthesizer(
        epsilon=8.0, labels=LABELS, column="topic", features=features, rounds=rounds, unit=unit, seed=1
    )
    documents = [Document(entry.text, user=entry.user, attributes={"topic": entry.label}) for entry in crowd()]
    release = synthesizer.fit(documents, public=TEXTS, n=6)
    result = set(zip(release.outputs["columns"]["topic"], release.texts, strict=True))
    assert result == {("one", TEXTS[n]) for n in range(3)} | {("two", TEXTS[30 + n]) for n in range(3)}
    assert release.documents == 6
    assert release.statement.guarantee == ApproxDP(8.0, 1e-6)


def test_more_texts_than_have_votes_are_their_neighbours_and_each_comes_once(features):
    synthesizer = VoteSynthesizer(epsilon=8.0, labels=["one", "two"], features=features, seed=1)
    release = synthesizer.fit(crowd(), public=TEXTS, n=40)
    assert len(set(release.texts)) == len(release.texts) == 40
    assert set(release.texts) <= set(TEXTS)
    assert release.outputs["columns"]["label"].count("one") == 20
    assert sorted(synthesizer.fit(crowd(), public=TEXTS, n=60).texts) == sorted(TEXTS)
    with pytest.raises(ParameterError, match="number of public texts, 60, got 61"):
        synthesizer.fit(crowd(), public=TEXTS, n=61)


class Writer:
    """A source that writes from a list of words, and remembers what it was asked and shown."""

    name = "writer"

    def __init__(self):
        self.asked, self.shown, self.made, self._bits = [], [], set(), np.random.default_rng(1)

    def _texts(self, count):
        texts = [" ".join(self._bits.choice(WORDS, 3)) for _ in range(count)]
        self.made |= set(texts)
        return texts

    def propose(self, request):
        self.asked.append(request)
        return self._texts(request.count)

    def vary(self, texts, request):
        self.asked.append(request)
        self.shown += texts
        output = []
        for text in texts * 10:
            words = text.split()
            words[self._bits.integers(3)] = str(self._bits.choice(WORDS))
            output.append(" ".join(words))
        self.made |= set(output)
        return output

    def parameters(self):
        return {"source": "writer"}

    def assumptions(self):
        return ("the writer knows nothing",)

    def exposed(self):
        return ("its own texts",)


@pytest.mark.parametrize("features_are", ["given", "fitted"])
def test_a_source_that_writes_sees_its_own_texts_and_public_names_alone(features, features_are):
    source = Writer()
    spec = features if features_are == "given" else features.blocks[0].encoder
    synthesizer = VoteSynthesizer(epsilon=8.0, labels=LABELS, features=spec, rounds=3, candidates=30, cache=False)
    release = synthesizer.fit(crowd(), public=source, n=12)
    assert len(set(release.texts)) == 12
    assert set(release.texts) <= source.made
    assert set(source.shown) <= source.made
    for request in source.asked:
        assert isinstance(request, Request)
        assert set(request.examples) <= source.made
        assert request.hints == ()
        assert dict(request.label) in [{"label": label} for label in LABELS]
        assert request.count <= 30
    assert MARKER not in repr((source.asked, source.shown, release.statement.to_json()))
    assert release.statement.parameters["source"] == "writer"
    assert "the writer knows nothing" in release.statement.assumptions
    assert "its own texts" in release.statement.exposed
