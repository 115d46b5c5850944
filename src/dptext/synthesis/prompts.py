"""Sources of candidate texts: protocol, prompts for language models, parsing of answers, and rounds of generation.

A prompt contains only a `Request`, public examples, texts that the model wrote, and the caller's public description.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, warn
from dptext.io.batches import Batch
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import Progress
from dptext.synthesis.density import Weights, choose_written, quotas
from dptext.synthesis.moments import OUTSIDE, Labels
from dptext.users.grouping import Chunk, UserTexts
from dptext.validation import encodable

_SAMPLED = 4096  # distinct texts: the standard error of an estimated fraction is at most .008
_WARNED, _REFUSED = 0.1, 0.5
"""Fraction of the distinct private texts that are in the pool. Random halves of one source have few texts in common:
4.1% of Yelp sentences, 3.6% of blog sentences, 3.2% of blog posts, 1.4% of SNIPS utterances."""
_FEWEST = 10  # distinct texts in both; a few stock phrases are not an overlap


@dataclass(frozen=True)
class Request:
    """Request for texts of one label; ``written`` are good texts that the source wrote."""

    label: Mapping[str, str]
    hints: tuple[str, ...]
    count: int
    examples: tuple[str, ...] = ()
    description: str = ""
    written: tuple[str, ...] = ()


@runtime_checkable
class Source(Protocol):
    """Source of candidate texts for a `TextDistribution`."""

    def propose(self, request: Request) -> Iterable[str]:
        """Return new texts of a label."""

    def parameters(self) -> dict[str, Parameter]:
        """Return parameters that identify the source, for the privacy statement."""

    def assumptions(self) -> tuple[str, ...]:
        """Return assumptions, for the privacy statement."""

    def exposed(self) -> tuple[str, ...]:
        """Return the recipients of data, for the privacy statement."""


class OverlapWarning(UserWarning):
    """Many private texts are also in the public pool. Only the owner sees this; it is not released."""


class TextSample:
    """Uniform sample of the distinct private texts, for comparison with a pool."""

    def __init__(self) -> None:
        self._digests: set[int] = set()

    def watch(self, people: Iterable[UserTexts]) -> Iterator[UserTexts]:
        """Yield the people unchanged, and add their texts to the sample while they are read."""
        for person in people:
            yield UserTexts(self._added(person.chunks()))

    def _added(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            self._add(chunk[0])
            yield chunk

    def add_block(self, block: Batch) -> None:
        """Add the texts of a block of rows; a missing text counts as empty."""
        self._add(text or "" for text in block.texts)

    def _add(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._digests.add(_digest(text))
            if len(self._digests) > 2 * _SAMPLED:
                self._digests = self._smallest()

    def _smallest(self) -> set[int]:
        return set(sorted(self._digests)[:_SAMPLED])

    def check_pool(self, pool: Iterable[str]) -> None:
        """Warn or raise before a release if the pool contains too many of the private texts."""
        sample = self._smallest()
        shared = len({digest for digest in map(_digest, pool) if digest in sample})
        share = shared / max(1, len(sample))
        if shared < _FEWEST or share <= _WARNED:
            return
        overlap = f"{share:.0%} of the distinct private texts are also in the public pool"
        if share > _REFUSED:
            raise ParameterError(
                f"{overlap}, and would be released unchanged: provide public texts that were chosen without regard to "
                "the private ones. Nothing was released"
            )
        warn(
            f"{overlap}, more than two samples of one source have in common: check the origin of the pool. This "
            "number is private: do not publish it",
            OverlapWarning,
        )


def _digest(text: str) -> int:
    content = " ".join(text.split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:8])


HINTS = 10
"""Number of hints per prompt; the next prompt continues with the following hints."""
EXAMPLES = 8
"""Number of examples per prompt; the next prompt continues with the following examples."""
_ABOUT = "Different short texts that people wrote"
_PROMPT_FORMAT = 2


class LanguageModel(ABC):
    """Source that lets a language model continue a list of texts; subclasses define `_write`."""

    name: str
    model: str
    about: str
    texts_per_call: int

    def propose(self, request: Request) -> list[str]:
        """Return up to ``request.count`` new texts of a label, fewer if some calls fail, `SourceError` if many do."""
        size = self.texts_per_call
        counts = [min(size, request.count - start) for start in range(0, request.count, size)]
        return self._write(
            [(list_prompt(request, about=self.about, turn=turn), count) for turn, count in enumerate(counts)]
        )

    @abstractmethod
    def _write(self, prompts: Sequence[tuple[str, int]]) -> list[str]:
        """Return the texts that continue each list, given with the number of requested texts."""

    def parameters(self) -> dict[str, Parameter]:
        return {
            "generator": self.name,
            "generator_model": self.model,
            "generator_about": self.about,
            "generator_prompt_format": _PROMPT_FORMAT,
        }

    def assumptions(self) -> tuple[str, ...]:
        return (
            f"the model '{self.model}' is public: it was not trained on the private texts",
            "the model received names and public descriptions of the labels, hints of the release, public examples and "
            "its own earlier texts, but no private text",
            "the texts were written by a language model: their claims may be false",
        )


def list_prompt(request: Request, *, about: str = "", turn: int = 0) -> str:
    """Return the beginning of a list of texts, which a model continues; each turn uses other hints and examples."""
    label = "; ".join(f"{column}: {value}" for column, value in request.label.items())
    topic = f"{label} ({request.description})" if label and request.description else label or request.description
    written = _rotated(request.written, turn, EXAMPLES - min(len(request.examples), EXAMPLES // 2))
    examples = [*_rotated(request.examples, turn, EXAMPLES - len(written)), *written]
    # hints are words of the pool, which may be of another domain
    hints = () if examples else _rotated(request.hints, turn, HINTS)
    shift = turn % max(1, len(examples))
    lines = [
        about or _ABOUT,
        *([topic] if topic else []),
        *([f"Typical words: {', '.join(hints)}"] if hints else []),
        "",
        *(f"- {' '.join(example.split())}" for example in [*examples[shift:], *examples[:shift]]),
        "-",
    ]
    return "\n".join(lines)


def _rotated(values: Sequence[str], turn: int, limit: int) -> list[str]:
    start = turn * limit % max(1, len(values))
    return [*values[start:], *values[:start]][:limit]


_ITEM = re.compile(r"(?:[(\[]?\d{1,4}[.):\]]|[-*•])\s+(?=\S)")
_REQUESTED_TEXTS = r"\b(?:texts?|examples?|sentences?|lists?|content|requests?)\b"
_NO_TEXT = re.compile(
    r"""[\W_]*$|\d+[.):\]]$|[\[{`]|<[/!|a-z]|\#+\s|"[^"]*"\s*:\s*(?:["\[{\d-]|true|false|null|$)|"""  # marks and JSON
    r"(?:sure|certainly|of course|okay|absolutely)\b(?: thing)?[,.!]*\s*"
    r"(?:$|here(?: is| are|['’]s)\b|i['’]d be (?:happy|glad)\b)|"
    r"(?:here(?: is| are|['’]s)|(?:below|these|the following) (?:is|are))\b[^.!?]{0,60}"
    rf"(?:{_REQUESTED_TEXTS}|\b(?:one|some|more)[.!]*$)|as an? (?:ai|language model)\b|"
    r"i hope (?:this|that|these|they) helps?[.!]*$|"
    r"(?:(?:i['’]m |i am )?(?:very |so )?sorry\b[,.]? (?:but )?|unfortunately,? )?"
    r"i(?: cannot| can['’]?t| can not|(?: am|['’]m) unable to|(?: am|['’]m) not able to| won['’]?t) "
    r"(?:write|help|assist|provide|create|fulfill?|generate|comply)\b"
    rf"(?: (?:you|to|for|with|any|more|such|this|that|these|those|it|your|the|kind|of))*(?:[.!]*$| {_REQUESTED_TEXTS})",
    re.IGNORECASE,
)
_CONTROLS: dict[int, str | None] = {**dict.fromkeys([*range(32), 127]), ord("\t"): " "}
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'"}


def texts_of(answer: str, limit: int, *, is_cut: bool = False) -> list[str]:
    """Return up to ``limit`` texts of an answer, one per line; the last line of a cut answer is none."""
    lines = answer.rpartition("</think>")[2].partition("<think>")[0].splitlines()
    if is_cut:
        lines = lines[:-1]
    return list(filter(None, map(text_of_line, lines)))[:limit]


def text_of_line(line: str) -> str:
    """Return the text of one line of a list; empty if there is none."""
    text = line.encode("utf-8", "ignore").decode().translate(_CONTROLS).strip()  # without lone surrogates
    if (mark := _ITEM.match(text)) is not None:
        text = text[mark.end() :]
    quoted = text.removesuffix(",") if text[:1] == '"' else text  # a line of a list in JSON
    if len(quoted) > 1 and _QUOTES.get(quoted[0]) == quoted[-1] and not {quoted[0], quoted[-1]} & {*quoted[1:-1]}:
        text = quoted[1:-1].strip()
    return "" if _NO_TEXT.match(text) or text.endswith(":") else text


# -- near copies ---------------------------------------------------------------------------------------------------

NEAR_COPY = 0.7
"""Two texts are near copies if at least this fraction of their word pairs is common to both (Jaccard index)."""


def near_copies(texts: Sequence[str], others: Iterable[str] = ()) -> set[int]:
    """Return the places of texts that are near copies of an earlier text, or of one of the others."""
    # Two sets with a Jaccard index of at least J share one of the first (1 - J) m + 1 of the m members of either, in
    # any fixed order: only texts that share one are compared. Rare members come first, as they have few texts.
    index: defaultdict[int, list[int]] = defaultdict(list)
    pairs = [_word_pairs(text) for text in texts]
    frequency = Counter(member for members in pairs for member in members)
    copies: set[int] = set()

    def first(members: frozenset[int]) -> list[int]:
        ordered = sorted(members, key=lambda member: (frequency[member], member))
        return ordered[: int((1 - NEAR_COPY) * len(members) + 1e-9) + 1]

    def similar(members: frozenset[int]) -> set[int]:
        places = {place for member in first(members) for place in index.get(member, ())}
        common = {place: len(members & pairs[place]) for place in places}
        sizes = {place: len(members) + len(pairs[place]) - count for place, count in common.items()}
        return {place for place in places if common[place] / sizes[place] >= NEAR_COPY}

    for place, members in enumerate(pairs):
        if similar(members):
            copies.add(place)
            continue
        for member in first(members):
            index[member].append(place)
    for text in others:
        copies |= similar(_word_pairs(text))
    return copies


def _word_pairs(text: str) -> frozenset[int]:
    words = ["", *re.findall(r"\w+", text.casefold()), ""]
    return frozenset(map(hash, pairwise(words)))


# -- rounds --------------------------------------------------------------------------------------------------------

Floats = npt.NDArray[np.float64]
CANDIDATES = 4
"""Default number of candidates per text of the corpus and round."""
_REQUESTED = 1.0  # evidence for the label that a text was requested for, in nats
_FARTHEST = 0.1  # quantile of nearness
_REPETITIVE, _COMPARED = 0.3, 500  # distinct word pairs per word pair, in the first 500 texts
_CONFIRMED = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class Generation:
    """Texts that the release selected from candidates, with their classes, and figures about them."""

    texts: list[str]
    classes: npt.NDArray[np.intp]
    good: list[list[str]]  # per class: selected texts that were requested for this class
    score: float  # mean log-odds of the selected texts
    nearness: float  # mean of the selected texts
    confirmed: float  # fraction of the written candidates whose likeliest class is the requested one
    copies: int  # near copies that were left out

    def doubts(self) -> Iterator[str]:
        """Yield reasons to doubt the texts."""
        if self.confirmed < _CONFIRMED:
            yield (
                f"the release confirms the requested label of only {self.confirmed:.0%} of the texts that the model "
                "wrote: give a few public examples per label, or use a larger model"
            )
        pairs = [pair for text in self.texts[:_COMPARED] for pair in _word_pairs(text)]
        if len(set(pairs)) < _REPETITIVE * len(pairs):
            yield f"the texts repeat each other: only {len(set(pairs)) / len(pairs):.0%} of their word pairs differ"


def generated(
    weigh: Callable[[Sequence[str]], Weights],
    source: Source,
    labels: Labels,
    hints: Mapping[str, Sequence[str]],
    n: int,
    *,
    examples: Mapping[str, Sequence[str]] | None = None,
    pool: Sequence[str] = (),
    rounds: int = 2,
    candidates: int = CANDIDATES,
    shares: Floats,
    variety: float,
    bits: RandomBits,
    progress: Progress | None = None,
) -> Generation:
    """Let a source write candidates in rounds, as long as the selection improves; select n of them and the pool."""
    described = labels.described or ("",) * len(labels)
    public = [tuple((examples or {}).get(name, ())) for name in labels.names]
    known = [*pool, *(text for texts in public for text in texts)]
    written = _Candidates(weigh, len(labels), known)
    count = 0

    def ask(counts: Sequence[int], good: Sequence[Sequence[str]]) -> bool:
        """Let the source write texts of each class; return False if none is new."""
        nonlocal count
        before = len(written.texts)
        for code, name in enumerate(labels.names):
            if counts[code] > 0:
                words, label = tuple(hints.get(name, ())), labels.values_of(code)
                request = Request(label, words, counts[code], public[code], described[code], tuple(good[code]))
                count += written.add(source.propose(request), code)
                if progress is not None:
                    progress(count)
        written.drop_copies()
        return len(written.texts) > before

    good: list[list[str]] = [[] for _ in labels.names]  # of the rounds before; the source sees them
    best = -np.inf
    for turn in range(rounds):
        if not ask((candidates * quotas(shares, n)).tolist(), good):
            break
        while (missing := n - len(pool) - len(written.texts)) > 0:  # failed calls and copies left too few
            if not ask(quotas(shares, missing).tolist(), good):
                break
        if turn == rounds - 1 or len(written.texts) < n:
            break
        # not by `bits`: a resumed run without a seed repeats its prompts, whose answers are stored
        selection = written.select(n, shares=shares, variety=variety, bits=RandomBits(turn))
        if selection.score <= best:
            break
        best, good = selection.score, selection.good
    if not written.texts or len(written.texts) + len(pool) < n:
        trouble = getattr(source, "trouble", "")  # for sources that can fail
        why = f" ({trouble})" if trouble else ""
        raise DataError(
            f"the source returned {len(written.texts):,} different texts{why}, and {n:,} are needed: request "
            "fewer texts, more candidates or more rounds, or raise the limits of the source"
        )
    written.add(pool)
    return written.select(n, shares=shares, variety=variety, bits=bits)


@dataclass(eq=False)
class _Candidates:
    """Distinct candidates with their weights and the classes they were requested for; OUTSIDE: a text of the pool."""

    weigh: Callable[[Sequence[str]], Weights]
    classes: int
    known: Sequence[str]
    texts: list[str] = field(default_factory=list)
    copies: int = 0

    def __post_init__(self) -> None:
        self.scores, self.nearness = np.empty((0, self.classes)), np.empty(0)
        self.requested = np.empty(0, dtype=np.intp)

    def add(self, texts: Iterable[str], code: int = OUTSIDE) -> int:
        new = list(filter(None, (encodable(text).strip() for text in texts)))
        if new:
            weights = self.weigh(new)
            self.texts += new
            self.scores = np.concatenate([self.scores, np.asarray(weights.scores)])
            self.nearness = np.concatenate([self.nearness, np.asarray(weights.nearness)])
            self.requested = np.concatenate([self.requested, np.full(len(new), code)])
        return len(new)

    def drop_copies(self) -> None:
        """Drop near copies of earlier candidates, of the pool and of the examples."""
        copies = near_copies(self.texts, self.known)
        kept = [place for place in range(len(self.texts)) if place not in copies]
        self.copies += len(copies)
        self.texts = [self.texts[place] for place in kept]
        self.scores, self.nearness, self.requested = self.scores[kept], self.nearness[kept], self.requested[kept]

    def select(self, n: int, *, shares: Floats, variety: float, bits: RandomBits) -> Generation:
        written = np.flatnonzero(self.requested != OUTSIDE)
        confirmed = self.scores[written].argmax(axis=1) == self.requested[written]
        table = self.scores.copy()
        table[written, self.requested[written]] += _REQUESTED
        usable = table.argmax(axis=1) == self.requested
        if usable.any():  # texts of the pool are not further away than nearly all of these
            limit = np.quantile(self.nearness[usable], _FARTHEST)
            usable |= (self.requested == OUTSIDE) & (self.nearness >= limit)
        rows, classes = choose_written(table, self.nearness, usable, n, shares=shares, variety=variety, bits=bits)
        good = [
            [self.texts[row] for row in rows[(classes == code) & (self.requested[rows] == code) & usable[rows]]]
            for code in range(self.classes)
        ]
        return Generation(
            texts=[self.texts[row] for row in rows.tolist()],
            classes=classes,
            good=good,
            score=float(table[rows, classes].mean()),
            nearness=float(self.nearness[rows].mean()),
            confirmed=float(confirmed.mean()) if len(written) else 1.0,
            copies=self.copies,
        )
