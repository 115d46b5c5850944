"""Presidio removes the names that it finds; all other words, including missed names, pass a word mechanism.

Run it with: python examples/presidio.py   (pip install "dptext[glove]" presidio-anonymizer)
"""

from collections.abc import Sequence
from itertools import pairwise

from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import RecognizerResult

import dptext
from dptext.errors import ParameterError
from dptext.privacy.neighbours import Stated
from dptext.privacy.statement import new_release_id
from dptext.text.tokens import Kind, split
from dptext.words.mechanism import WordMechanism


def anonymize(
    text: str, analyzer_results: Sequence[RecognizerResult], mechanism: WordMechanism
) -> tuple[str, dptext.PrivacyStatement]:
    """Replace each detected entity by ``<ENTITY_TYPE>`` and every other word by the mechanism.

    The pieces between the entities are privatized separately, so that a placeholder is never read as words. Presidio
    decides between overlapping entities.

    **Guarantee** (unit document, substitution, local): the guarantee of the mechanism for the words between the
    entities, for pairs of documents in which Presidio finds entities of the same types at the same positions. Types and
    positions are exposed. The text of an entity is removed: documents that differ only there have the same output
    distribution.

    Returns:
        The private text and its statement.

    Raises:
        ParameterError: the mechanism has a document budget, which counts the words of a whole text from its start.
    """
    if mechanism.max_words is not None:
        raise ParameterError(
            "a document budget counts the words of a whole text, and this text is privatized in pieces"
        )
    replaced = AnonymizerEngine().anonymize(text=text, analyzer_results=list(analyzer_results))
    entities = sorted(replaced.items, key=lambda item: item.start)
    # positions refer to Presidio's output, where the text between entities is unchanged
    bounds = [0, *(bound for item in entities for bound in (item.start, item.end)), len(replaced.text)]
    pieces = [replaced.text[start:end] for start, end in list(pairwise(bounds))[::2]]
    private = dptext.privatize(pieces, mechanism).texts
    placeholders = [replaced.text[item.start : item.end] for item in entities]
    joined = "".join(f"{piece}{after}" for piece, after in zip(private, [*placeholders, ""], strict=True))
    words = sum(token.kind is Kind.WORD for piece in pieces for token in split(piece))
    return joined, _statement(mechanism.document_statement(words))


def _statement(words: dptext.PrivacyStatement) -> dptext.PrivacyStatement:
    return words.replace(
        condition=words.condition.and_(
            Stated("Presidio finds entities of the same types at the same positions in both texts")
        ),
        exposed=(*words.exposed, "positions and types of the entities that Presidio found (each became <TYPE>)"),
        assumptions=(
            *words.assumptions,
            "nothing about the accuracy of Presidio: the mechanism replaced entities that it missed like other words",
        ),
        release_id=new_release_id(),
    )


def main() -> None:
    """Anonymize one text; in practice, ``AnalyzerEngine().analyze(text, language="en")`` finds the entities."""
    text = "Maria Lopez saw the doctor in Berlin; her brother Marek waited outside."
    result = [RecognizerResult("PERSON", 0, 11, 0.9), RecognizerResult("LOCATION", 30, 36, 0.8)]  # Marek was missed
    mechanism = dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=20_000), epsilon=10.0)
    private, statement = anonymize(text, result, mechanism)
    print(private)
    print(statement.explain())


if __name__ == "__main__":
    main()
