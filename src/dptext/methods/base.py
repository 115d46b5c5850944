"""The interface of a release method, and the inputs and results of its assessment by `advise`."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import MissingExtraError, ParameterError
from dptext.evaluation.coverage import Coverage, coverage, median_words
from dptext.evaluation.utility import trained_answers
from dptext.features.features import Spec, fit_features, quick_features
from dptext.features.latent_words import PublicWords
from dptext.features.pool import Pool, read_public
from dptext.io.documents import canonical_label
from dptext.io.tables import is_table, table_documents
from dptext.methods.data import LICENCE, PUBLIC, Data, Requirements, quote, utterances
from dptext.methods.files import Audit, ReleaseFiles
from dptext.methods.preview import Previewer
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, paragraphs
from dptext.release.mechanism import TextMechanism
from dptext.sentences.bank import TextBank
from dptext.synthesis.moments import Labels
from dptext.synthesis.planning import nearest_labels
from dptext.text.tokens import TextUnit
from dptext.vectors.formats import GLOVE, load_vectors
from dptext.vectors.word_vectors import WordVectors

if TYPE_CHECKING:
    from dptext.methods.examination import Attack, Examination

PROTECTING = 3.0
"""The largest epsilon whose bound protects on its own (`Strength`)."""
assert Strength.of(PROTECTING) is Strength.PROTECTS

BUNDLED = "utterances to a voice assistant (SNIPS)"
_WIDTH = 74  # of a command
_MIN_TEXTS, _MAX_TEXTS = 10, 4_000  # public texts: figures take seconds
_RELEASES = 5  # simulated, for an accuracy
_MAX_TRAINING, _MAX_WORDS = 1_000, 100_000  # texts of one of them; words for training and test
_VOCABULARY = 50_000  # the default of the commands


class Method(Protocol):
    """One way to release text. There is one instance of each in `dptext.methods.registry.METHODS`."""

    name: ClassVar[str]  # for people
    command: ClassVar[str]  # on the command line
    suffix: ClassVar[str]  # of the output that `advise` proposes
    trust: ClassVar[Trust]  # who adds the noise
    purposes: ClassVar[Mapping[str | None, int]]  # how well it serves each purpose, 3 to 0; None: no purpose was named
    mismatch: ClassVar[Mapping[str, str]]  # why it does not serve a purpose, where `purposes` has 0
    never: ClassVar[str | None] = None  # why it is never recommended
    needs_vectors: ClassVar[bool] = False  # whether its command needs the extra with public word vectors
    holds: ClassVar[str]  # the contents of its release, for messages
    audited: ClassVar[str]  # the kind of audit, for `dptext.privacy.wording.audited`
    inputs: ClassVar[frozenset[str]] = frozenset()  # public inputs of `ReleaseFiles` that it uses
    folder: ClassVar[str | None] = None  # the format of the folder that it releases; None: a file
    attacks: ClassVar[Mapping[str, Attack]] = {}  # by the name of their command (``dptext attack``)
    playground: ClassVar[type[Previewer] | None] = None
    examination: ClassVar[type[Examination] | None] = None  # for ``dptext report``

    def recognizes(self, statement: PrivacyStatement) -> bool:
        """Return whether a statement belongs to a release of this method."""

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        """Assess the method for a table (``dptext advise``); ``figures=False``: without numbers that take seconds."""

    def check(self, files: ReleaseFiles) -> Audit:
        """Check a release against its statement, and test its guarantee (``dptext audit``)."""

    def verify_folder(self, folder: Path) -> Collection[str]:  # noqa: ARG002
        """Return the names of the statements in a released folder; raise `DataError` if a file was changed."""
        return ()


class Caveat(NamedTuple):
    """A reason against a method. Weight 2 excludes it, 1 prevents a recommendation, 0 is a remark."""

    weight: int
    reason: str


NO_LABEL = Caveat(1, "No label column was found: name it with --label.")
NO_USER = Caveat(0, "No user column was found, so single texts are protected: name it with --user.")


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The assessment of a method for one table."""

    statement: PrivacyStatement | None  # None: unknown without the extra that is missing
    good_for: str
    accuracy: tuple[float, float] | None = None  # expected interval; None: unknown
    caveats: tuple[Caveat, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class PublicTexts:
    """Public texts in a random order, which serve as a bank, a pool or users in predictions."""

    texts: tuple[str, ...]
    name: str
    files: tuple[str, ...] = ()  # as the caller names them; none: bundled with dptext, or in memory
    paths: tuple[Path, ...] = ()
    column: str = "text"
    count: int = 0
    labels: tuple[str | None, ...] = ()  # of the texts; none: unknown
    licence: str = LICENCE

    @classmethod
    def bundled(cls, *, labelled: bool = False) -> PublicTexts:
        labels = dict(utterances("train"))
        texts = _shuffled(list(labels))
        known = tuple(labels[text] for text in texts) if labelled else ()
        return cls(texts, BUNDLED, labels=known)

    @classmethod
    def of(cls, files: Any, *, text: str, label: str | None = None) -> PublicTexts:
        """Return the public texts of the caller: files, or anything that `Pool` accepts; labels need columns."""
        pool = Pool(files, text=text)
        if len(pool) <= _MIN_TEXTS:
            raise ParameterError(f"public must contain more than {_MIN_TEXTS} texts, got {len(pool)}")
        names = [files] if isinstance(files, str | os.PathLike) else files
        named, texts = tuple(map(str, names)) if pool.files or pool.datasets else (), _shuffled(list(pool.texts))
        labels: tuple[str | None, ...] = ()
        if label is not None:
            known = {_spaced(text): label for text, label in _labelled(files, pool, text, label)}
            labels = tuple(known.get(_spaced(text)) for text in texts)
            if len({*labels} - {None}) < 2:
                raise ParameterError(f"the column {label!r} of the public texts must have at least two labels")
        return cls(texts, "your public texts", named, pool.files, text, len(pool), labels, pool.licence or LICENCE)

    @cached_property
    def pool(self) -> Pool:
        return Pool(self.texts, name=self.name)

    @cached_property
    def vectors(self) -> WordVectors:
        """The public word vectors that commands use by default."""
        return load_vectors(GLOVE, limit=_VOCABULARY)

    @cached_property
    def words(self) -> dict[TextUnit, int]:
        """The median number of words of the texts of the caller, and of their sentences and paragraphs."""
        return median_words(self.texts) if self.count else {}

    def compare(self, private: list[str]) -> dict[str, Coverage]:
        """Return how many words of private texts are in the texts of the caller and in the word vectors."""
        sides: dict[str, Any] = {"your public texts": self.pool} if self.count else {}
        with suppress(MissingExtraError):
            sides["the default word vectors"] = self.vectors
        covered = {name: coverage(private, side) for name, side in sides.items()}
        return {name: result for name, result in covered.items() if result is not None}

    @cached_property
    def features(self) -> Spec:
        """Fast features that need no extra."""
        return quick_features(PublicWords(self.texts))

    @cached_property
    def bank(self) -> TextBank:
        """A bank of one half; the other half stands for private texts."""
        return TextBank(self.texts[: len(self.texts) // 2], encoder=self.features, cache=False)

    @cached_property
    def labelled(self) -> tuple[list[str], npt.NDArray[Any]]:
        """The texts with a label that are not in the bank, and their labels."""
        half = len(self.texts) // 2
        rows = [(text, label) for text, label in zip(self.texts[half:], self.labels[half:], strict=False) if label]
        return [text for text, _ in rows], np.array([label for _, label in rows])

    @cached_property
    def baselines(self) -> tuple[float, float] | None:
        """The accuracy of the most frequent label and of the nearest label name; None without labels."""
        texts, true = self.labelled
        if not texts:
            return None
        names, codes = np.unique(true, return_inverse=True)
        features = fit_features(self.features, texts, cache=False)
        nearest = nearest_labels(features, Labels.of(names.tolist()), features.vectors(texts))
        return float(np.bincount(codes).max() / len(codes)), float(np.mean(nearest == codes))

    def accuracy(self, mechanism: TextMechanism, rows: int) -> tuple[float, float] | None:
        """Return the smallest and largest accuracy of models trained on simulated releases; None without labels."""
        texts, true = self.labelled
        if not texts:
            return None
        half = min(
            _MAX_TRAINING, len(texts) // 2, int(_MAX_WORDS / 2 / np.median([len(text.split()) for text in texts]))
        )
        scores = []
        with suppress(MissingExtraError):
            for run in range(_RELEASES):
                bits = RandomBits(run)
                order = np.argsort(bits.uniform(len(texts)))
                train, test = order[:half][:rows], order[half : 2 * half]
                private, _ = mechanism.replacing()([texts[row] for row in train], bits)
                answers = trained_answers(private, true[train], [texts[row] for row in test])
                scores.append(float(np.mean(answers == true[test])))
        return (min(scores), max(scores)) if scores else None


def _labelled(source: Any, pool: Pool, text: str, label: str) -> Iterator[tuple[str, str | None]]:
    if pool.files or pool.datasets:
        rows = read_public([*pool.files, *pool.datasets], text, label=label)
    elif is_table(source):
        rows = table_documents(source, text=text, label=label)
    else:
        raise ParameterError("public_label requires public files, or a table with this column")
    for row in rows:
        yield row.text or "", canonical_label(row.label)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _shuffled(texts: list[str]) -> tuple[str, ...]:
    order = np.argsort(RandomBits(0).integers(len(texts)), kind="stable")
    return tuple(texts[index] for index in order[:_MAX_TEXTS].tolist())


@dataclass(frozen=True)
class AdviceInput:
    """All inputs of the advice: counts of the private rows, the user's requirements, and public texts."""

    data: Data
    requirements: Requirements
    public: PublicTexts

    @property
    def classifies(self) -> bool:
        return self.requirements.purpose == "classify"

    @cached_property
    def vectors(self) -> WordVectors | None:
        """The public word vectors that the commands use by default; None: not installed."""
        try:
            return self.public.vectors
        except MissingExtraError:
            return None

    def label_caveats(self) -> Iterator[Caveat]:
        """Yield caveats about the labels of a classifier, for methods that publish them unchanged."""
        if self.classifies and self.data.classes is None:
            yield NO_LABEL
        elif self.classifies:
            yield Caveat(0, "Labels are published unchanged; the guarantee does not cover them.")

    def keep_options(self) -> list[str]:
        """Return ``--keep`` for the labels that a classifier needs, except columns that may identify a person."""
        safe = {column.name for column in self.data.columns if not column.reasons}
        labels = self.data.roles.labels if self.classifies else ()
        return [option("keep", label) for label in labels if label in safe]

    def public_options(self) -> str:
        """Return ``--public`` for each public file, or for the placeholder, and their text column."""
        files = [option("public", path) for path in self.public.files or (PUBLIC,)]
        return " ".join([*files, *option_unless("public-text", self.public.column, "text")])

    def text_option(self) -> list[str]:
        return option_unless("text", self.data.roles.text, "text")

    @property
    def _skips_rows(self) -> bool:
        return bool(self.data.anonymous or self.data.unread)

    def command(self, method: Method, *options: str) -> str:
        """Return the command line that releases the private files."""
        user = [] if self.data.roles.user is None else [option("user", self.data.roles.user)]
        if not user and method.trust is Trust.CENTRAL:
            user = ["--unit document"]
        if self._skips_rows:
            options = (*options, "--on-error skip")
        start = (f"dptext {method.command} {self.data.inputs}", f"-o {quote(self.data.out(method.suffix))}")
        return wrap_command(*start, *self.text_option(), *user, *options)

    def commands_after(self, method: Method) -> tuple[str, ...]:
        """Return the command lines that explain, audit and report the release."""
        roles, out = self.data.roles, quote(self.data.out(method.suffix))
        inputs = [self.public_options()] if "public" in method.inputs else []
        inputs += ["--bank bank"] if "bank" in method.inputs else []
        explain, audit = f"dptext explain {out}", wrap_command(f"dptext audit {out}", *inputs)
        if method.examination is None:
            return explain, audit
        page = self.data.out(f".{method.suffix.split('.')[1]}")
        is_by_row = method.trust is Trust.LOCAL  # compared with the original row by row, so none may be skipped
        if len(self.data.files) == 1 and not (is_by_row and self._skips_rows):
            original = [option("original", self.data.files[0]), *self.text_option()]
            user = [] if roles.user is None else [option("user", roles.user)]
            inputs += [*original, *user, *(option("label", label) for label in roles.labels[:1])]
        outputs = (f"-o {quote(f'{page}.html')}", f"--card {quote(f'{page}.md')}")
        return explain, audit, wrap_command(f"dptext report {out}", *outputs, *inputs)


def describe(topic: str, **values: Any) -> str:
    """Return the sentences about the utility of a method."""
    return " ".join(paragraphs("methods/templates/assessment.txt", topic=topic, **values))


def round_down(count: int) -> int:
    """Return a round public number that is at most ``count`` (but at least 1): two digits, then zeros."""
    power = int(10 ** max(len(str(count)) - 2, 0))
    return max(count, 1) // power * power


def option(name: str, value: str) -> str:
    """Return ``--name value`` for a shell, also where the value begins with a dash."""
    return f"--{name}={quote(value)}" if value.startswith("-") else f"--{name} {quote(value)}"


def option_unless(name: str, value: str, default: str) -> list[str]:
    return [] if value == default else [option(name, value)]


def wrap_command(*parts: str) -> str:
    """Join the parts of a command, over several lines if it is long; no part is broken."""
    unbroken = " ".join(part.replace(" ", "\0") for part in parts)
    lines = textwrap.wrap(unbroken, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines).replace("\0", " ")
