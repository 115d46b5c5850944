"""Sentence replacement from a public bank: exact audits of the library's, and of variants that break its guarantee."""

from itertools import permutations

import numpy as np

import dptext
from dptext.features.features import fit_features
from dptext.privacy.guarantee import Unit
from dptext.representations.encoders import CallableEncoder
from known_broken.case import Case, PureDP, claim, judge_table

EPSILON = 3.0
SIZE = 2
WORDS = ("tea", "milk", "cup", "tax", "law", "dog", "cat")


def _counts(texts):
    read = [text.lower().replace(".", " ").split() for text in texts]
    return [[words.count(word) for word in WORDS] + [1.0] for words in read]


_BAGS = (("tea", "milk", "cup"), ("tax", "law"), ("dog", "cat"))
TEXTS = [" ".join(order) for bag in _BAGS for order in permutations(bag)] + ["dog", "tax tax"]
"""Orders of one bag of words are at one point: ties in every set."""
FEATURES = fit_features(CallableEncoder(_counts, name="counts"), TEXTS, cache=False)
BANK = dptext.TextBank(TEXTS, encoder=FEATURES, cache=False)
INPUTS = ["tea milk", "tax", "a dog", "cat and dog", "", "nothing of it", *TEXTS[:2], "dog"]
"""Some stand in the bank, word for word."""


def _similar(texts):
    return FEATURES.vectors(texts).astype(np.float64) @ BANK.vectors.T.astype(np.float64)


def _nearest(similarities, size=SIZE):
    return np.argsort(-similarities, axis=1, kind="stable")[:, :size]


def _selected(sets, epsilon=EPSILON):
    """(n, N) subset selection from sets of any size."""
    weights = np.ones((len(sets), len(TEXTS)))
    for row, chosen in zip(weights, sets, strict=True):
        row[chosen] = np.exp(epsilon)
    return weights / weights.sum(axis=1, keepdims=True)


def _judged(shares, names, unit=Unit.SENTENCE, **draws):
    return judge_table(shares, EPSILON, claimed=claim(PureDP(EPSILON), unit), names=names, **draws)


def _seed(bits):
    return int(bits.below(np.array([2**63], dtype=np.uint64))[0])


# -- one part ---------------------------------------------------------------------------------------------------------


def _library(seed, error):
    rewriter = dptext.BankRewriter(BANK, epsilon=EPSILON, size=SIZE)
    row = {text: place for place, text in enumerate(TEXTS)}

    def sampler(inputs, bits):
        return np.array([row[text] for text in rewriter.sample([INPUTS[entry] for entry in inputs], seed=_seed(bits))])

    return _judged(rewriter.distributions(INPUTS), INPUTS, sampler=sampler, samples=20_000, run=(seed, error))


def _audit_sets(sets_of):
    return lambda _seed, _error: _judged(_selected(sets_of(_similar(INPUTS))), INPUTS)


def _ties_by_the_input(similarities):
    """K members, the equal ones in an order that every input has of its own."""
    orders = np.random.default_rng(3).random(similarities.shape)
    return [np.lexsort((order, -entry))[:SIZE] for order, entry in zip(orders, similarities, strict=True)]


def _approximate(similarities):
    """One neighbour in three is missed, another one for another input."""
    missed = np.random.default_rng(4).random(similarities.shape) < 1 / 3
    return _nearest(np.where(missed, -2.0, similarities))


def _similar_texts(similarities):
    """As many as are above a threshold, at least one."""
    return [np.flatnonzero(similarity >= min(0.5, similarity.max())) for similarity in similarities]


def _ties_included(similarities):
    """Everything as similar as the k-th."""
    return [np.flatnonzero(similarity >= np.sort(similarity)[-SIZE]) for similarity in similarities]


def without_the_text_itself(_seed, _error):
    """The private text is removed from its own candidates."""
    similarities = _similar(INPUTS)
    shares = np.zeros((len(INPUTS), len(TEXTS)))
    for text, row, entry in zip(INPUTS, shares, similarities, strict=True):
        left = [place for place, other in enumerate(TEXTS) if other != text]
        row[left] = _selected(_nearest(np.where(np.isin(np.arange(len(TEXTS)), left), entry, -2.0)[None]))[0, left]
    return _judged(shares / shares.sum(axis=1, keepdims=True), INPUTS)


def bank_of_its_topic(_seed, _error):
    """The half of the bank in which the most similar text lies: smaller, and quicker to search."""
    similarities = _similar(INPUTS)
    half = np.arange(len(TEXTS)) < len(TEXTS) // 2
    in_half = half == half[similarities.argmax(axis=1)][:, None]
    shares = np.where(in_half, _selected(_nearest(np.where(in_half, similarities, -2.0))), 0.0)
    return _judged(shares / shares.sum(axis=1, keepdims=True), INPUTS)


# -- documents of at most two sentences -------------------------------------------------------------------------------

DOCUMENTS = ["", "Tea milk.", "Tax.", "A dog. Tax law.", "Tea milk. Tea milk.", "Dog. Cat. Tax law. Tea."]
PAIRS = len(TEXTS) ** 2


def _both(first, second):
    """Of two independent sentences."""
    return np.einsum("ni,nj->nij", first, second).reshape(len(first), -1)


def _document(seed, error):
    """Always two sentences, each with half of the budget; the empty text in place of a missing one."""
    rewriter = dptext.BankRewriter(BANK, epsilon=EPSILON, unit="document", max_sentences=2, size=SIZE)
    parts = [rewriter.parts(document) for document in DOCUMENTS]
    shares = _both(*(rewriter.distributions(entry) for entry in zip(*parts, strict=True)))
    place = {f"{one} {other}": position for position, (one, other) in enumerate((i, j) for i in TEXTS for j in TEXTS)}
    assert len(place) < PAIRS  # "dog cat" is one text of the bank, and part of two
    of = np.array([place[f"{one} {other}"] for one in TEXTS for other in TEXTS])
    merged = np.zeros((len(DOCUMENTS), PAIRS))
    np.add.at(merged, (slice(None), of), shares)

    def sampler(inputs, bits):
        taken = [DOCUMENTS[entry] for entry in inputs]
        return np.array([place[text] for text in dptext.privatize(taken, rewriter, seed=_seed(bits)).texts])

    return _judged(merged, DOCUMENTS, Unit.DOCUMENT, sampler=sampler, samples=20_000, run=(seed, error))


def _sentences(document):
    return dptext.BankRewriter(BANK, epsilon=EPSILON, max_sentences=2).parts(document)


def _one_by_one(document, *, share, end):
    """(N + 1, N + 1) of a document, whose missing sentences come out as the last output; ``end`` puts them through."""
    texts = _sentences(document)
    entry = EPSILON / share(len(texts))
    result = []
    for place in range(2):
        present = place < len(texts)
        draws = _selected(_nearest(_similar([texts[place] if present else ""])), entry)[0]
        result.append(np.append(draws, 0.0) if present or end else np.append(np.zeros(len(TEXTS)), 1.0))
    return np.outer(*result).ravel()


def _documents(share, *, end):
    def run(_seed, _error):
        return _judged(
            np.array([_one_by_one(document, share=share, end=end) for document in DOCUMENTS]), DOCUMENTS, Unit.DOCUMENT
        )

    return run


def centred_by_batch(_seed, _error):
    """Two documents of one batch, whose vectors are centred by its mean: the first changes the set of the second.

    The adversary sees both outputs; the files are neighbours because their second document is the same.
    """
    files = [(document, "cat") for document in ("tea milk cup", "tax", "dog dog dog", "")]

    def sets(texts):
        vectors = FEATURES.vectors(texts).astype(np.float64)
        return _nearest((vectors - vectors.mean(axis=0)) @ BANK.vectors.T.astype(np.float64))

    shares = np.array([np.outer(*_selected(sets(file))).ravel() for file in files])
    return _judged(shares, [f"{first!r} beside {second!r}" for first, second in files], Unit.DOCUMENT)


class OneCoin(dptext.BankRewriter):
    """The sentences of a document are drawn with the same random bits; a sentence alone is drawn as it should be."""

    def replacing(self):
        shares = {}

        def draw(part, coin):
            if part not in shares:
                shares[part] = np.cumsum(self.probabilities(part))
            return self.bank.texts[min(int(np.searchsorted(shares[part], coin)), len(self.bank) - 1)]

        def release(documents, bits):
            coins = bits.uniform(len(documents))
            pairs = zip(documents, coins, strict=True)
            return [" ".join(draw(part, coin) for part in self.parts(document)) for document, coin in pairs], None

        return release


REVIEWS = [f"{noun} {verb}." for noun in ("The tea", "The law", "A dog", "Her cat") for verb in ("is good", "is late")]


def _released(kind):
    """Documents of three sentences, through the release path."""

    def run(seed, error):
        bank = dptext.TextBank(REVIEWS, encoder="words", cache=False)
        return dptext.audit(kind(bank, epsilon=EPSILON, size=SIZE), samples=20_000, error=error, seed=seed)

    return run


CASES = [
    Case("bank, released", False, _released(dptext.BankRewriter), "each sentence has its own random bits"),
    Case("bank, one coin for a document", True, _released(OneCoin), "equal sentences of a document come out equal"),
    Case("bank", False, _library, "the library's; some inputs stand in the bank, which exposes the bank and no input"),
    Case("bank, ties broken by the input", False, _audit_sets(_ties_by_the_input), "still k members, one normaliser"),
    Case("bank, approximate neighbours", False, _audit_sets(_approximate), "other members, but k of them"),
    Case("bank, document of two sentences", False, _document, "always two, half of the budget each; any two documents"),
    Case("bank, k chosen by the input", True, _audit_sets(_similar_texts), "the normaliser moves with the input"),
    Case("bank, ties included", True, _audit_sets(_ties_included), "how many are equal depends on the input"),
    Case("bank, without what stands in the private file", True, without_the_text_itself, "its absence reveals it"),
    Case("bank chosen by the input", True, bank_of_its_topic, "a text that comes out says which part was chosen"),
    Case(
        "bank, a marker for missing sentences",
        True,
        _documents(lambda _count: 2, end=False),
        "only short documents have it",
    ),
    Case(
        "bank, budget by the sentences that are there",
        True,
        _documents(lambda count: max(1, count), end=True),
        "each spends all",
    ),
    Case("bank, sets that know of the batch", True, centred_by_batch, "one document changes the set of another"),
]
