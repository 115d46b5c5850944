"""Bags of words: the Earth Mover's bound, on the probabilities that the sampler draws from, for all documents."""

from collections import Counter
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import chi2

import dptext
from dptext import TEM, privatize_bags
from dptext.errors import DataError, ParameterError
from dptext.files import blocks
from dptext.privacy.unit import Unit

WORDS = ["cat", "dog", "tax", "vat"]
POINTS = np.array([[0.0, 0.0], [0.5, 0.5], [3.0, 0.0], [3.0, 1.0]])


@pytest.fixture(scope="module")
def vectors():
    return dptext.load_vectors((WORDS, POINTS))


def mechanisms(vectors):
    return [TEM(vectors, epsilon=2.0, threshold=5.0), TEM(vectors, epsilon=2.0, threshold=1.2, metric="manhattan")]


def matching_cost(distances, first, second):
    """The cheapest pairing, by an independent solver: n times the Earth Mover's distance of two bags of n words."""
    cost = distances[np.ix_(first, second)]
    return cost[linear_sum_assignment(cost)].sum()


def likelihoods(rows, document):
    """Of every sorted bag under a document, summed over all sequences of outputs."""
    bags = Counter()
    for outputs in product(range(rows.shape[1]), repeat=len(document)):
        bags[tuple(sorted(outputs))] += np.prod([rows[word, out] for word, out in zip(document, outputs, strict=True)])
    return np.array([bags[bag] for bag in combinations_with_replacement(range(rows.shape[1]), len(document))])


def distances_of(mechanism):
    points = mechanism.vectors.matrix.astype(np.float64)
    gaps = points[:, None] - points[None]
    return np.abs(gaps).sum(axis=2) if mechanism.metric == "manhattan" else np.sqrt((gaps**2).sum(axis=2))


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_bag_tells_more_than_the_earth_movers_distance(vectors, which, length):
    """Every pair of documents, every bag: 125 documents of 3 words over 5 words, 35 bags."""
    mechanism = mechanisms(vectors)[which]
    distances = distances_of(mechanism)
    rows = mechanism.distributions(list(mechanism.vectors.words))
    documents = list(product(range(len(rows)), repeat=length))
    logs = {document: np.log(likelihoods(rows, document)) for document in documents}
    guarantee = privatize_bags([" ".join(WORDS[:length])], mechanism).statement.guarantee
    slack = length * mechanism.slack + 1e-9
    tightest = 0.0
    for first, second in product(documents, repeat=2):
        loss = np.max(logs[first] - logs[second])
        allowed = guarantee.epsilon * min(matching_cost(distances, first, second), guarantee.max_distance)
        assert loss <= allowed + slack
        if allowed > 0:
            tightest = max(tightest, loss / allowed)
    assert tightest > 0.5  # the bound is not loose by far, so a bound of half of it would be refuted


@pytest.mark.parametrize("which", [0, 1])
def test_the_likelihood_of_a_bag_does_not_hang_on_the_order_of_the_words(vectors, which):
    mechanism = mechanisms(vectors)[which]
    rows = mechanism.distributions(list(mechanism.vectors.words))
    for order in permutations((0, 2, 4)):
        np.testing.assert_allclose(likelihoods(rows, order), likelihoods(rows, (0, 2, 4)), rtol=1e-12)


def test_the_broken_twin_that_does_not_sort_breaks_the_bound(vectors):
    """Two orders of the same words are at distance 0, and a sequence tells them apart."""
    mechanism = mechanisms(vectors)[0]
    logs = np.log(mechanism.distributions(list(mechanism.vectors.words)))
    first, second = (0, 2), (2, 0)
    assert matching_cost(distances_of(mechanism), first, second) == 0
    loss = max(
        sum(logs[a, out] - logs[b, out] for a, b, out in zip(first, second, outputs, strict=True))
        for outputs in product(range(len(logs)), repeat=2)
    )
    assert loss > 5.0  # nats, where 0 was allowed


def test_the_bags_that_come_out_have_the_likelihoods_of_the_proof(vectors, monkeypatch):
    """Pearson's test over the 15 bags of two words; a true claim fails with probability 1e-6."""
    monkeypatch.setattr(blocks, "BLOCK_CHARACTERS", 100_000)  # several blocks
    mechanism = TEM(vectors, epsilon=0.8, threshold=4.0)
    rows = mechanism.distributions(list(mechanism.vectors.words))
    expected = 40_000 * likelihoods(rows, (0, 3))
    row = {word: place for place, word in enumerate(mechanism.vectors.words)}
    result = privatize_bags(["Cat, 12 vat"] * 20_000 + ["vat cat me@x.org"] * 20_000, mechanism)
    found = Counter(tuple(sorted(row[word] for word in bag)) for bag in result.bags)
    counts = np.array([found[bag] for bag in combinations_with_replacement(range(len(rows)), 2)])
    assert counts.sum() == 40_000
    limit = chi2.isf(1e-6, len(expected) - 1)
    assert ((counts - expected) ** 2 / expected).sum() < limit
    swapped = 40_000 * likelihoods(rows, (0, 0))
    assert ((counts - swapped) ** 2 / swapped).sum() > limit


def test_words_come_out_sorted_and_nothing_else_does(vectors):
    faithful = TEM(vectors, epsilon=40.0, threshold=0.5)
    texts = ["Tax - the 12 dogs' CAT, https://a.b", "", None, "7 ?!", "vat"]
    result = privatize_bags(texts, faithful, seed=1)
    assert result.bags == [["<unk>", "<unk>", "cat", "tax"], [], None, [], ["vat"]]
    assert result.statement.exposed == (
        "the number of documents, their order, and the number of words in each",
        "which rows had no text (null)",
    )
    assert result.statement.parameters["words_counted"] == 4
    assert result.statement.unit is Unit.DOCUMENT
    assert "cheapest way" in result.statement.neighbours


def test_the_statement_carries_the_metric_of_bags(glove):
    mechanism = dptext.Madlib(glove, epsilon=3.0)
    bags = privatize_bags(["a b c", "d"], mechanism).statement
    texts = dptext.privatize(["a b c", "d"], mechanism).statement
    assert bags.guarantee.metric == "summed earth mover's over euclidean"
    assert (bags.guarantee.epsilon, bags.guarantee.max_distance) == (3.0, texts.guarantee.max_distance)
    assert bags.slack == texts.slack
    assert bags.compose(bags).guarantee.epsilon == 6.0
    assert isinstance(bags.compose(texts).guarantee, dptext.PureDP)  # two metrics do not add up
    assert dptext.PrivacyStatement.from_json(bags.to_json()) == bags
    assert "earth mover's" in " ".join(bags.explain().split())


def test_under_a_document_budget_the_bound_is_pure_and_later_words_leave(vectors):
    mechanism = TEM(vectors, epsilon=40.0, document_epsilon=30.0, max_words=2)
    result = privatize_bags(["vat cat dog tax", "tax"], mechanism, seed=3)
    assert result.bags == [["cat", "vat"], ["tax"]]
    assert result.statement.guarantee == dptext.PureDP(30.0)
    assert "up to 2" in result.statement.exposed[0]


def test_noise_is_fresh_unless_there_is_a_seed_and_not_that_of_texts(small):
    mechanism = TEM(small, epsilon=0.1)
    text = " ".join(["word"] * 200)
    fresh = [privatize_bags([text], mechanism).bags[0] for _ in range(2)]
    assert fresh[0] != fresh[1]
    seeded = [privatize_bags([text], mechanism, seed=1) for _ in range(2)]
    assert seeded[0].bags == seeded[1].bags
    assert seeded[0].statement.seeded
    assert sorted(dptext.privatize([text], mechanism, seed=1).texts[0].split()) != seeded[0].bags[0]


def test_what_is_no_list_of_texts_is_refused(vectors):
    mechanism = TEM(vectors, epsilon=1.0)
    with pytest.raises(ParameterError, match="got one string"):
        privatize_bags("cat", mechanism)
    with pytest.raises(ParameterError, match="must be a word mechanism such as TEM, got list"):
        privatize_bags(["cat"], ["tem"])
    with pytest.raises(DataError, match="entry 2 is int"):
        privatize_bags(["cat", 7], mechanism)
    assert privatize_bags([], mechanism).bags == []
