"""The interface of a release method, and the data classes that its functions take and return."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from dptext.audits.verdict import Verdict
from dptext.errors import DptextError, MissingExtraError, ProtectionWarning
from dptext.features.pool import Pool
from dptext.io.documents import find_files
from dptext.methods.checks import Check
from dptext.methods.data import Data, quote
from dptext.methods.preview import Previewer
from dptext.methods.public_texts import PublicTexts
from dptext.methods.questions import PUBLIC, Requirements
from dptext.privacy.guarantee import Trust
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength
from dptext.release.mechanism import TextMechanism
from dptext.release.privatize import privatize
from dptext.vectors.word_vectors import WordVectors

if TYPE_CHECKING:
    from dptext.methods.attacks import Attack
    from dptext.methods.examination import Examination

PROTECTING = 3.0
"""The largest epsilon whose bound protects on its own (`Strength`)."""
assert Strength.of(PROTECTING) is Strength.PROTECTS

_INSTALL = re.compile(r'pip install "[^"]*"')
_WIDTH = 76


class Caveat(NamedTuple):
    """A reason against a method. Weight 2 excludes it, 1 prevents a recommendation, 0 is a remark."""

    weight: int
    reason: str


class Preview(NamedTuple):
    """(input, output) pairs made of public texts, or why there are none."""

    pairs: tuple[tuple[str, str], ...] = ()
    missing: str | None = None


NO_PREVIEW = Preview()


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The assessment of a method for one table: its statement, utility, caveats and commands.

    Attributes:
        statement: of the release that ``commands`` make; None: unknown without the extra that is missing.
        good_for: its utility in words, with figures from public texts.
        caveats: reasons against it.
        commands: to paste into a shell.
        preview: public texts before and after.
    """

    statement: PrivacyStatement | None
    good_for: str
    caveats: tuple[Caveat, ...] = ()
    commands: tuple[str, ...] = ()
    preview: Preview = NO_PREVIEW


@dataclass(frozen=True, slots=True)
class PlaygroundSettings:
    """The presentation of a method in the playground.

    Attributes:
        key, title: its name in requests, and for people.
        choices: the mechanisms to choose from.
        epsilons: smallest, largest and initial value.
        previewer: the class of its previews.
        delta: of mechanisms that have one.
    """

    key: str
    title: str
    choices: tuple[str, ...]
    epsilons: tuple[float, float, float]
    previewer: type[Previewer]
    delta: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReleaseFiles:
    """A release in a file or folder, its statement, and the public inputs that its examination needs.

    Attributes:
        data, statement: the release.
        text: the text column.
        vectors: where the word vectors are, if they moved.
        words: words to audit pairs of; none: chosen at random.
        bank, public, public_text, distribution: the bank, pool and description behind the release.
        samples, error, seed: of a sampled audit.
    """

    data: Path
    statement: PrivacyStatement
    text: str = "text"
    vectors: str | None = None
    words: Sequence[str] = ()
    bank: Path | None = None
    public: Sequence[Path] = ()
    public_text: str = "text"
    distribution: Path | None = None
    samples: int = 200_000
    error: float = 1e-6
    seed: int | None = None

    @property
    def sampling(self) -> dict[str, Any]:
        return {"samples": self.samples, "error": self.error, "seed": self.seed}

    @property
    def pool(self) -> Pool | None:
        """The public pool, if it was named."""
        return Pool(list(self.public), text=self.public_text) if self.public else None

    @property
    def parts(self) -> list[Path]:
        """The data files: one, or the parts of a folder that Spark wrote."""
        return [path for path, _ in find_files([self.data])]


@dataclass(frozen=True)
class Audit:
    """The checks of a release against its statement, and the verdict on its guarantee."""

    statement: PrivacyStatement
    checks: list[Check]
    verdict: Verdict

    @property
    def refuted(self) -> bool:
        return self.verdict.refuted or any(check.passed is False for check in self.checks)


@dataclass(frozen=True)
class AdviceInput:
    """Everything that advice follows from: counts of the private rows, the user's requirements, and public texts."""

    data: Data
    requirements: Requirements
    public: PublicTexts

    @property
    def classifies(self) -> bool:
        return self.requirements.purpose == "classify"

    @cached_property
    def missing_extra(self) -> str | None:
        """The command that installs the public word vectors; None: they are here."""
        try:
            _ = self.public.vectors
        except MissingExtraError as error:
            match = _INSTALL.search(str(error))
            return str(error) if match is None else match.group()
        return None

    @property
    def vectors(self) -> WordVectors | None:
        """The public word vectors that the commands use by default; None: not installed."""
        return self.public.vectors if self.missing_extra is None else None

    def keep_options(self) -> list[str]:
        """``--keep`` for the labels that a classifier needs, except columns that may identify a person."""
        columns = {column.name: column for column in self.data.columns}
        labels = self.data.roles.labels if self.classifies else ()
        return [option("keep", label) for label in labels if not columns[label].reasons]

    def public_options(self) -> str:
        """``--public`` for each public file, or for the placeholder, and their text column."""
        files = [option("public", path) for path in self.public.files or (PUBLIC,)]
        return " ".join(
            [*files, *([] if self.public.column == "text" else [option("public-text", self.public.column)])]
        )

    def text_option(self) -> list[str]:
        return [] if self.data.roles.text == "text" else [option("text", self.data.roles.text)]

    def command(self, program: str, suffix: str, *options: str, trust: Trust) -> str:
        """The command line that releases the private files."""
        user = [] if self.data.roles.user is None else [option("user", self.data.roles.user)]
        if not user and trust is Trust.CENTRAL:
            user = ["--unit document"]
        start = (f"dptext {program} {self.data.inputs}", f"-o {self.data.out(suffix)}")
        return wrap_command(*start, *self.text_option(), *user, *options)

    def preview(self, mechanism: TextMechanism) -> Preview:
        """The public texts to show, as a text mechanism replaces them."""
        texts = self.public.previewed
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ProtectionWarning)  # the page states the strength
                result = privatize(list(texts), mechanism, seed=self.public.seed)
        except DptextError as error:  # advice without a preview is still advice
            return Preview(missing=str(error))
        return Preview(tuple((text, private or "") for text, private in zip(texts, result.texts, strict=True)))


class Method(Protocol):
    """One way to release text. There is one instance of each in `dptext.methods.registry.METHODS`.

    Attributes:
        name: for people, "word replacement".
        command: of the command line, "privatize".
        trust: who adds the noise.
        purposes: how well it serves each purpose of `Requirements`, from 3 to 0; None: no purpose was named.
        mismatch: why it does not serve a purpose that has 0 there.
        never: why it is never recommended; None: it may be.
        holds: what a release of it holds, for messages.
        audited: what its guarantee is audited for, as `dptext.privacy.wording.audited` calls it.
        inputs: the public inputs in `ReleaseFiles` that its examination takes.
        folder: the format of the folder that it releases; None: a file.
        playground: how the playground offers it; None: not at all.
        examination: of a release for its report (``dptext report``); None: there is no report about it.
    """

    name: ClassVar[str]
    command: ClassVar[str]
    trust: ClassVar[Trust]
    purposes: ClassVar[Mapping[str | None, int]]
    mismatch: ClassVar[Mapping[str, str]]
    never: ClassVar[str | None] = None
    holds: ClassVar[str]
    audited: ClassVar[str]
    inputs: ClassVar[frozenset[str]] = frozenset()
    folder: ClassVar[str | None] = None
    playground: ClassVar[PlaygroundSettings | None] = None
    examination: ClassVar[type[Examination] | None] = None

    def recognizes(self, statement: PrivacyStatement) -> bool:
        """Return whether a statement is of a release of this method."""
        ...

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        """Assess the method for a table (``dptext advise``); ``figures=False``: without numbers that take seconds."""
        ...

    def check(self, files: ReleaseFiles) -> Audit:
        """Check a release against its statement, and test its guarantee (``dptext audit``)."""
        ...

    def attacks(self) -> Mapping[str, Attack]:
        """Return the attacks on a release, by the name of their command (``dptext attack``)."""
        return {}

    def verify_folder(self, folder: Path) -> Collection[str]:  # noqa: ARG002
        """Return the names of the statements in a released folder, after checking the digest of every file.

        Raises:
            DataError: a file of the folder was changed.
        """
        return ()


def label_caveats(case: AdviceInput) -> Iterator[Caveat]:
    """Caveats about the labels of a classifier, for methods that keep them as they are."""
    if case.classifies and case.data.classes is None:
        yield NO_LABEL
    elif case.classifies:
        yield Caveat(0, "Labels are published unchanged; the guarantee does not cover them.")


NO_LABEL = Caveat(1, "No label column was found: name it with --label.")
NO_USER = Caveat(0, "No user column was found, so single texts are protected: name it with --user.")


def round_down(count: int) -> int:
    """A round public number that is at most ``count``: two digits, then zeros."""
    power = int(10 ** max(len(str(count)) - 2, 0))
    return max(count, 1) // power * power


def option(name: str, value: str) -> str:
    """``--name value`` for a shell, also where the value begins with a dash."""
    return f"--{name}={quote(value)}" if value.startswith("-") else f"--{name} {quote(value)}"


def wrap_command(*parts: str) -> str:
    """Join the parts of a command, over several lines if it is long; no part is broken."""
    lines, line = [], ""
    for part in parts:
        if line and len(line) + 1 + len(part) > _WIDTH - 2:
            lines.append(f"{line} \\")
            line = f"    {part}"
        else:
            line = f"{line} {part}" if line else part
    return "\n".join([*lines, line])
