"""Standard evaluations by other authors: distances between released and real texts, and recall of identifiers (TAB)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, extra
from dptext.evaluation.measures import Floats, Measured
from dptext.intervals import Estimate, mean_of_people, share
from dptext.privacy.randomness import RandomBits
from dptext.release.redaction import KIND_OF_ENTITY
from dptext.representations.device import encoder_of
from dptext.representations.encoders import check_texts
from dptext.text.patterns import Span
from dptext.text.tokens import fold, pieces
from dptext.threads import one_blas_thread
from dptext.vectors.formats import STATIC

_TAGS, _TITLES = ("ADP", "CCONJ", "DET", "PART"), ("mr", "mrs", "ms", "no", "nr", "about")
_FUNCTION_WORDS = """
a after against all an and any at before between both but by during each either every for from in into neither nor not
of on or over per s since some that the these this those through to under until upon with within without
"""
_IGNORED = (*_TITLES, *_FUNCTION_WORDS.split())
_SIGNS = {"precision": 1, "recall": 1, "Fréchet distance": -1, "MAUVE": 1, "next-token accuracy": 1}
_REPEATS, _QUANTILE = 10, 2.2622  # Student's 97.5% quantile with 9 degrees of freedom


def text_quality(real: Any, released: Any, *, features: Any = None, seed: int | None = None) -> list[Measured]:
    """Compare released texts with real ones as distributions. **The result is private**: it has no noise.

    Each of ten repeats compares half of the released texts (``score``) and half of the real ones (``baseline``) with
    the other half of the real ones; ``gain`` is the improvement over the baseline (for the Fréchet distance, the fall).
    Halves are random and of equal size; 95% intervals by the delete-half jackknife (Shao and Wu 1989).

    Args:
        real, released: at least 20 texts each. The release must not have used the real ones.
        features: encoder, word vectors or function from texts to an array; None: the included static word vectors.
        seed: seed of the halves and of the clusters.

    Raises:
        ParameterError: there are too few texts, or the vectors are not finite.
        MissingExtraError: the extra ``evaluation`` is not installed.

    >>> real = [f"a {word}" for word in 4 * ["cat", "dog", "cup", "tea", "car"]]
    >>> [(entry.measure, entry.score.value) for entry in text_quality(real, ["two"] * 20, seed=1)[:2]]
    [('precision', 0.0), ('recall', 0.0)]
    """
    corpora = [check_texts(texts) for texts in (real, released)]
    if (size := min(map(len, corpora)) // 2) < 10:
        raise ParameterError(f"real and released must have at least 20 texts each, got {2 * size}")
    encoder = encoder_of(STATIC if features is None else features)
    vectors, runs = [np.asarray(encoder.encode(texts)) for texts in corpora], []
    for bits in RandomBits(seed).spawn(_REPEATS):
        order, released_order = (np.argsort(bits.integers(len(texts))) for texts in corpora)
        halves = ((0, order[:size]), (1, released_order[:size]), (0, order[size : 2 * size]))
        (test, truth), *others = [([corpora[i][row] for row in rows], vectors[i][rows]) for i, rows in halves]
        cells = int(bits.integers(1)[0] >> np.uint64(33))
        for texts, rows in others:
            numbers = *precision_recall(rows, truth), frechet_distance(rows, truth), mauve(rows, truth, seed=cells)
            runs.append((*numbers, next_token_accuracy(texts, test)))
    result = []
    for name, (score, baseline) in zip(_SIGNS, np.reshape(runs, (_REPEATS, 2, -1)).T, strict=True):
        estimates = []
        for values in (score, _SIGNS[name] * (score - baseline)):
            mean, reach = float(values.mean()), float(_QUANTILE * values.std(ddof=1))
            estimates.append(Estimate(mean, mean - reach, mean + reach, 2 * size, "texts"))
        level, of = float(baseline.mean()), "other real texts"
        result.append(Measured(measure=name, score=estimates[0], baseline=level, baseline_name=of, gain=estimates[1]))
    return result


def precision_recall(vectors: npt.ArrayLike, real: npt.ArrayLike, *, neighbours: int = 3) -> tuple[float, float]:
    """Return precision and recall by nearest neighbours (Kynkäänniemi et al. 2019, arXiv:1904.06991).

    The support of a sample is estimated by balls around its vectors, up to the k-th nearest other one. Precision is the
    share of the corpus in the support of the real texts, recall the share of real texts in the support of the corpus.

    >>> precision_recall([[0.0], [1.0], [50.0]], [[0.0], [1.0], [2.0], [3.0]], neighbours=1)
    (0.6666666666666666, 1.0)
    """
    both = _check_vectors(vectors, real, neighbours + 1)
    distances = extra("scipy.spatial.distance", "evaluation", "precision and recall").cdist
    # a vector is its own nearest one, at index 0
    radii = [np.partition(distances(rows, rows), neighbours, axis=1)[:, neighbours] for rows in both]
    inside = distances(*both) <= radii[1], distances(*both[::-1]) <= radii[0]
    return float(inside[0].any(axis=1).mean()), float(inside[1].any(axis=1).mean())


def frechet_distance(vectors: npt.ArrayLike, real: npt.ArrayLike) -> float:
    """Return |m - m'|^2 + tr(S + S' - 2 (S S')^(1/2)) of the means and covariances of two samples (Heusel et al. 2017).

    >>> round(frechet_distance([[-1.0], [1.0]], [[1.0], [5.0]]), 9)  # variances 2 and 8, means 0 and 3
    11.0
    """
    one, other = _check_vectors(vectors, real)
    first, second = (np.atleast_2d(np.cov(sample, rowvar=False)) for sample in (one, other))
    with one_blas_thread():
        mixed = np.sqrt(np.maximum(np.linalg.eigvals(first @ second).real, 0.0)).sum()
    gap = np.square(one.mean(axis=0) - other.mean(axis=0)).sum()
    return max(float(gap + np.trace(first) + np.trace(second) - 2 * mixed), 0.0)


def mauve(vectors: npt.ArrayLike, real: npt.ArrayLike, *, seed: int = 0) -> float:
    """Return MAUVE, from 0 to 1 (Pillutla et al. 2021, arXiv:2102.01454), with the settings of its authors.

    p and q are histograms over k-means clusters (one per ten texts) of normalised vectors, in the principal components
    with 90% of the variance. MAUVE is the area under exp(-5 KL(p | r)) over exp(-5 KL(q | r)), for mixtures r of both.

    >>> round(mauve([[1.0, 0.0], [0.0, 1.0]] * 9, [[1.0, 0.0]] * 9 + [[0.0, 1.0]] * 9), 9)
    1.0
    """
    names = ("sklearn.cluster", "sklearn.decomposition", "sklearn.metrics", "scipy.special")
    cluster, decomposition, metrics, special = (extra(name, "evaluation", "MAUVE") for name in names)
    both = _check_vectors(vectors, real)
    rows = np.vstack(both)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + (rows == 0).all(axis=1, keepdims=True)
    count = min(max(2, round(min(map(len, both)) / 10)), len(np.unique(rows, axis=0)))
    with one_blas_thread():
        rows = decomposition.PCA(0.9, svd_solver="full").fit_transform(rows)
        cells = cluster.KMeans(count, n_init=5, max_iter=500, random_state=seed).fit_predict(rows)
    p, q = (np.bincount(part, minlength=count) / len(part) for part in np.split(cells, [len(both[0])]))
    mixtures = (weights := np.linspace(1e-6, 1 - 1e-6, 25)[:, None]) * p + (1 - weights) * q
    x, y = (np.exp(-5 * np.maximum(special.rel_entr(side, mixtures).sum(axis=1), 0)) for side in (q, p))
    return float(metrics.auc([0.0, *np.sort(x), 1.0], [1.0, *np.sort(y)[::-1], 0.0]))


def next_token_accuracy(texts: Iterable[str], real: Iterable[str], *, order: int = 3) -> float:
    """Return the share of the tokens of real texts that an n-gram model trained on other texts predicts.

    The prediction is the most frequent successor of the longest context, of at most ``order - 1`` tokens, that is in
    the training texts. Tokens are case-folded words, numbers and punctuation marks, and the end of a text.

    >>> next_token_accuracy(["a cup of tea", "a cup of milk"], ["a cup of milk"])  # all but "milk"
    0.8
    """
    successors: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for contexts, token in _contexts(texts, order):
        for context in contexts:
            successors[context][token] += 1
    guesses = {context: counter.most_common(1)[0][0] for context, counter in successors.items()}
    hits = [token == next(filter(None, map(guesses.get, contexts)), None) for contexts, token in _contexts(real, order)]
    return sum(hits) / max(len(hits), 1)


def _contexts(texts: Iterable[str], order: int) -> Iterator[tuple[list[tuple[str, ...]], str]]:
    for text in texts:
        tokens = ["\n", *(fold(piece) for piece in pieces(text) if not piece.isspace()), "\n"]  # start and end
        for place in range(1, len(tokens)):
            yield [tuple(tokens[start:place]) for start in range(max(place - order + 1, 0), place + 1)], tokens[place]


def _check_vectors(vectors: npt.ArrayLike, real: npt.ArrayLike, minimum: int = 2) -> list[Floats]:
    both = [np.asarray(sample, dtype=np.float64) for sample in (vectors, real)]
    if any(rows.ndim != 2 or len(rows) < minimum or not np.isfinite(rows).all() for rows in both):
        raise ParameterError(f"expected two arrays of at least {minimum} vectors, without NaN and infinities")
    return both


def tab_scores(
    documents: Iterable[Mapping[str, Any]], masks: Mapping[str, Iterable[Sequence[Any]]], *, nlp: Any = None
) -> dict[str, Estimate]:
    """Return the recall and precision of masked parts of texts as TAB does (Pilán et al. 2022, arXiv:2202.00443).

    A mention is masked if all its characters are, apart from punctuation, titles and function words; an entity, if all
    its mentions that need it are. All annotators count. Intervals are over documents (of a single one: over its parts).

    Args:
        documents: documents in TAB's JSON layout (``json.load`` of ``echr_test.json``).
        masks: masked parts (start, end, ...) by the ``doc_id`` of the document; other documents are left out.
        nlp: spaCy pipeline that recognises function words (TAB: ``en_core_web_md``); None: a list of words.

    Returns:
        ``recall_NAME_entities`` for direct, quasi, all and each type (PERSON); ``mention_recall``; ``token_recall``,
        and with ``_NAME`` for each type; ``mention_precision``; ``token_precision``.

    Raises:
        DataError: a document has another layout, or masks belong to no document.

    >>> place = {"entity_id": "1", "entity_type": "PERSON", "start_offset": 0, "end_offset": 10}
    >>> mentions = {"a": {"entity_mentions": [place | {"identifier_type": "DIRECT"}]}}
    >>> document = {"doc_id": "d", "text": "Mr Ada Low, 31", "annotations": mentions}
    >>> scores = tab_scores([document], {"d": [(3, 14)]})
    >>> scores["recall_direct_entities"].value, scores["mention_precision"].value
    (1.0, 0.0)
    """
    hits, owners = defaultdict[str, list[bool]](list), defaultdict[str, list[int]](list)
    try:
        chosen = [document for document in documents if document["doc_id"] in masks]
        for number, document in enumerate(chosen):
            for name, hit in _hits(document, [tuple(span[:2]) for span in masks[document["doc_id"]]], nlp):
                hits[name].append(hit)
                owners[name].append(number)
    except (KeyError, TypeError, AttributeError):
        raise DataError("documents must be in the layout of TAB, and masks lists of (start, end) by doc_id") from None
    if len(chosen) < len(masks):
        raise DataError(f"masks of {len(masks) - len(chosen)} documents belong to no document")
    return {
        name: mean_of_people(rows, owners[name]) if len(set(owners[name])) > 1 else share(sum(rows), len(rows))
        for name, rows in hits.items()
    }


def _hits(document: Mapping[str, Any], spans: list[tuple[Any, ...]], nlp: Any) -> Iterator[tuple[str, bool]]:
    text, parts = document["text"], list(spans)
    hidden = np.array([character in " ,.-;:/&()[]–'\"’“”" for character in text], dtype=bool)
    parts += [word for word in _words(text) if text[slice(*word)].lower() in (_TITLES if nlp else _IGNORED)]
    parts += [(token.idx, token.idx + len(token)) for token in nlp(text) if token.pos_ in _TAGS] if nlp else []
    for start, end in parts:
        hidden[start:end] = True
    for annotator in document["annotations"].values():
        entities, needed = defaultdict[str, list[Any]](list), list[tuple[int, int]]()
        for mention in annotator["entity_mentions"]:
            place = mention["start_offset"], mention["end_offset"]
            entities[mention["entity_id"]].append((place, mention["identifier_type"], mention["entity_type"]))
            needed += [place] * (mention["identifier_type"] != "NO_MASK")
        for mentions in entities.values():
            if decisions := [hidden[slice(*place)].all() for place, need, _ in mentions if need != "NO_MASK"]:
                _, identifier, kind = mentions[0]
                for name in ("all", "direct" if identifier == "DIRECT" else "quasi", kind):
                    yield f"recall_{name}_entities", all(decisions)
                for place, _, _ in mentions:
                    yield "mention_recall", bool(hidden[slice(*place)].all())
                    for start, end in _words(text, *place):
                        for name in ("token_recall", f"token_recall_{kind}"):
                            yield name, bool(hidden[start:end].all())
        for span in spans:
            for name, parts in (("mention_precision", [span]), ("token_precision", _words(text, *span))):
                for start, end in parts:
                    yield name, any(low <= start and end <= high for low, high in needed)


def _words(text: str, *place: int) -> list[tuple[int, int]]:
    return [match.span() for match in re.compile(r"\w+").finditer(text, *place)]


def presidio_samples(texts: Iterable[str], spans: Iterable[Iterable[Span]]) -> list[dict[str, Any]]:
    """Return texts with spans (`Redaction.spans`) in the JSON layout of presidio-evaluator. *Contains the texts.*

    >>> (sample,) = presidio_samples(["Mail a@b.org"], [[Span(5, 12, "email")]])
    >>> sample["spans"]
    [{'entity_type': 'EMAIL_ADDRESS', 'entity_value': 'a@b.org', 'start_position': 5, 'end_position': 12}]
    """
    entities, samples = {kind: entity for entity, kind in KIND_OF_ENTITY.items()}, []
    keys = ("entity_type", "entity_value", "start_position", "end_position")
    for text, parts in zip(texts, spans, strict=True):
        rows = ((entities.get(kind, kind.upper()), text[start:end], start, end) for start, end, kind in parts)
        samples.append({"full_text": text, "spans": [dict(zip(keys, row, strict=True)) for row in rows]})
    return samples
