"""Presidio removes the names it finds; every other word, missed names among them, goes through a word mechanism.

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
    """Replace each detected entity by ``<ENTITY_TYPE>`` and every other word by way of the mechanism.

    The text is cut at the entities and its pieces are privatized one by one, so that a placeholder is never taken for
    words. Presidio settles which of several overlapping entities counts.

    **Guarantee** (unit document, substitution, local): that of the mechanism for the words between the entities. The
    entities themselves are gone: two documents that differ in the text of an entity, however long, look the same as
    long as Presidio finds it in both. What Presidio finds hangs on the private words, so the promise is for pairs of
    documents in which it finds the same types at the same places: these are exposed.

    Returns:
        The private text, and what was promised.

    Raises:
        ParameterError: the mechanism has a document budget, which counts the words of a whole text from its start.
    """
    if mechanism.max_words is not None:
        raise ParameterError("a document budget counts the words of a whole text, here it comes in pieces")
    replaced = AnonymizerEngine().anonymize(text=text, analyzer_results=list(analyzer_results))
    entities = sorted(replaced.items, key=lambda item: item.start)
    # the places are those in Presidio's output, where everything between two entities is as it was
    edges = [0, *(edge for item in entities for edge in (item.start, item.end)), len(replaced.text)]
    between = [replaced.text[start:end] for start, end in list(pairwise(edges))[::2]]
    private = dptext.privatize(between, mechanism).texts
    placeholders = [replaced.text[item.start : item.end] for item in entities]
    joined = "".join(f"{piece}{after}" for piece, after in zip(private, [*placeholders, ""], strict=True))
    words = sum(token.kind is Kind.WORD for piece in between for token in split(piece))
    return joined, _statement(mechanism.document_statement(words))


def _statement(words: dptext.PrivacyStatement) -> dptext.PrivacyStatement:
    return words.replace(
        condition=words.condition.and_(
            Stated("Presidio finds entities of the same types at the same places in both, whatever these entities are")
        ),
        exposed=(*words.exposed, "where Presidio found entities, and the type of each (it became <TYPE>)"),
        assumptions=(
            *words.assumptions,
            "nothing about Presidio's accuracy: an entity that it missed went through the mechanism like any words, so "
            "it is hidden among near words and not removed",
        ),
        release_id=new_release_id(),
    )


def main() -> None:
    """One text; in practice its entities come from ``AnalyzerEngine().analyze(text, language="en")``."""
    text = "Maria Lopez saw the doctor in Berlin; her brother Marek waited outside."
    result = [RecognizerResult("PERSON", 0, 11, 0.9), RecognizerResult("LOCATION", 30, 36, 0.8)]  # Marek was missed
    mechanism = dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=20_000), epsilon=10.0)
    private, statement = anonymize(text, result, mechanism)
    print(private)
    print(statement.explain())


if __name__ == "__main__":
    main()
