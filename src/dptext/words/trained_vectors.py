"""Word mechanisms on vectors that were themselves trained on private texts, under a statement of their own.

Derivation: docs/mechanisms/words.md#words-trained-vectors
"""

from __future__ import annotations

from dptext.checks import whole
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.condition import Condition, TextsOfOne
from dptext.privacy.guarantee import Relation, Unit, for_group
from dptext.privacy.restating import restated, under_substitution, without_claim
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.vectors.word_vectors import WordVectors

__all__ = ["assumptions_about", "parameters_of_training", "statement_with_training"]

_PUBLIC = "the vocabulary, its vectors and all parameters are public: none was computed from protected texts"
_ONLY_IN_TEXTS = (
    "nobody whose words these are has text in the training of the vectors: whoever has loses what the statement of "
    "the vectors says on top (dptext.statement_with_training adds the two)"
)
_OF_THE_RELEASED = "the part of the words is the bound for the vectors that were released, known when they were"


def assumptions_about(vectors: WordVectors) -> tuple[str, ...]:
    """What the statement of a mechanism takes for granted about its vectors."""
    if vectors.statement is None:
        return (_PUBLIC,)
    return (
        "the vocabulary and its vectors were released before, under a statement of their own; all other parameters are "
        "public or computed from these",
        _ONLY_IN_TEXTS,
    )


def parameters_of_training(vectors: WordVectors) -> dict[str, Parameter]:
    """What the statement of a mechanism repeats of that of its vectors."""
    training = vectors.statement
    if training is None:
        return {}
    return {
        "vectors_promise": f"{training.guarantee}; unit {training.unit}, {training.relation}",
        "vectors_release": training.release_id,
    }


def statement_with_training(
    statement: PrivacyStatement, vectors: WordVectors, *, documents: int = 1
) -> PrivacyStatement:
    """What is promised to somebody who has text in a release *and* in the training of its vectors.

    Args:
        statement: of a release of documents (``result.statement``), made with these vectors.
        vectors: released under a statement whose unit is the user, or the document.
        documents: how many documents of the release are theirs.

    **Guarantee** (unit of the training, substitution): the training's, converted to substitution, plus ``documents``
    times the release's (see the top of `dptext.words.trained_vectors` for the proof). Slack is counted into epsilon.

    Raises:
        ParameterError: not a statement of documents, other vectors, vectors without a statement, or a number below 1.
        RefusedError: no proof: the unit of the training is a word or an example (of which a person has any number), or
            a document while several documents are theirs; a metric guarantee without a bound; zCDP with slack.

    >>> import dptext
    >>> training = PrivacyStatement(
    ...     guarantee=dptext.ApproxDP(1.0, 1e-6), unit=Unit.USER, relation=Relation.ADD_REMOVE,
    ...     condition="two corpora, one of which lacks the texts of one user",
    ...     trust=dptext.privacy.guarantee.Trust.CENTRAL,
    ...     mechanism="skip-gram", assumptions=("the vocabulary is public",))
    >>> words = (["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    >>> vectors = dptext.load_vectors(words, statement=training)
    >>> result = dptext.privatize(["my cat"], dptext.TEM(vectors, epsilon=2.0, threshold=3.0))
    >>> print(result.statement.guarantee)
    2 per unit of summed euclidean distance, never more than 12 for a pair (metric differential privacy)
    >>> both = statement_with_training(result.statement, vectors)
    >>> print(both.guarantee, both.unit, both.relation)
    (14.01, 3.72e-06)-differential privacy user substitution
    """
    training = vectors.statement
    if training is None:
        raise ParameterError("these vectors are public (they carry no statement): there is nothing to add")
    if statement.unit is not Unit.DOCUMENT or statement.relation is not Relation.SUBSTITUTION:
        raise ParameterError(
            f"expected the statement of a release of documents, under substitution, got one about a {statement.unit} "
            f"under {statement.relation}"
        )
    if statement.parameters.get("vectors_sha256") != vectors.fingerprint:
        raise ParameterError("the statement speaks of other vectors (their fingerprint differs)")
    documents = whole("documents", documents, least=1)
    if training.unit not in (Unit.USER, Unit.DOCUMENT) or (training.unit is Unit.DOCUMENT and documents > 1):
        raise RefusedError(
            f"the vectors protect one {training.unit} of their training, and a person may have any number of them "
            "there: nothing adds up for them; train the vectors with the user as unit"
        )
    learned = restated(
        training, under_substitution(training), relation=Relation.SUBSTITUTION, slack=0.0, claimed_epsilon=None
    )
    replaced = restated(
        statement,
        for_group(statement.whole_guarantee, documents),
        *((TextsOfOne(documents),) if training.unit is Unit.USER else ()),
        unit=training.unit,
        slack=0.0,
        claimed_epsilon=None,
    )
    whose = "one document is replaced in the training of the vectors and in the release"
    if training.unit is Unit.USER:
        theirs = "one document" if documents == 1 else f"{documents} documents"
        whose = f"the texts of one user are replaced: all in the training of the vectors, {theirs} in the release"
    both = learned.compose(replaced)
    return both.replace(
        condition=Condition(requirements=both.condition.requirements, note=whose),
        parameters={**without_claim(dict(statement.parameters)), "documents_of_one": documents},
        assumptions=(*(each for each in both.assumptions if each != _ONLY_IN_TEXTS), _OF_THE_RELEASED),
        data_sha256=statement.data_sha256,
        release_id=statement.release_id,
    )
