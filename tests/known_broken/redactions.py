"""Redaction before a mechanism: the guarantee between redacted texts holds, stronger ones do not."""

import numpy as np

import dptext
from dptext.privacy.guarantee import Unit
from known_broken.case import Case, MetricDP, PureDP, claim, judge_table

EPSILON = 3.0
WORDS = ("tea", "milk", "cup", "tax")
VECTORS = dptext.load_vectors((WORDS, [[0.0, 0.0], [0.1, 0.0], [0.2, 0.0], [2.0, 0.0]]))
TEM = dptext.TEM(VECTORS, epsilon=EPSILON, threshold=3.0)
LISTED = "milk"
REDACTED = dptext.Redacted(TEM, kinds=[], words=[LISTED])
INPUTS = [word for word in VECTORS.words if word != "<unk>"]


def _outputs(texts):
    """(n, V + 1) output distributions of one-word texts: the vocabulary and the placeholder."""
    shares = np.zeros((len(texts), len(VECTORS.words) + 1))
    for row, text in zip(shares, texts, strict=True):
        if REDACTED.redact(text) == text:
            row[:-1] = TEM.probabilities(text)
        else:
            row[-1] = 1.0
    return shares


def _judged(texts, names, allowed, guarantee):
    return judge_table(texts, allowed, claimed=claim(guarantee, Unit.DOCUMENT, TEM.slack), names=names)


def _allowed_losses(texts):
    rows = [VECTORS.words.index(text) for text in texts]
    points = VECTORS.matrix[rows].astype(np.float64)
    distance = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    allowed = EPSILON * np.minimum(distance, TEM.word_guarantee().max_distance) + TEM.slack
    return lambda row, others: allowed[row, others]


def between_redacted(_seed, _error):
    """Texts of one layout once they are redacted: those without a placeholder."""
    texts = [entry for entry in INPUTS if REDACTED.redact(entry) == entry]
    return _judged(_outputs(texts), texts, _allowed_losses(texts), TEM.word_guarantee())


def between_original_texts(_seed, _error):
    """The metric bound of the mechanism, for texts of which one holds a word of the list."""
    word = TEM.word_guarantee()
    guarantee = MetricDP(word.epsilon, word.metric, word.max_distance)
    return _judged(_outputs(INPUTS), INPUTS, _allowed_losses(INPUTS), guarantee)


def _second_distribution(first, *, looks_at_others):
    """Return the output distribution of the second text, "tea tax", given the first; the bank has four texts."""
    listed = set(first.split()) if looks_at_others else {LISTED}
    seen = "-".join("<listed>" if word in listed else word for word in ("tea", "tax"))
    nearest = {"tea-tax": 0, "<listed>-tax": 1, "tea-<listed>": 2}.get(seen, 3)
    weights = np.ones(4)
    weights[nearest] = np.exp(EPSILON)
    return weights / weights.sum()


def _neighbour_index(looks_at_others):
    """Both outputs, for two first texts: epsilon is the bank's, for one text."""

    def run(_seed, _error):
        firsts = ["tea", "tax"]
        rows = []
        for place, first in enumerate(firsts):
            weights = np.ones(4)
            weights[place] = np.exp(EPSILON)
            rows.append(
                np.outer(weights / weights.sum(), _second_distribution(first, looks_at_others=looks_at_others)).ravel()
            )
        return _judged(np.array(rows), firsts, EPSILON, PureDP(EPSILON))

    return run


CASES = [
    Case("TEM behind a redaction", False, between_redacted, "between redacted texts"),
    Case(
        "redaction, the bound between the original texts", True, between_original_texts, "its placeholder gives it away"
    ),
    Case("redaction by a list fixed before", False, _neighbour_index(False), "each text is redacted independently"),
    Case("redaction that looks at other rows", True, _neighbour_index(True), "one text decides what another becomes"),
]
