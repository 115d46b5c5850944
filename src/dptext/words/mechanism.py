"""Base classes of word mechanisms: draws and statements (`WordMechanism`), output distributions that can be read
(`ShownMechanism`), noise on the vector of a word (`NoisyVectors`); statements that include the training of the vectors.

Derivation: docs/mechanisms/words.md#words-trained-vectors
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from inspect import signature
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, constructor_fields
from dptext.errors import ParameterError, RefusedError
from dptext.noise.discrete import l2_laplace
from dptext.noise.selection import DistanceTable, TruncatedExponential
from dptext.privacy.guarantee import Guarantee, MetricDP, PureDP, Relation, Unit, for_group, product_upwards
from dptext.privacy.neighbours import Condition, Requirement, SameLayout, TextsOfOne
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import restated, substitution_guarantee, without_claim
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.wording import render
from dptext.release.mechanism import Replacing, TextMechanism
from dptext.release.release import Tally
from dptext.text.tokens import UNKNOWN
from dptext.threads import available_cores, for_each_block
from dptext.validation import check_float, check_int
from dptext.vectors.formats import VectorsLike, word_vectors
from dptext.vectors.metrics import MetricSpace
from dptext.vectors.search import ExactDistances, NearestNeighbours
from dptext.vectors.word_vectors import WordVectors
from dptext.words.replacing import WordReplacing

_PUBLIC = "the vocabulary, its vectors and all parameters are public: none was computed from protected texts"
_RELEASED_BEFORE = (
    "the vocabulary and its vectors were released before with their own statement; all other parameters are public or "
    "computed from these"
)
_ONLY_IN_TEXTS = (
    "the author of the words has no text in the training of the vectors; otherwise the loss in the statement of the "
    "vectors is added (dptext.statement_with_training)"
)
_OF_THE_RELEASED = "the part of the words is the bound for the vectors that were released, known when they were"


def statement_with_training(
    statement: PrivacyStatement, vectors: WordVectors, *, documents: int = 1
) -> PrivacyStatement:
    """Return the statement for a user with texts in a release *and* in the training of its vectors.

    Args:
        statement: the statement of a release of documents (``result.statement``) made with these vectors.
        vectors: vectors with a statement whose unit is the user, or the document.
        documents: the user's number of documents in the release.

    **Guarantee** (unit of the training, substitution): the training's guarantee, converted to substitution, plus
    ``documents`` times the release's, with slack included (proof: docs/mechanisms/words.md#words-trained-vectors).

    Raises:
        ParameterError: not a statement of documents, other vectors, vectors without a statement, or a number below 1.
        RefusedError: without proof: the unit of the training is a word or an example (a user may have any number), or a
            document and ``documents`` is above 1; a metric guarantee without a bound; zCDP with slack.

    >>> import dptext
    >>> training = PrivacyStatement(
    ...     guarantee=dptext.ApproxDP(1.0, 1e-6), unit=Unit.USER, relation=Relation.ADD_REMOVE,
    ...     condition="two corpora, one of which lacks the texts of one user",
    ...     trust=dptext.privacy.guarantee.Trust.CENTRAL, mechanism="skip-gram")
    >>> words = (["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    >>> vectors = dptext.load_vectors(words, statement=training)
    >>> result = dptext.privatize(["my cat"], dptext.TEM(vectors, epsilon=2.0, threshold=3.0))
    >>> both = statement_with_training(result.statement, vectors)
    >>> print(both.guarantee, both.unit, both.relation)
    (14.01, 3.72e-06)-differential privacy user substitution
    """
    training = vectors.statement
    if training is None:
        raise ParameterError("these vectors are public (they have no statement): there is nothing to add")
    if statement.unit is not Unit.DOCUMENT or statement.relation is not Relation.SUBSTITUTION:
        raise ParameterError(
            f"expected the statement of a release of documents, under substitution, got one about a {statement.unit} "
            f"under {statement.relation}"
        )
    if statement.parameters.get("vectors_sha256") != vectors.fingerprint:
        raise ParameterError("the statement belongs to other vectors (their fingerprint differs)")
    documents = check_int("documents", documents, minimum=1)
    if training.unit not in (Unit.USER, Unit.DOCUMENT) or (training.unit is Unit.DOCUMENT and documents > 1):
        raise RefusedError(
            f"the vectors protect one {training.unit} of their training texts, and one person may have any number "
            "of them: there is no total guarantee per person. Train the vectors with unit 'user'"
        )
    learned = restated(
        training, substitution_guarantee(training), relation=Relation.SUBSTITUTION, slack=0.0, claimed_epsilon=None
    )
    replaced = restated(
        statement,
        for_group(statement.whole_guarantee, documents),
        *((TextsOfOne(documents),) if training.unit is Unit.USER else ()),
        unit=training.unit,
        slack=0.0,
        claimed_epsilon=None,
    )
    text = "one document is replaced in the training of the vectors and in the release"
    if training.unit is Unit.USER:
        documents_text = "one document" if documents == 1 else f"{documents} documents"
        text = (
            f"the texts of one user are replaced: all in the training of the vectors, {documents_text} in the release"
        )
    both = learned.compose(replaced)
    return both.replace(
        condition=Condition(requirements=both.condition.requirements, note=text),
        parameters={**without_claim(dict(statement.parameters)), "documents_of_one": documents},
        assumptions=(
            *(assumption for assumption in both.assumptions if assumption != _ONLY_IN_TEXTS),
            _OF_THE_RELEASED,
        ),
        data_sha256=statement.data_sha256,
        release_id=statement.release_id,
    )


Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_LAYOUT = (
    "the number of documents, their order, and the number of words in each",
    "the layout: punctuation, symbols, spaces and line breaks, and their positions between the words",
    "positions and kinds of numbers, URLs, e-mail addresses and handles (each became a fixed placeholder)",
)
_MANY_UNKNOWN = 0.2  # fraction of unknown words above which a warning recommends other vectors
_BATCH = 2048  # occurrences per task; each task has its own random stream, so another number would change seeded draws
_MOST_BATCHES = 4  # that are searched together
_MOST_NOISE = 1e9  # mean length of the noise, in diameters: float64 still sees the words
_GRID_BITS = 20  # noisy vectors are rounded to 2^-20 of the vocabulary's diameter before the search


class WordMechanism(TextMechanism):
    """A randomised map from the words of a public vocabulary to its words. Frozen, without random state.

    Args:
        vectors: public word vectors (or their name or path: the 50,000 most frequent words), or vectors released under
            a statement; the mechanism's statement then covers only users who are not in their training
            (see `dptext.statement_with_training`).
        epsilon: the loss for two words at distance d is at most epsilon * d, unless the mechanism states otherwise.

    A word outside the vocabulary counts as the element ``"<unk>"``, with its public vector.
    """

    keeps_marks = True
    document_epsilon: float | None = None
    """Upper bound on the privacy loss of a document of any length; None: no bound."""
    max_words: int | None = None
    """Maximum number of words read per document; later words become ``"<unk>"``. None: no limit."""
    labels: Rows | None = None
    """(V,) public groups of the words, if the guarantee covers only pairs of one group."""
    claimed_epsilon: float | None = None
    """The epsilon that the paper prints for a word, if it differs from the proved one."""

    def __init__(self, vectors: VectorsLike, *, epsilon: float) -> None:
        vectors = word_vectors(vectors)
        if len(vectors) < 2:
            raise ParameterError(f"expected at least two words (one and {UNKNOWN!r}), got {len(vectors)}")
        self.vectors = vectors
        self.epsilon = check_float("epsilon", epsilon, above=0)

    @abstractmethod
    def word_guarantee(self) -> Guarantee:
        """Return the guarantee for one word: NoGuarantee for a published variant without proof."""

    @abstractmethod
    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        """Draw one output row for each row, independently."""

    @property
    def slack(self) -> float:
        """Upper bound on the loss that finite arithmetic adds per word, in nats."""
        return 0.0

    def requirements(self) -> tuple[Requirement, ...]:
        """Return the conditions on two words under which the guarantee holds between them."""
        return ()

    def exposes(self) -> tuple[str, ...]:
        """Return the properties of a word that the output shows without protection, for the statement."""
        return ()

    def parameters(self) -> dict[str, Parameter]:
        of_training: dict[str, Parameter] = {}
        if (training := self.vectors.statement) is not None:
            promise = f"{training.guarantee}; unit {training.unit}, {training.relation}"
            of_training = {"vectors_promise": promise, "vectors_release": training.release_id}
        return {
            "epsilon": self.epsilon,
            "unknown": "unk",
            "vectors": self.vectors.source,
            "words": len(self.vectors),
            "dimension": self.vectors.dimension,
            "vectors_sha256": self.vectors.fingerprint,
            **of_training,
        }

    @classmethod
    def arguments_in(cls, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
        """Return the constructor arguments (except the vectors) from the parameters of a statement, or a KeyError."""
        names = {name: name.removesuffix("_") for name in signature(cls).parameters if name != "vectors"}
        if "unsafe_as_published" not in parameters:
            names.pop("unsafe_as_published", None)
        return {name: parameters[expected] for name, expected in names.items()}

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the proof beyond those of every release, for the statement."""
        return (_PUBLIC,) if self.vectors.statement is None else (_RELEASED_BEFORE, _ONLY_IN_TEXTS)

    def distance_table(self) -> DistanceTable:
        """Return the public distances between the words in the metric of the guarantee, by default Euclidean."""
        return ExactDistances(self.vectors.matrix)

    def sample(self, words: Iterable[str], *, seed: int | None = None) -> list[str]:
        """Draw one private word per word, independently.

        Args:
            words: words; case is folded, words outside the vocabulary count as ``"<unk>"``.
            seed: None for cryptographic randomness; an integer for tests and papers only.
        """
        if isinstance(words, str):
            raise ParameterError("words must be a list of strings, got a single string: split it, or use privatize")
        names = list(words)
        for place, word in enumerate(names):
            if not isinstance(word, str):
                raise ParameterError(f"words must be strings, entry {place} is {type(word).__name__}")
        known = self.vectors.words
        return [known[draws] for draws in self.sample_rows(self._rows(names), RandomBits(seed))]

    def _rows(self, words: list[str]) -> Rows:
        return np.array([self.vectors.vocabulary.row(word) for word in words], dtype=np.int64)

    def sample_rows(self, rows: Rows, bits: RandomBits) -> Rows:
        """Sample (n,) int64 output rows for (n,) int64 rows of the vocabulary; see `sample`."""
        return self._draw(rows, bits)

    @property
    def statement(self) -> PrivacyStatement:
        """The statement for one word: unit word, substitution, local."""
        return self._statement_of(
            self.word_guarantee(),
            unit=Unit.WORD,
            condition=Condition(requirements=(SameLayout(), *self.requirements())),
            assumptions=self.assumptions(),
            slack=self.slack,
            claimed_epsilon=self.claimed_epsilon,
        ).replace(exposed=self.exposes())

    def document_guarantee(self, longest: int) -> Guarantee:
        """Return the guarantee for replacing all words of a document of at most ``longest`` words."""
        word = self.word_guarantee()
        if isinstance(word, PureDP) and longest == 0:
            return PureDP(0.0)
        if not isinstance(word, MetricDP):
            return for_group(word, max(1, longest))
        return MetricDP(
            word.epsilon,
            f"summed {word.metric}",
            None if word.max_distance is None else product_upwards(longest, word.max_distance),
            word.space,
        )

    def document_statement(self, longest: int, *, seeded: bool = False) -> PrivacyStatement:
        """Return the statement for a document of at most ``longest`` protected words, which the output shows."""
        word, limit = self.word_guarantee(), self.max_words
        adds_up = "distances" if isinstance(word, MetricDP) else "losses"
        parameters: dict[str, Parameter] = {}
        if isinstance(word, MetricDP | PureDP):
            parameters["pure_epsilon_of_a_word"] = word.pure_epsilon if isinstance(word, MetricDP) else word.epsilon
        exposed = (*_LAYOUT, *self.exposes())
        if limit is not None:
            exposed = (*exposed, f"the fact that every word after the first {limit} of a document became {UNKNOWN}")
        return self._statement_of(
            self.document_guarantee(longest),
            unit=Unit.DOCUMENT,
            condition=Condition(
                requirements=(SameLayout(), *self.requirements()), note=f"{adds_up} add up over the places of the text"
            ),
            assumptions=self.assumptions(),
            slack=product_upwards(longest, self.slack),
            claimed_epsilon=self.claimed_epsilon,
        ).replace(
            exposed=exposed, seeded=seeded, parameters={**self.parameters(), **parameters, "words_counted": longest}
        )

    @property
    def longest_document(self) -> int | None:
        return self.max_words

    def summary_before_release(self) -> str:
        return render("before_words", mechanism=self, word=self.word_guarantee())

    def replacing(self) -> Replacing:
        return WordReplacing(self)

    def warning(self, tally: Tally) -> str | None:
        if tally.unknown <= _MANY_UNKNOWN * tally.words:
            return None
        return (
            f"{tally.unknown / tally.words:.0%} of the words are unknown to these vectors and became random words "
            "through <unk>: use vectors of the language of the texts, or load more of them (limit)"
        )

    def _repr_fields(self) -> Fields:
        yield from (field for field in constructor_fields(self) if field[0] != "vectors")
        yield from self.vectors._repr_fields()


class ShownMechanism(WordMechanism):
    """A word mechanism whose output distribution is known for every word."""

    @abstractmethod
    def _shares(self, rows: Rows) -> npt.NDArray[np.float64]:
        """Return (n, V) probabilities from which `_draw` draws for each of n rows."""

    def probabilities(self, word: str) -> npt.NDArray[np.float64]:
        """Return (V,) float64 probabilities that ``word`` becomes each word; see `distributions`."""
        return self.distributions([word])[0]  # type: ignore[no-any-return]

    def distributions(self, words: list[str]) -> npt.NDArray[np.float64]:
        """Return (n, V) float64 exact distributions of `sample` for n words, from the integer weights."""
        return self._shares(self._rows(words))


class SelectingMechanism(ShownMechanism):
    """A word mechanism that draws from integer weights over distances in a metric space (`dptext.noise.selection`)."""

    _space: MetricSpace
    _selection: TruncatedExponential

    @property
    def slack(self) -> float:
        """Upper bound on the loss that finite arithmetic adds per word, in nats (`dptext.noise.selection`)."""
        return self._selection.slack

    def assumptions(self) -> tuple[str, ...]:
        exact = f"{self._space.functions} by at most 4 units in the last place (IEEE 754, numpy)"
        return (*super().assumptions(), exact, *self._space.assumptions)

    def weights(self, words: list[str]) -> npt.NDArray[np.uint64]:
        """Return (n, V) uint64 weights from which the exponential mechanism draws for each of n words."""
        return self._selection.weights(self._rows(words))

    def _shares(self, rows: Rows) -> npt.NDArray[np.float64]:
        weights = self._selection.weights(rows)  # each row's sum fits into 64 bits
        return np.asarray(weights / weights.sum(axis=1, dtype=np.uint64, keepdims=True))

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        return self._selection.sample(rows, bits)


class NoisyVectors(WordMechanism):
    """Noise on the word's vector (`dptext.Madlib`'s by default), then a choice of a public word: post-processing."""

    def __init__(self, vectors: VectorsLike, *, epsilon: float) -> None:
        super().__init__(vectors, epsilon=epsilon)
        vectors = self.vectors
        self._neighbours = NearestNeighbours(vectors.matrix)
        self._step = 2.0 ** (math.ceil(math.log2(vectors.diameter_bound or 1.0)) - _GRID_BITS)
        if vectors.dimension / self.epsilon > _MOST_NOISE * max(vectors.diameter_bound, self._step):
            raise ParameterError(
                f"epsilon {self.epsilon:g} is too small: the noise exceeds {_MOST_NOISE:.0e} times the diameter of "
                "the vocabulary. Use a larger epsilon"
            )

    def _noise(self, bits: RandomBits, count: int) -> Floats:
        """Return (count, d) independent noise vectors, of density proportional to exp(-epsilon ||z||)."""
        return l2_laplace(bits, count, self.vectors.dimension, 1.0 / self.epsilon)

    def word_guarantee(self) -> MetricDP:
        """Return metric DP with distances capped at the public diameter."""
        vectors = self.vectors
        return MetricDP(self.epsilon, "euclidean", vectors.diameter_bound, vectors.fingerprint)

    _wanted = 1
    """Number of neighbours of the noisy vector that `_choose` needs."""

    def _choose(self, near: Rows, _noisy: Floats, _rows: Rows, _bits: RandomBits) -> Rows:
        """Choose (n,) output rows from the (n, wanted) nearest ones. A private mechanism must not use ``_rows``."""
        return near[:, 0]

    def assumptions(self) -> tuple[str, ...]:
        return (
            *super().assumptions(),
            "the noise, drawn in double precision with 53-bit tails, behaves like real-valued noise; only the "
            f"{self._released} of the noisy vector, rounded to a public grid, is released",
        )

    _released = "nearest word"

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        draws = np.empty(rows.size, dtype=np.int64)
        batches = [slice(start, min(start + _BATCH, rows.size)) for start in range(0, rows.size, _BATCH)]
        streams = bits.spawn(len(batches))

        def draw(task: range) -> None:
            noisy = np.concatenate([self._noisy(rows[batches[entry]], streams[entry]) for entry in task])
            near = self._neighbours.find_several(noisy, self._wanted)
            for place, entry in enumerate(task):
                part = slice(place * _BATCH, place * _BATCH + rows[batches[entry]].size)
                draws[batches[entry]] = self._choose(near[part], noisy[part], rows[batches[entry]], streams[entry])

        # long runs of batches cost less, but every core needs work
        longest = max(1, min(_MOST_BATCHES, self._neighbours.many // _BATCH))
        cores = available_cores()
        count = min(len(batches), -(-len(batches) // (longest * cores)) * cores)
        cuts = [len(batches) * index // count for index in range(count + 1)] if count else [0]
        for_each_block(draw, [range(*pair) for pair in pairwise(cuts)])
        return draws

    def _noisy(self, rows: Rows, bits: RandomBits) -> Floats:
        noisy = self._noise(bits, rows.size)
        noisy += self.vectors.matrix[rows]
        noisy /= self._step
        np.rint(noisy, out=noisy)
        noisy *= self._step
        return noisy
