"""Sources of candidate texts: protocol, prompts for language models, parsing of answers, and rounds of generation.

A prompt contains only a `Request`, texts that the model wrote, and the caller's public description.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, warn
from dptext.io.batches import Batch
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import Progress
from dptext.synthesis.density import Weights, choose, quotas
from dptext.synthesis.moments import Labels
from dptext.users.grouping import Chunk, UserTexts
from dptext.validation import encodable

_SAMPLED = 4096  # distinct texts: the standard error of an estimated fraction is at most .008
_WARNED, _REFUSED = 0.1, 0.5
"""Fraction of the distinct private texts that are in the pool. Random halves of one source have few texts in common:
4.1% of Yelp sentences, 3.6% of blog sentences, 3.2% of blog posts, 1.4% of SNIPS utterances."""
_FEWEST = 10  # distinct texts in both; a few stock phrases are not an overlap


@dataclass(frozen=True)
class Request:
    """Request for texts of one label."""

    label: Mapping[str, str]
    hints: tuple[str, ...]
    count: int
    examples: tuple[str, ...] = ()


@runtime_checkable
class Source(Protocol):
    """Source of candidate texts for a `TextDistribution`."""

    def propose(self, request: Request) -> Iterable[str]:
        """Return new texts of a label."""

    def vary(self, texts: Iterable[str], request: Request) -> Iterable[str]:
        """Return variations of texts that this source wrote."""

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
EXAMPLES = 5
"""Number of examples per prompt; the next prompt continues with the following examples."""

_SYSTEM = """\
You write texts for a data set. Each one stands for itself and reads as if a person had written it on an ordinary day.
You answer with the texts alone: no titles, no remarks, no numbers."""
_PROPOSE = """\
Write new texts, each about something else and in other words than the others. How many: {count}
What they are: {about}
Their label: {label}
Words that are frequent in such texts; use some of them where they fit: {hints}
Examples of what they are like; write others: {examples}
Answer with a JSON list of strings, one for each text, and with nothing else."""
_VARY = """\
Write each of these texts anew: of the same kind and length, in other words, with other names and details.
What they are: {about}
Their label: {label}
The texts ({count}): {texts}
Answer with a JSON list of strings, one for each text, and with nothing else."""

PROMPTS_SHA256 = hashlib.sha256(json.dumps([_SYSTEM, _PROPOSE, _VARY]).encode()).hexdigest()


class LanguageModel(ABC):
    """Source that prompts a language model; subclasses define `_write`."""

    name: str
    model: str
    about: str
    texts_per_call: int

    def propose(self, request: Request) -> list[str]:
        """Return up to ``request.count`` new texts of a label, fewer if calls fail.

        Raises:
            SourceError: the model or its server failed, or refused to answer.
            ParameterError, StorageError: the model cannot be loaded, or stored answers cannot be used.
        """
        size = self.texts_per_call
        counts = [min(size, request.count - start) for start in range(0, request.count, size)]
        return self._write(
            [(proposal(request, count, about=self.about, turn=turn), count) for turn, count in enumerate(counts)]
        )

    def vary(self, texts: Iterable[str], request: Request) -> list[str]:
        """Return ``request.count`` variations, and repeat texts if there are fewer; raise the errors of `propose`."""
        values, size = list(texts), self.texts_per_call
        chosen = [values[place % len(values)] for place in range(request.count)] if values else []
        parts = [chosen[start : start + size] for start in range(0, len(chosen), size)]
        return self._write(
            [(variation(part, request, about=self.about, turn=turn), len(part)) for turn, part in enumerate(parts)]
        )

    @abstractmethod
    def _write(self, prompts: Sequence[tuple[tuple[str, str], int]]) -> list[str]:
        """Return the texts for prompts: pairs of (system message, user message) and the number of requested texts."""

    def parameters(self) -> dict[str, Parameter]:
        return {
            "generator": self.name,
            "generator_model": self.model,
            "generator_about": self.about,
            "generator_prompts_sha256": PROMPTS_SHA256,
        }

    def assumptions(self) -> tuple[str, ...]:
        return (
            f"the model '{self.model}' is public: it was not trained on the private texts",
            "the model received names of the labels, hints of the release, public instructions and its own earlier "
            "texts, but no private text",
            "the texts were written by a language model: their claims may be false",
        )


def proposal(request: Request, count: int, *, about: str = "", turn: int = 0) -> tuple[str, str]:
    """Return the system and user message for ``count`` new texts; each turn uses other hints and examples."""
    examples = _as_list(_rotated(request.examples, turn, EXAMPLES))
    return _SYSTEM, _filled(_PROPOSE, request, turn, count=str(count), about=about, examples=examples)


def variation(texts: Sequence[str], request: Request, *, about: str = "", turn: int = 0) -> tuple[str, str]:
    """Return the system and user message for one variation of each text."""
    return _SYSTEM, _filled(_VARY, request, turn, count=str(len(texts)), about=about, texts=_as_list(texts))


def _rotated(values: Sequence[str], turn: int, limit: int) -> list[str]:
    start = turn * limit % len(values) if len(values) > limit else 0
    return [*values[start:], *values[:start]][:limit]


def _as_list(texts: Sequence[str]) -> str:
    return json.dumps(list(texts), ensure_ascii=False) if texts else ""


def _filled(template: str, request: Request, turn: int, **values: str) -> str:
    """Fill a template, dropping the lines whose field is empty."""
    values["label"] = "; ".join(f"{column}: {value}" for column, value in request.label.items())
    values["hints"] = ", ".join(_rotated(request.hints, turn, HINTS))
    empty = [f"{{{name}}}" for name, value in values.items() if not value]
    lines = [line for line in template.split("\n") if not any(field in line for field in empty)]
    return "\n".join(lines).format(**values)


_FENCE = re.compile(r"```[\w-]*\n(.*?)(?:```|\Z)", re.DOTALL)
_LIST_START = re.compile(r"\[\s*(?=\")")
_STRING_START = re.compile(r"\s*,?\s*(?=\")")
_ITEM = re.compile(r"(?:[(\[]?\d{1,4}[.):\]]|[-*•])\s+(?=\S)")
_CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127])
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'"}
_DECODER = json.JSONDecoder(strict=False)  # accepts line feeds within a string


def texts_of(answer: str, limit: int, *, is_cut: bool = False) -> list[str]:
    """Return up to ``limit`` texts of an answer: the strings of a JSON list, numbered lines, or lines."""
    body = answer.rpartition("</think>")[2].strip()
    if fenced := _FENCE.search(body):
        body = fenced[1].strip()
    texts = _parse_json_list(body)
    if not texts and not body.startswith(("[", "{")):
        texts = _parse_lines(body)
        if is_cut and len(texts) > 1:
            texts.pop()
    # remove control characters and lone surrogates
    texts = [text.encode("utf-8", "ignore").decode().translate(_CONTROLS).strip() for text in texts]
    return list(filter(None, texts))[:limit]


def _parse_json_list(body: str) -> list[str]:
    """Return the strings of the first JSON list of strings; a truncated list gives its complete strings."""
    texts: list[str] = []
    start = _LIST_START.search(body)
    place = len(body) if start is None else start.end()
    with suppress(ValueError):
        while (comma := _STRING_START.match(body, place)) is not None:
            text, place = _DECODER.raw_decode(body, comma.end())
            texts.append(text)
    return texts


def _parse_lines(body: str) -> list[str]:
    """Return the items of a numbered or bulleted list, or else the lines, without a heading."""
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    items: list[str] = []
    for line in lines:
        mark = _ITEM.match(line)
        if mark is not None:
            items.append(line[mark.end() :])
        elif items:
            items[-1] += "\n" + line
    if len(items) < 2 and not (lines and _ITEM.match(lines[0])):
        items = lines[1:] if len(lines) > 1 and lines[0].endswith(":") else lines
    return [item[1:-1] if len(item) > 1 and _QUOTES.get(item[0]) == item[-1] else item for item in items]


Floats = npt.NDArray[np.float64]

_SHOWN = 20  # maximum number of earlier texts per class in a request
_PARENTS = 4  # the best quarter of the texts is varied


def generated(
    weigh: Callable[[Sequence[str]], Weights],
    source: Source,
    labels: Labels,
    hints: Mapping[str, Sequence[str]],
    n: int,
    *,
    rounds: int = 3,
    shares: Floats,
    variety: float,
    bits: RandomBits,
    progress: Progress | None = None,
) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Let a source write texts in rounds; select n distinct texts and their classes."""
    counts = np.ceil(n * np.asarray(shares) / np.sum(shares) - 1e-9).astype(int).tolist()
    written = _Written(weigh, len(labels), progress)
    nothing: list[list[str]] = [[]] * len(labels)

    def ask(counts: Sequence[int], best: Sequence[Sequence[str]]) -> bool:
        """Let the source write texts of each class; return False if no text is new."""
        new: list[str] = []
        for code, name in enumerate(labels.names):
            if counts[code] > 0:
                request = Request(labels.values_of(code), tuple(hints.get(name, ())), counts[code])
                new += written.unseen(_ask_for_class(source, request, best[code]))
        if new:
            written.add(new)
        return bool(new)

    for turn in range(rounds):
        if not ask(counts, written.best(shares, -(-n // _PARENTS), bits) if turn else nothing):
            break
    while 0 < len(written.texts) < n:  # request more texts if duplicates left fewer than n
        if not ask(quotas(shares, n - len(written.texts)).tolist(), nothing):
            break
    if len(written.texts) < n:
        trouble = getattr(source, "trouble", "")  # for sources that can fail
        why = f" ({trouble})" if trouble else ""
        raise DataError(
            f"the source returned {len(written.texts):,} different texts{why}, and {n:,} are needed: request "
            "fewer texts, more per round or more rounds, or raise the limits of the source"
        )
    chosen, classes = choose(written.scores, written.nearness, n, shares=shares, variety=variety, bits=bits)
    return [written.texts[place] for place in chosen.tolist()], classes


def _ask_for_class(source: Source, request: Request, best: Sequence[str]) -> list[str]:
    """Request half of the texts as variations of the best texts, and the remaining ones as new texts."""
    if not best:
        return list(source.propose(request))
    half, examples = -(-request.count // 2), tuple(best[:_SHOWN])
    varied = list(source.vary(best, Request(request.label, request.hints, half, examples)))
    missing = request.count - len(varied)
    if missing <= 0:
        return varied
    return [*varied, *source.propose(Request(request.label, request.hints, missing, examples))]


@dataclass
class _Written:
    """Distinct texts of a source and their weights."""

    weigh: Callable[[Sequence[str]], Weights]
    classes: int
    progress: Progress | None
    texts: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.scores, self.nearness = np.empty((0, self.classes)), np.empty(0)

    def unseen(self, texts: Iterable[str]) -> list[str]:
        """Return the new, non-empty texts; the comparison ignores differences in white space."""
        new = []
        for text in map(encodable, map(str.strip, texts)):
            words = " ".join(text.split())
            if words and words not in self.seen:
                self.seen.add(words)
                new.append(text)
        if self.progress is not None and new:
            self.progress(len(self.seen))
        return new

    def add(self, texts: list[str]) -> None:
        weights = self.weigh(texts)
        self.texts += texts
        self.scores = np.concatenate([self.scores, np.asarray(weights.scores)])
        self.nearness = np.concatenate([self.nearness, np.asarray(weights.nearness)])

    def best(self, shares: Floats, count: int, bits: RandomBits) -> list[list[str]]:
        count = min(count, len(self.texts))
        rows, classes = choose(self.scores, self.nearness, count, shares=shares, variety=0.0, bits=bits)
        result = []
        for code in range(self.classes):
            members = np.sort(rows[classes == code])
            members = members[np.argsort(-self.scores[members, code], kind="stable")]
            result.append([self.texts[row] for row in members.tolist()])
        return result
