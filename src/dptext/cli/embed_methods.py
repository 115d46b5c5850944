"""The two ways in which ``dptext embed`` learns vectors, as it sees them: a plan to announce, and a model to fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dptext.cli.console import progress_bar, stopped_with_notes
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.dpsgd.participation import personal_participation
from dptext.embeddings.skipgram import Progress, SkipGram
from dptext.files.documents import DocumentReader
from dptext.privacy.guarantee import ApproxDP, Guarantee, at_most, compose, substitution_from_add_remove
from dptext.privacy.statement import PrivacyStatement
from dptext.users.private_vocabulary import PrivateVocabulary
from dptext.vectors.word_vectors import WordVectors

__all__ = ["Cooccurrences", "Learning", "Training"]

_STEPS, _RATE = 1000, 0.05
_SHOWN = 20  # times in a training, what was spent is worked out: each takes some tenths of a second


@dataclass(frozen=True)
class Promise:
    """What a user of a level is promised, all counted in."""

    epsilon: float
    delta: float
    substituted: ApproxDP


class Learning(ABC):
    """One way, with its options.

    Attributes:
        public: vectors to start from.
        level: the column that holds levels.
        unit: what is protected.
    """

    public: WordVectors
    level: str | None
    unit: str

    @property
    @abstractmethod
    def lines(self) -> list[str]:
        """What is done, for the person who is about to release something: the head, and what else there is to say."""

    @property
    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """Public names."""

    @property
    @abstractmethod
    def most(self) -> str:
        """The level with the largest budget: what its users are promised holds for everybody."""

    @abstractmethod
    def statement(self, level: str, *, seeded: bool) -> PrivacyStatement:
        """What is promised to users of a level, before new words are counted in."""

    @abstractmethod
    def under_substitution(self, level: str) -> ApproxDP:
        """The same under substitution."""

    def promises(self, more: ApproxDP | None, *, seeded: bool) -> dict[str, Promise]:
        """What is promised by level, new words counted in, before anything is read.

        Raises:
            RefusedError: the vectors were released under a statement that cannot be added.
        """
        found = {}
        for level in self.levels:
            statement = self.statement(level, seeded=seeded)
            promise: Guarantee = statement.guarantee
            substituted: Guarantee = self.under_substitution(level)
            if more is not None:
                promise, substituted = compose(promise, more), compose(substituted, substitution_from_add_remove(more))
            assert isinstance(promise, ApproxDP)
            assert isinstance(substituted, ApproxDP)
            found[level] = Promise(promise.epsilon + statement.slack, promise.delta, substituted)
        return found

    def charge(self, more: ApproxDP | None) -> tuple[Guarantee, dict[str, Any]]:
        """What a ledger charges every user with, before anything is read: the guarantee and its terms."""
        statement = self.statement(self.most, seeded=False)
        guarantee = statement.guarantee if more is None else compose(statement.guarantee, more)
        return guarantee, {"unit": statement.unit, "relation": statement.relation, "mechanism": statement.mechanism}

    @abstractmethod
    def fit(
        self,
        reader: DocumentReader,
        vocabulary: PrivateVocabulary | None,
        options: dict[str, Any],
        *,
        release_id: str,
        quiet: bool,
    ) -> Cooccurrence | SkipGram:
        """Learn, and show how far it is.

        Args:
            reader: the documents.
            vocabulary: new words.
            options: ``public_users``, ``processes``, ``seed``.
            release_id: of the release.
            quiet: show nothing.
        """


class Cooccurrences(Learning):
    """One noisy release."""

    def __init__(
        self,
        public: WordVectors,
        epsilon: Any,
        *,
        delta: float,
        unit: str,
        level: str | None,
        default_level: str | None,
        window: int | None,
    ) -> None:
        self.public, self.level, self.unit = public, level, unit
        self._how: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "unit": unit, "default_level": default_level}
        self._how |= {"level": level} | ({} if window is None else {"window": window})
        self._plan = Cooccurrence(public, **self._how).plan()

    @property
    def lines(self) -> list[str]:
        """See `Learning`."""
        public = self.public
        return [f"co-occurrences on {public.source} ({len(public):,} words, {public.dimension} dimensions)"]

    @property
    def levels(self) -> tuple[str, ...]:
        """See `Learning`."""
        return tuple(self._plan.budgets.levels)

    @property
    def most(self) -> str:
        """See `Learning`."""
        return max(self.levels, key=self._plan.budgets.levels.__getitem__)

    def statement(self, level: str, *, seeded: bool) -> PrivacyStatement:
        """See `Learning`."""
        return self._plan.statement(level, seeded=seeded)

    def under_substitution(self, level: str) -> ApproxDP:
        """See `Learning`."""
        return self._plan.under_substitution(level)

    def fit(
        self,
        reader: DocumentReader,
        vocabulary: PrivateVocabulary | None,
        options: dict[str, Any],
        *,
        release_id: str,
        quiet: bool,
    ) -> Cooccurrence:
        """See `Learning`."""
        model = Cooccurrence(self.public, **self._how, vocabulary=vocabulary, **options)
        with progress_bar("reading", quiet=quiet) as bar:
            reader.watch(lambda _block: bar.reading(reader, "adding up"))
            model.fit(reader, release_id=release_id)
        return model


class Training(Learning):
    """Skip-gram, step by step."""

    _FILES: ClassVar = {"checkpoint", "resume"}

    def __init__(
        self,
        public: WordVectors,
        epsilon: Any,
        *,
        delta: float,
        unit: str,
        level: str | None,
        default_level: str | None,
        window: int | None,
        public_users: int | None,
        options: dict[str, Any],
    ) -> None:
        self.public, self.level, self.unit = public, level, unit
        how = {name: value for name, value in options.items() if name not in self._FILES}
        rate, steps = how.pop("sampling_rate", _RATE), how.pop("steps", _STEPS)
        how |= {"unit": unit, "level": level, "delta": delta} | ({} if window is None else {"window": window})
        if isinstance(epsilon, dict):
            epsilon = personal_participation(
                epsilon, delta=delta, steps=steps, sampling_rate=rate, default=default_level
            )
        model = SkipGram(public, epsilon=epsilon, steps=steps, sampling_rate=rate, public_users=public_users, **how)
        self._plan = model.plan()
        import dptext.embeddings.dpsgd.training  # noqa: F401  # needs numba: said before anything is read

        self._how = how | {"epsilon": self._plan.participation}  # found once: it takes a second
        self._files = {name: value for name, value in options.items() if name in self._FILES}

    @property
    def lines(self) -> list[str]:
        """See `Learning`."""
        plan, public, taking_part = self._plan, self.public, self._plan.participation
        size = f"({len(plan.words):,} words, {plan.dimension} dimensions)"
        head = f"skip-gram from {public.source} {size}"
        if plan.public is None:
            head = f"skip-gram, random start, words of {public.source} {size}"
        most = "at most " if len(taking_part.rates) > 1 else ""
        often = f"each {self.unit} in {most}{100 * taking_part.rates[taking_part.most]:.3g}% of them"
        return [
            head,
            f"  training  {taking_part.steps:,} steps, {often}, noise {taking_part.noise_multiplier:g} x bound",
        ]

    @property
    def levels(self) -> tuple[str, ...]:
        """See `Learning`."""
        return tuple(self._plan.participation.rates)

    @property
    def most(self) -> str:
        """See `Learning`."""
        return self._plan.participation.most

    def statement(self, level: str, *, seeded: bool) -> PrivacyStatement:
        """See `Learning`."""
        return self._plan.statement(level, seeded=seeded)

    def under_substitution(self, level: str) -> ApproxDP:
        """See `Learning`."""
        return self._plan.under_substitution(level)

    def fit(
        self,
        reader: DocumentReader,
        vocabulary: PrivateVocabulary | None,
        options: dict[str, Any],
        *,
        release_id: str,
        quiet: bool,
    ) -> SkipGram:
        """See `Learning`. An interrupt says how to go on, where there is a checkpoint to go on from."""
        model = SkipGram(self.public, **self._how, vocabulary=vocabulary, **options)
        with stopped_with_notes(), progress_bar("reading", quiet=quiet) as bar:
            reader.watch(lambda _block: bar.reading(reader, "grouping by user"))
            spent = 0.0

            def show(at: Progress) -> None:
                nonlocal spent
                if not bar.shown:
                    return
                if at.step % max(1, at.steps // _SHOWN) == 0 or at.step == at.steps:
                    spent = at.epsilon
                bar.step(at.step, at.steps, f"training, epsilon {at_most(spent, 3)} spent")

            try:
                model.fit(reader, progress=show, release_id=release_id, **self._files)
            except KeyboardInterrupt as error:
                self._tell_how_to_go_on(error)
                raise
        return model

    def _tell_how_to_go_on(self, error: BaseException) -> None:
        checkpoint = self._files.get("checkpoint")
        if checkpoint is not None and Path(checkpoint).exists():
            error.add_note(
                f"nothing is released yet; what is done is kept in {checkpoint} (private): run the same command with "
                "--resume to go on"
            )
