"""A mechanism of a new kind works in memory, files, processes and batches, and the ledger charges the maximum loss."""

import json
import pickle

import numpy as np
import pytest

from dptext import (
    TEM,
    BankRewriter,
    MeanOfWords,
    SubsetSelection,
    TextBank,
    load_vectors,
    privatize,
    privatize_file,
)
from dptext.errors import ParameterError, RefusedError
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import PureDP, Relation, Trust, Unit
from dptext.privacy.statement import release_statement
from dptext.release.mechanism import Rewriter, TextMechanism
from dptext.release.release import Tally

PUBLIC = ("Yes.", "No.", "Perhaps.")
TEXTS = ["One. Two. Three.", None, "", "Alone", "A. B."]


class Answers(TextMechanism):
    """Every sentence becomes one of three, drawn without looking at it."""

    name = "answers"

    def __init__(self, *, shows=True):
        self.shows = shows
        self._freeze()

    @property
    def statement(self):
        return self._rebuild_randomizer(0.0, Unit.EXAMPLE, self.parameters())

    def parameters(self):
        return {"shows": self.shows}

    def document_statement(self, longest, *, seeded=False):
        output = self._rebuild_randomizer(0.0, Unit.DOCUMENT, {**self.parameters(), "sentences_counted": longest})
        return output.replace(exposed=("the number of sentences",), seeded=seeded)

    def _rebuild_randomizer(self, epsilon, unit, parameters):
        return release_statement(
            guarantee=PureDP(epsilon),
            unit=unit,
            relation=Relation.SUBSTITUTION,
            trust=Trust.LOCAL,
            mechanism=self.name,
            parameters=parameters,
        )

    def summary_before_release(self):
        return "claims everything"

    def replacing(self):
        return self._replaced

    def _replaced(self, texts, bits):
        assert None not in texts
        counts = [text.count(".") + (text[-1:] not in ("", ".")) for text in texts]
        draws = iter(bits.below(np.full(sum(counts), len(PUBLIC), dtype=np.uint64)).tolist())
        private = [" ".join(PUBLIC[next(draws)] for _ in range(count)) for count in counts]
        return private, Tally(longest=max(counts, default=0), words=sum(counts))

    def warning(self, tally):
        return "many answers" if tally.words > 5 else None


def shape(texts):
    """The number of answers per text."""
    texts = list(texts)
    assert all(part in PUBLIC for text in texts for part in (text or "").split())
    return [None if text is None else len(text.split()) for text in texts]


def test_texts_in_memory_reach_the_mechanism_without_missing_ones(caplog):
    release = privatize(TEXTS, Answers())
    assert shape(release.texts) == [3, None, 0, 1, 2]
    assert (release.tally.longest, release.tally.missing, release.tally.words) == (3, 1, 6)
    assert release.statement.parameters["sentences_counted"] == 3
    assert release.statement.exposed == ("the number of sentences", "which rows had no text (null)")
    assert [record.getMessage() for record in caplog.records] == ["many answers"]
    assert "null" not in " ".join(privatize(["One."], Answers()).statement.exposed)


@pytest.mark.slow
def test_a_seed_gives_the_same_texts_in_any_number_of_processes(tmp_path):
    rows = [text for text in TEXTS * 900 if text is not None]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    for processes in (1, 2):
        out = tmp_path / f"{processes}.jsonl"
        privatize_file(tmp_path / "in.jsonl", out, Answers(), seed=5, processes=processes)
        written = [json.loads(line)["text"] for line in out.read_text().splitlines()]
        assert written == privatize(rows, Answers(), seed=5).texts and shape(written) == [3, 0, 1, 2] * 900
    assert privatize(rows, Answers(shows=False), seed=5).texts != written  # other parameters, other noise


def test_a_mechanism_is_frozen_can_be_pickled_and_must_be_complete():
    mechanism = pickle.loads(pickle.dumps(Answers()))
    with pytest.raises(AttributeError, match="a mechanism is immutable, 'shows' cannot be set"):
        mechanism.shows = False
    assert shape(Rewriter(mechanism).rewrite(TEXTS)) == [3, None, 0, 1, 2]
    assert TextMechanism.warning(Answers(), Tally(words=100)) is None
    with pytest.raises(TypeError, match="abstract"):
        TextMechanism()
    with pytest.raises(ParameterError, match=r"must be a TextMechanism .* got str$"):
        Rewriter("tem")


WORDS = ("tea", "milk", "tax", "fee", "dog", "cat")
VECTORS = load_vectors((WORDS, np.random.default_rng(3).normal(size=(6, 4))))
BANK = TextBank([f"{one} {other}" for one in WORDS for other in WORDS], encoder=MeanOfWords(VECTORS), cache=False)
PRICES = {
    "for each word, without a limit": (lambda: SubsetSelection(VECTORS, epsilon=2.0), None),
    "for each word, three at most": (lambda: SubsetSelection(VECTORS, epsilon=2.0, max_words=3), 6.0),
    "a unit of distance": (lambda: TEM(VECTORS, epsilon=2.0), 2.0),
    "a document's words": (lambda: TEM(VECTORS, epsilon=5.0, document_epsilon=4.0, max_words=3), 4.0),
    "for each sentence, without a limit": (lambda: BankRewriter(BANK, epsilon=2.0), None),
    "for each sentence, three at most": (lambda: BankRewriter(BANK, epsilon=2.0, max_sentences=3), 6.0),
    "a document as a whole": (lambda: BankRewriter(BANK, epsilon=2.0, unit="document"), 2.0),
    "a document's sentences": (lambda: BankRewriter(BANK, epsilon=2.0, unit="document", max_sentences=3), 2.0),
}


@pytest.mark.parametrize("name", PRICES)
def test_a_ledger_charges_what_any_document_may_lose(tmp_path, name):
    build, price = PRICES[name]
    book, texts, out = tmp_path / "book", tmp_path / "in.txt", tmp_path / "out.txt"
    texts.write_text("tea. milk? tax!\ndog\n")
    Ledger.create(book, epsilon=10.0)
    if price is None:  # a hundred sentences may follow
        with pytest.raises(RefusedError, match=r"limit the replaced parts \(max_words, max_sentences\)"):
            privatize_file(texts, out, build(), ledger=book)
        assert (out.exists(), Ledger(book).releases()) == (False, [])
        return
    release = privatize_file(texts, out, build(), ledger=book)
    assert Ledger(book).left("dog").spent == Ledger(book).left("tea. milk? tax!").spent == price
    assert release.statement.guarantee.epsilon <= price
