"""`Synthesizer`: one noisy release that describes users' texts, and its privacy statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ProgressOption, ReprMixin, progress_bar
from dptext.errors import DataError, ParameterError
from dptext.features.features import PublicFeatures, Spec, fit_features
from dptext.features.pool import Pool
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import ELEMENTARY, MOST_USERS, noisy_matrix
from dptext.privacy.budgets import PersonalBudgets, warn_of_delta
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit, as_approx, rounded_up
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import check_prior, counted_in, substituted
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.privacy.wording import facts_of, warn_unprotected
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.moments import COUNT_WEIGHT, Labels, MomentSum
from dptext.synthesis.prompts import TextSample, check_is_apart
from dptext.users.grouping import ONE_NAME, UserTexts, UserUnit, check_users_are_read, texts_of
from dptext.users.private_vocabulary import PrivateLabels
from dptext.validation import check_choice, check_float, check_int

MOST_DOCUMENTS = 1000
"""Of a person, this many documents are looked at, unless another number is given."""
_UNITS = {"user": Unit.USER, "document": Unit.DOCUMENT}


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """Who is promised what, by Gaussian noise on sums that a person moves by at most 1: public, and checked."""

    unit: UserUnit
    labels: Labels
    budget: PersonalBudgets
    most_documents: int = MOST_DOCUMENTS

    def __post_init__(self) -> None:
        check_prior(self.prior, _UNITS[self.unit])

    @classmethod
    def of(cls, *, epsilon: float, delta: float, labels: Any, column: str, unit: str, most_documents: int) -> Terms:
        """From the arguments that every synthesizer has."""
        return cls(
            unit="user" if check_choice("unit", unit, get_args(UserUnit)) == "user" else "document",
            labels=Labels.of(labels, column=column),
            budget=PersonalBudgets(check_float("epsilon", epsilon, above=0), delta=delta, floor=0.0),
            most_documents=check_int("most_documents", most_documents, minimum=1),
        )

    def _repr_fields(self) -> Fields:
        """For whoever shows itself by its terms."""
        yield "epsilon", max(self.budget.levels.values())
        yield "delta", self.budget.delta
        yield "unit", self.unit
        yield "labels", self.labels.names if self.labels.columns else None

    @cached_property
    def prior(self) -> dict[str, PrivacyStatement]:
        """What was released before about the same people and is not public: learned labels. (Features may add more.)"""
        return dict(self.labels.learned)

    def substitution_guarantee(self, features: PublicFeatures) -> ApproxDP:
        """What is promised when a person's texts are replaced by other ones, all before it counted in."""
        prior = {**self.prior, **features.prior}
        return substituted(self.budget.guarantee(relation=Relation.SUBSTITUTION), prior)

    def statement(
        self,
        mechanism: str,
        features: PublicFeatures,
        parameters: Mapping[str, Parameter],
        *,
        seeded: bool,
        release_id: str | None = None,
    ) -> PrivacyStatement:
        """The statement of a release, with what was promised before counted in."""
        check_prior(features.prior, _UNITS[self.unit])
        prior = {**self.prior, **features.prior}
        swapped = self.substitution_guarantee(features)
        first, *others = always_assumed(_UNITS[self.unit], counted_in=bool(prior))
        text: dict[str, Parameter] = {
            **noise_parameters(self.budget, swapped),
            **{f"promise_of_{name}": str(before.guarantee) for name, before in prior.items()},
            "classes": len(self.labels),
            "label_columns": ", ".join(self.labels.columns) or None,
            "labels_sha256": self.labels.sha256,
            "most_documents": self.most_documents,
            **parameters,
            **features.parameters(),
        }
        statement = release_statement(
            guarantee=self.budget.guarantee(),
            unit=_UNITS[self.unit],
            relation=Relation.ADD_REMOVE,
            trust=Trust.CENTRAL,
            mechanism=mechanism,
            parameters=text,
            assumptions=(first, *features.assumptions(), *others),
            exposed=self._names_of_labels(),
            seeded=seeded,
            release_id=release_id or new_release_id(),
        )
        return counted_in(statement, prior)

    def _names_of_labels(self) -> tuple[str, ...]:
        if not self.labels.columns:
            return ()
        known = "they were released under a promise of their own, counted in above" if self.prior else "they are public"
        described = ("the descriptions of the labels: they are public",) if self.labels.described else ()
        return (f"the names of the labels: {known}", *described)


def noise_parameters(budget: PersonalBudgets, swapped: ApproxDP) -> dict[str, Parameter]:
    """What a statement says of budget and noise."""
    return {
        "epsilon": budget.cap,
        "delta": budget.delta,
        "sigma": budget.sigma,
        "sensitivity": 1.0,
        "epsilon_under_substitution": rounded_up(swapped.epsilon, 4),
        "delta_under_substitution": rounded_up(swapped.delta, 4),
    }


def always_assumed(unit: Unit, *, counted_in: bool) -> tuple[str, ...]:
    """What every description of people's texts takes for granted, before what its features do."""
    return (
        "all parameters are public, or computed from what was released before under a promise counted in above"
        if counted_in
        else "all parameters are public; none was computed from the protected texts",
        *(ONE_NAME if unit is Unit.USER else ()),
        "that there is at least one document may be known",
        f"at most {MOST_USERS:,} {unit}s take part",
        ELEMENTARY,
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SynthesisPlan(ReprMixin):
    """All that a description is decided on before a private text is read: public, and checked."""

    terms: Terms
    features: PublicFeatures
    pool: Pool

    @property
    def unit(self) -> UserUnit:
        """Who is protected."""
        return self.terms.unit

    @property
    def labels(self) -> Labels:
        """The classes."""
        return self.terms.labels

    def total(self, people: Iterable[UserTexts]) -> npt.NDArray[np.int64]:
        """(K, 1 + k) the sum of the people's matrices."""
        total = MomentSum(self.features, len(self.labels))
        if total.add(people) == 0:
            raise DataError("there are no documents: expected at least one")
        return total.cells

    def total_of(self, documents: DocumentReader | Iterable[Document]) -> npt.NDArray[np.int64]:
        """The `total` of the people who wrote these documents, which come in any order."""
        sample = TextSample()
        with texts_of(
            documents,
            columns=self.labels.columns,
            code=self.labels.code,
            unit=self.unit,
            most_documents=self.terms.most_documents,
        ) as people:
            total = self.total(sample.watch(people))
        sample.check_pool(self.pool)
        return total

    @cached_property
    def promise(self) -> PrivacyStatement:
        """What a release will promise, before it is made: without a name."""
        return self.statement(seeded=False)

    def statement(self, *, seeded: bool, release_id: str | None = None) -> PrivacyStatement:
        """The statement, with what was promised before counted in."""
        parameters: dict[str, Parameter] = {
            "count_weight": COUNT_WEIGHT,
            "features_fitted_on": self.pool.name,
            "features_fitted_on_sha256": self.pool.sha256,
        }
        return self.terms.statement(
            TextDistribution.mechanism, self.features, parameters, seeded=seeded, release_id=release_id
        )

    def _repr_fields(self) -> Fields:
        yield "unit", self.unit
        yield "labels", self.labels.names if self.labels.columns else None
        yield "features", self.features.name
        yield "dimension", self.features.dimension
        yield "pool", self.pool

    def _html_fields(self) -> Fields:
        return facts_of(self.statement(seeded=False))


class Synthesizer(ReprMixin):
    """Describes the texts of people by one noisy release, from which readable texts are made at no further cost.

    Every person's documents become one matrix (`dptext.synthesis.moments`): for each label how many there are, and
    where they lie in a public feature space. It has Euclidean length 1, all labels together. The matrices are added
    up, and Gaussian noise is added once, to all numbers. The result, a `TextDistribution`, weighs public texts, or
    texts that a language model writes, by how likely they are among these people's: that is post-processing, as often
    as one likes.

    **Guarantee** (unit user; add/remove; central): (epsilon, delta)-DP for a person with all their documents and
    labels. *Proof.* The sum moves by at most 1 in Euclidean length when a person comes or goes (checked in integers,
    for every person), sigma is that of the analytic Gaussian mechanism for sensitivity 1 (Balle and Wang 2018,
    Theorem 8), and the noise is exact. Under substitution the same release costs more; the statement has the number.
    Assumptions: pool, features, labels and all arguments are public, chosen without regard to the private texts, or
    were released under statements that are composed in; a person writes under one name, which nobody else has; there
    is at least one document, and that is public.

    Args:
        epsilon, delta: the budget of a person.
        labels: the public label set: a list; a mapping from labels to public descriptions, such as ``{"sports":
            "football, tennis, a match", ...}``, which help most where users are few; a mapping from columns to either,
            whose combinations are then the classes; what `dptext.private_labels` learned, at its own price; None: no
            labels. It is never read from the documents. A document with another label, or with none, takes no part.
        column: the name of the one column of labels; those that were learned name their own.
        features: "static" (means of the word vectors in the package), "words" (TF-IDF and SVD; extra ``sklearn``),
            "glove" (means of GloVe vectors; extra ``glove``), a `TextEncoder` such as `dptext.SentenceEncoder` (extra
            ``onnx``), or several of these side by side; "both" is a sentence model and words. None: "both" where a
            sentence model is installed, else ["static", "words"] (only "static" without scikit-learn; only "words"
            for a pool of mostly unknown words, such as one in another language).
        unit: "user"; or "document", a much weaker promise: nothing about a person with several documents.
        most_documents: of a person that are looked at: the first ones.
        public_users: a public number that the number of people does not exceed, for the check of delta:
            `dptext.privacy.budgets.DeltaWarning`.
        cache: the folder in which vectors of public pools are kept; None: the user's cache; False: nowhere.
        seed: for tests and papers: nothing is promised against anybody who knows it. None: cryptographic randomness.

    Raises:
        ParameterError: an argument out of range.
        RefusedError: labels learned under a promise about another unit.

    >>> import dptext
    >>> pool = ["tea and a cup of cocoa", "a cup of tea", "the tax law", "law and tax", "a new law on tax", "cocoa"]
    >>> vectors = dptext.load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))
    >>> documents = [
    ...     dptext.Document(text, user=f"{label} {user}", label=label)
    ...     for user in range(200) for text, label in [("my cup of tea", "drinks"), ("tax law", "rules")]
    ... ]
    >>> synthesizer = dptext.Synthesizer(
    ...     epsilon=2.0, labels=["drinks", "rules"], features=dptext.MeanOfWords(vectors), cache=False
    ... )
    >>> distribution = synthesizer.fit(documents, public=pool)
    >>> print(distribution.statement.guarantee, distribution.statement.unit)
    (2, 1e-06)-differential privacy user
    >>> made = distribution.sample(pool, 4)
    >>> sorted(zip(made.labels, made.texts))[0][0]
    'drinks'
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-6,
        labels: Sequence[Any] | Mapping[str, Any] | PrivateLabels | Labels | None = None,
        column: str = "label",
        features: Spec = None,
        unit: str = "user",
        most_documents: int = MOST_DOCUMENTS,
        public_users: int | None = None,
        cache: Any = None,
        seed: int | None = None,
    ) -> None:
        self.terms = Terms.of(
            epsilon=epsilon, delta=delta, labels=labels, column=column, unit=unit, most_documents=most_documents
        )
        self.features, self.public_users, self.cache, self.seed = features, public_users, cache, seed

    @property
    def labels(self) -> Labels:
        """The classes."""
        return self.terms.labels

    def plan(self, public: Any, *, progress: ProgressOption = None) -> SynthesisPlan:
        """All that is decided before a private text is read: features are fitted on the public texts.

        Raises:
            ParameterError, DataError: a pool without texts, or too small for its features.
            MissingExtraError: what the features need is not installed.
        """
        pool = Pool.of(public)
        with progress_bar(progress, "public texts", len(pool)) as done:
            features = fit_features(self.features, pool.texts, cache=self.cache, progress=done)
        return SynthesisPlan(terms=self.terms, features=features, pool=pool)

    def fit(
        self,
        documents: DocumentReader | Iterable[Document],
        *,
        public: Any,
        release_id: str | None = None,
        progress: ProgressOption = None,
    ) -> TextDistribution:
        """Describe documents, in any order: a release of their writers' texts.

        Args:
            documents: of `dptext.read_documents` (with ``user=``, and the columns of labels in ``keep=``), or
                `Document` objects (with ``label``, or ``attributes``).
            public: public texts that features are fitted on: as `Pool` takes them, or a plan made of them.
            release_id: the name under which a ledger was asked before, for the statement. None: a new one.
            progress: a bar, as `dptext.display` says; or called with the number of public texts that are encoded.

        Raises:
            DataError: a row without a user; no documents.
            ParameterError: the documents are given as public texts, or more than half of their distinct texts are in
                the pool (`dptext.synthesis.prompts.TextSample`).
            RefusedError: features of an encoder that was trained on texts that are not public.

        Warns:
            OverlapWarning: more than a tenth of the distinct texts are in the pool.
        """
        check_is_apart(public, documents)
        is_plan = isinstance(public, SynthesisPlan)
        check_users_are_read(documents, public.unit if is_plan else self.terms.unit)  # before features are fitted
        plan = public if is_plan else self.plan(public, progress=progress)
        warn_of_delta(as_approx(plan.promise.guarantee).delta, public_users=self.public_users)
        bits = RandomBits(self.seed)
        with progress_bar(None if callable(progress) else progress, "texts of people"):
            total = plan.total_of(documents)
        return self.released(plan, total, bits, release_id=release_id)

    def released(
        self, plan: SynthesisPlan, total: npt.NDArray[np.int64], bits: RandomBits, *, release_id: str | None = None
    ) -> TextDistribution:
        """Make the release of a sum that was made elsewhere (on Spark).

        Each call adds the noise anew, from ``bits`` of its own: it is a release that costs its whole budget. ``total``
        is that of `SynthesisPlan.total`, **private**.
        """
        if total.shape != (len(plan.labels), 1 + plan.features.dimension):
            raise ParameterError(f"expected the sum that the plan makes, got one of the shape {total.shape}")
        matrix = noisy_matrix(total, plan.terms.budget.sigma, bits)
        warn_unprotected(plan.promise)
        return TextDistribution(
            matrix=matrix,
            sigma=plan.terms.budget.sigma,
            labels=plan.labels,
            features=plan.features,
            statement=plan.statement(seeded=bits.seeded, release_id=release_id),
        )

    def _repr_fields(self) -> Fields:
        yield from self.terms._repr_fields()
        yield "features", self.features
