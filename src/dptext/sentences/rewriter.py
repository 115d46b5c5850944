"""Replacement of sentences or documents with texts of a public bank: subset selection under pure local DP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.subset_selection import SubsetSelection, best_size
from dptext.privacy.guarantee import Guarantee, PureDP, Unit, for_group
from dptext.privacy.neighbours import ANY_TWO, Condition, SameSentenceCount
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.wording import GUESSED_AMONG, RELINKING, render
from dptext.release.mechanism import Replacing, TextMechanism
from dptext.release.release import Tally
from dptext.representations.encoders import check_texts
from dptext.sentences.bank import TextBank
from dptext.text.tokens import sentences
from dptext.validation import check_choice, check_float, check_int

UnitOfEpsilon: TypeAlias = Literal["sentence", "document"]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_AT_ONCE = 2048  # parts per batch of encoding and search
_MEMBERS = 1 << 22  # set members per batch
_MOST_SENTENCES = 10**6


class BankRewriter(TextMechanism):
    """Replace documents, or each of their sentences, with texts of a public bank, preferring similar ones.

    Each *part* x (a sentence, or the whole document) has a set S(x) of the k bank texts that are most similar to it.
    A bank text is drawn with weight a if it is in S(x), and with weight b otherwise. The weights are integers with
    a / b <= e^epsilon (`dptext.noise.subset_selection`).

    **Guarantee** (local; substitution).

    * ``unit="sentence"``: pure epsilon-DP for any two sentences. A document of n sentences has n epsilon, compared with
      documents of the same number of sentences; this number is exposed.
    * ``unit="document"``: pure epsilon-DP for **any** two documents. With ``max_sentences`` = n, the output always has
      n sentences, each with epsilon / n: sentences after the n-th are removed, and missing ones are replaced as the
      empty text, which the mechanism treats like any other. Without it, one text replaces the whole document.

    *Proof.* S(x) has k members for every x and depends on x and the public bank only, so the privacy loss of a part
    is at most epsilon (`SubsetSelection`). The parts of a document are drawn independently, so their losses add up;
    neighbours have the same number of parts. The weights are integers, so no rounding errors arise. Assumptions:
    the bank and its encoder are public and were fixed without regard to the private texts.

    A private text that is also in the bank has the same guarantee as others: it can be its own output, but every other
    input also has this output, at most e^epsilon times less often. A bank that was built or pruned with the private
    texts voids the guarantee.

    **Not covered.** An epsilon of 8 multiplies the odds of a guess by up to 2,981: an adversary who knows the
    candidates often finds the right one (`relinking`). The bank's authors wrote the output: see `dptext.TextBank`.

    Args:
        bank: public texts.
        epsilon: privacy budget (nats) of a unit.
        unit: privacy unit of epsilon, a sentence or a document.
        max_sentences: maximum number of sentences replaced per document; with ``unit="document"``, the exact number.
        size: k, the same for all texts; None: the k with the largest average similarity, computed from public data
            (`dptext.noise.subset_selection.best_size`).

    Raises:
        ParameterError: a number is out of range, or the unit is unknown.

    >>> texts = ["I like tea.", "She drinks tea.", "He pays his tax.", "Taxes are due."]
    >>> bank = TextBank(texts, encoder="words", cache=False)
    >>> rewriter = BankRewriter(bank, epsilon=3.0, unit="document", size=1)
    >>> rewriter.probabilities("tea is what I like").round(3)
    array([0.87 , 0.043, 0.043, 0.043])
    >>> print(rewriter.statement.guarantee, "for", rewriter.statement.neighbours)
    3-differential privacy (pure) for any two texts
    """

    name = "BankRewriter"

    def __init__(
        self,
        bank: TextBank,
        *,
        epsilon: float,
        unit: UnitOfEpsilon = "sentence",
        max_sentences: int | None = None,
        size: int | None = None,
    ) -> None:
        if not isinstance(bank, TextBank):
            raise ParameterError(f"bank must be a TextBank, got {type(bank).__name__}: use dptext.TextBank(texts)")
        self.bank = bank
        self.epsilon = check_float("epsilon", epsilon, above=0)
        self.unit: UnitOfEpsilon = check_choice("unit", unit, get_args(UnitOfEpsilon))
        self.max_sentences = max_sentences
        if max_sentences is not None:
            self.max_sentences = check_int("max_sentences", max_sentences, minimum=1, maximum=_MOST_SENTENCES)
        shared = self.max_sentences if self.unit == "document" else None
        of_a_part = self.epsilon if shared is None else _share(self.epsilon, shared)
        if size is None:
            k = best_size(of_a_part, bank.profile)
        else:
            k = check_int("size", size, minimum=1, maximum=len(bank) - 1)
        self.selection = SubsetSelection(len(bank), k, of_a_part)
        self._freeze()

    @property
    def size(self) -> int:
        """Number k of bank texts in the set of a part."""
        return self.selection.size

    @property
    def statement(self) -> PrivacyStatement:
        """Privacy statement for one part: a sentence, or a whole document."""
        return self._statement(PureDP(self.epsilon), Unit(self.unit), ANY_TWO)

    def document_statement(self, longest: int, *, seeded: bool = False) -> PrivacyStatement:
        if self.unit == "document":
            return self.statement.replace(seeded=seeded)
        guarantee = for_group(PureDP(self.epsilon), longest) if longest else PureDP(0.0)
        statement = self._statement(
            guarantee,
            Unit.DOCUMENT,
            Condition(requirements=(SameSentenceCount(),), note="losses add up over sentences"),
        )
        counted = {"sentences_counted": longest, RELINKING: self.relinking(GUESSED_AMONG, parts=max(1, longest))}
        return statement.replace(seeded=seeded, parameters={**statement.parameters, **counted})

    @property
    def longest_document(self) -> int | None:
        return 1 if self._is_whole else self.max_sentences

    def _statement(self, guarantee: Guarantee, unit: Unit, condition: Condition) -> PrivacyStatement:
        exposed = [
            "texts of the bank, word for word, with the names, numbers and claims of their authors, who are not "
            "protected"
        ]
        if unit is not Unit.SENTENCE and self.unit == "document":
            exposed.insert(0, "the number of documents, and their order")
        elif unit is not Unit.SENTENCE:
            maximum = self.max_sentences
            cut = "" if maximum is None else f" (at most {maximum}; later sentences were removed unread)"
            exposed.insert(0, f"the number of documents, their order, and the number of sentences in each{cut}")
        return self._statement_of(
            guarantee,
            unit=unit,
            condition=condition,
            assumptions=(
                "the bank is public and was chosen without regard to the private texts; no text was removed because it "
                "occurs in them",
                *self.bank.features.assumptions(),
            ),
            exposed=tuple(exposed),
        )

    def parameters(self) -> dict[str, Parameter]:
        """Return the public parameters, for the privacy statement."""
        return {
            "epsilon": self.epsilon,
            "unit_of_epsilon": self.unit,
            "max_sentences": self.max_sentences,
            "size": self.size,
            f"pure_epsilon_of_a_{'document' if self._is_whole else 'sentence'}": self.selection.epsilon,
            "chance_of_the_set": self.size * self.selection.probabilities[0],
            RELINKING: self.relinking(GUESSED_AMONG),
            **self.bank.parameters(),
        }

    def summary_before_release(self) -> str:
        return render("before_bank", mechanism=self)

    @property
    def _is_whole(self) -> bool:
        return self.unit == "document" and self.max_sentences is None

    @property
    def part_statement(self) -> PrivacyStatement:
        """Privacy statement for one draw. The sentences of a document share a document budget equally."""
        if self._is_whole or self.unit == "sentence":
            return self.statement
        statement = self._statement(PureDP(self.selection.epsilon), Unit.SENTENCE, ANY_TWO)
        return statement.replace(parameters={**statement.parameters, RELINKING: self.relinking(GUESSED_AMONG, parts=1)})

    def relinking(self, people: int, texts: Iterable[str | None] | None = None, *, parts: int | None = None) -> float:
        """Return the probability that an adversary who knows n equally likely people's texts identifies the author.

        It is an upper bound, or the exact value for people with these public texts
        (`dptext.noise.subset_selection.SubsetSelection.relinking`).

        Args:
            people: number n of people, at least 1.
            texts: one text (one part) per person; None: any texts.
            parts: number of output parts of one person; None: all parts of a document if epsilon is for a document,
                else one sentence.

        Raises:
            ParameterError: people or parts is below 1, texts is not one per person, or texts comes with several parts.
        """
        if parts is None:
            parts = 1 if self.unit == "sentence" or self.max_sentences is None else self.max_sentences
        if texts is None:
            return self.selection.relinking(people, parts=parts)
        if parts != 1:
            raise ParameterError(
                f"texts give the exact probability for one part, got parts={parts}: use parts=1, or omit texts"
            )
        originals = check_texts(texts)
        if len(originals) != check_int("people", people, minimum=1):
            raise ParameterError(f"expected one text for each of {people:,} people, got {len(originals):,}")
        is_in_one = np.zeros(len(self.bank), dtype=np.bool_)
        for _, _, sets in self._sets(originals):
            is_in_one[sets] = True
        return self.selection.relinking(people, int(np.count_nonzero(is_in_one)))

    def parts(self, text: str) -> list[str]:
        """Return the parts to replace: sentences, truncated or padded for the unit, or the whole text."""
        if self._is_whole:
            return [text]
        sentence = sentences(text)[: self.max_sentences]
        if self.unit == "document":
            sentence += [""] * ((self.max_sentences or 0) - len(sentence))
        return sentence

    def replacing(self) -> Replacing:
        return self._replace

    def _replace(self, texts: Sequence[str], bits: RandomBits) -> tuple[list[str], Tally]:
        parts = [self.parts(text) for text in texts]
        flat = [*chain.from_iterable(parts)]
        draws = self._drawn(flat, bits)
        counts = [len(part) for part in parts]
        private = [" ".join(draws[start:end]) for start, end in pairwise(accumulate(counts, initial=0))]
        kept, unchanged = sum(map(_is_same, flat, draws)), sum(map(_is_same, texts, private))
        return private, Tally(longest=max(counts, default=0), words=len(draws), kept=kept, unchanged=unchanged)

    def sample(self, texts: Iterable[str | None], *, seed: int | None = None) -> list[str]:
        """Draw one bank text for each text independently; each text is one part.

        Args:
            texts: strings; a missing text counts as empty.
            seed: None for cryptographic randomness; an integer for tests and papers only.
        """
        return self._drawn(check_texts(texts), RandomBits(seed))

    def probabilities(self, text: str) -> Floats:
        """Return (N,) float64 probabilities of the bank texts for one part."""
        return np.asarray(self.distributions([text])[0])

    def distributions(self, texts: Iterable[str | None]) -> Floats:
        """Return the (n, N) float64 probabilities from which the sampler draws, for n parts."""
        parts = check_texts(texts)
        result = np.empty((len(parts), len(self.bank)))
        for start, which, sets in self._sets(parts):
            result[start : start + len(which)] = self.selection.distributions(sets)[which]
        return result

    def _sets(self, parts: Sequence[str]) -> Iterator[tuple[int, Rows, Rows]]:
        """Yield, for each block of parts, its start, the set index of each part, and the distinct sets."""
        at_once = max(1, min(_AT_ONCE, _MEMBERS // self.size))
        for start in range(0, len(parts), at_once):
            part_block = parts[start : start + at_once]
            distinct = {part: place for place, part in enumerate(dict.fromkeys(part_block))}
            which = np.fromiter((distinct[part] for part in part_block), dtype=np.int64, count=len(part_block))
            yield start, which, self.bank.nearest(self.bank.features.vectors([*distinct]), self.size)

    def _drawn(self, parts: Sequence[str], bits: RandomBits) -> list[str]:
        rows, places = self.selection.choose(bits, len(parts))
        for start, which, sets in self._sets(parts):
            # computed for all parts, even if a draw needs no set, so that the running time does not reveal which do
            inside = np.flatnonzero(places[start : start + len(which)] >= 0)
            rows[start + inside] = sets[which[inside], places[start + inside]]
        return [self.bank.texts[row] for row in rows.tolist()]


def _is_same(text: str, private: str) -> bool:
    """Return True if a text is unchanged except for white space and case."""
    plain = text.casefold().split()
    return bool(plain) and plain == private.casefold().split()


def _share(epsilon: float, parts: int) -> float:
    """Return the largest epsilon per part whose total is at most ``epsilon``."""
    entry = epsilon / parts
    while Fraction(entry) * parts > Fraction(epsilon):
        entry = math.nextafter(entry, 0.0)
    return entry
