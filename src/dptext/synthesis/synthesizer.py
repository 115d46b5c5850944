"""`Synthesizer`: one noisy release of the distribution of users' texts, and its privacy statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ProgressOption, ReprMixin, progress_bar
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.features.features import PublicFeatures, Spec, fit_features
from dptext.features.pool import Pool, PoolName
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import ELEMENTARY, MOST_USERS, noisy_matrix
from dptext.privacy.budgets import PersonalBudgets, warn_of_delta
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit, as_approx, rounded_up
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import check_prior, counted_in, substituted
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.privacy.wording import warn_unprotected
from dptext.representations.device import described
from dptext.representations.encoders import MeanOfWords
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.moments import COUNT_WEIGHT, Labels, MomentSum
from dptext.synthesis.prompts import TextSample
from dptext.synthesis.servers import TwoServerPlan, two_server_statement
from dptext.users.grouping import ONE_NAME, UserTexts, UserUnit, documents_of, texts_of
from dptext.users.private_vocabulary import PrivateLabels
from dptext.validation import check_choice, check_float, check_int
from dptext.vectors.formats import STATIC, load_vectors_once

MOST_DOCUMENTS = 1000
"""Default maximum number of documents used per user."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """Public parameters of the guarantee: unit, labels and budget of Gaussian noise on sums with sensitivity 1."""

    unit: UserUnit
    labels: Labels
    budget: PersonalBudgets
    most_documents: int = MOST_DOCUMENTS

    def __post_init__(self) -> None:
        check_prior(dict(self.labels.learned), Unit(self.unit))

    @classmethod
    def of(cls, *, epsilon: float, delta: float, labels: Any, column: str, unit: str, most_documents: int) -> Terms:
        """Validate the arguments of a synthesizer."""
        return cls(
            unit="user" if check_choice("unit", unit, get_args(UserUnit)) == "user" else "document",
            labels=Labels.of(labels, column=column),
            budget=PersonalBudgets(check_float("epsilon", epsilon, above=0), delta=delta, floor=0.0),
            most_documents=check_int("most_documents", most_documents, minimum=1),
        )


def noise_parameters(budget: PersonalBudgets, swapped: ApproxDP) -> dict[str, Parameter]:
    """Return the budget and noise scale, for privacy statements."""
    return {
        "epsilon": budget.cap,
        "delta": budget.delta,
        "sigma": budget.sigma,
        "sensitivity": 1.0,
        "epsilon_under_substitution": rounded_up(swapped.epsilon, 4),
        "delta_under_substitution": rounded_up(swapped.delta, 4),
    }


def always_assumed(unit: Unit, *, counted_in: bool) -> tuple[str, ...]:
    """Return the assumptions of every synthesis release, except those about its features."""
    return (
        "all parameters are public, or computed from earlier releases whose guarantee is included above"
        if counted_in
        else "all parameters are public; none was computed from the protected texts",
        *(ONE_NAME if unit is Unit.USER else ()),
        "it may be known that there is at least one document",
        f"at most {MOST_USERS:,} {unit}s take part",
        ELEMENTARY,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class SynthesisPlan(TwoServerPlan):
    """Validated public configuration of a release, fixed before private texts are read."""

    terms: Terms
    features: PublicFeatures
    pool: Pool | PoolName
    release_id: str = field(default_factory=new_release_id)  # of a release by two servers

    kind: ClassVar[str] = "synthesize"

    def __post_init__(self) -> None:
        check_prior(self.prior, Unit(self.unit))

    @property
    def unit(self) -> UserUnit:
        """Privacy unit."""
        return self.terms.unit

    @property
    def labels(self) -> Labels:
        """Classes of the texts."""
        return self.terms.labels

    @property
    def prior(self) -> dict[str, PrivacyStatement]:
        """Privacy statements of earlier releases about the same users: learned labels and learned features."""
        return {**dict(self.labels.learned), **self.features.prior}

    @property
    def substitution_guarantee(self) -> ApproxDP:
        """Guarantee under substitution, composed with earlier releases."""
        return substituted(self.terms.budget.guarantee(relation=Relation.SUBSTITUTION), self.prior)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the labels."""
        return self.labels.columns

    def people(self, documents: DocumentReader | Iterable[Document]) -> AbstractContextManager[Iterable[UserTexts]]:
        """Return a context with the texts of each user and the class of each text."""
        limits: dict[str, Any] = {"unit": self.unit, "most_documents": self.terms.most_documents}
        return texts_of(documents, columns=self.columns, code=self.labels.code, **limits)

    def total(self, people: Iterable[UserTexts]) -> npt.NDArray[np.int64]:
        """Return the (K, 1 + k) sum of the users' matrices. *Not private.*"""
        total = MomentSum(self.features.remembering(), len(self.labels))
        if total.add(people) == 0:
            raise DataError("there are no documents: at least one is needed")
        return total.cells

    def total_of(self, documents: DocumentReader | Iterable[Document]) -> npt.NDArray[np.int64]:
        """Return the `total` of the users of the documents, in any order. *Not private.*"""
        sample = TextSample()
        with self.people(documents) as people:
            total = self.total(sample.watch(people))
        sample.check_pool(self.pool.texts)
        return total

    def _sums(self) -> tuple[MomentSum, dict[str, npt.NDArray[np.int64]]]:
        total = MomentSum(self.features.remembering(), len(self.labels))
        return total, {"matrix": total.cells}

    def server_statement(self, *, seeded: bool = False) -> PrivacyStatement:
        if self.prior:
            raise RefusedError("a curator released the labels or word vectors of this plan: use public ones")
        return two_server_statement(self.statement(seeded=seeded, release_id=self.release_id))

    def _released(self, sums: Mapping[str, Any], statement: PrivacyStatement) -> TextDistribution:
        sigma: Any = statement.parameters["sigma"]
        fields: dict[str, Any] = {"labels": self.labels, "features": self.features, "statement": statement}
        return TextDistribution(**sums, sigma=sigma, **fields)

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        features, tensors = self.features.to_parts()
        budget, pool = self.terms.budget, {"name": self.pool.name, "sha256": self.pool.sha256}
        settings: dict[str, Any] = {"epsilon": budget.cap, "delta": budget.delta, "unit": self.unit, "pool": pool}
        settings |= {"most_documents": self.terms.most_documents, "labels": self.labels.to_dict(), "features": features}
        known = _static_arrays(features["blocks"])  # every installation has them: they are not sent
        return settings, {name: array for name, array in tensors.items() if name not in known}

    @classmethod
    def _from_parts(cls, settings: Any, tensors: Mapping[str, Any], release_id: str, source: str) -> SynthesisPlan:
        names = ("epsilon", "delta", "unit", "most_documents")
        terms = Terms.of(labels=Labels.from_dict(settings["labels"]), column="", **{n: settings[n] for n in names})
        arrays = _static_arrays(settings["features"]["blocks"]) | dict(tensors)
        features = PublicFeatures.from_parts(settings["features"], arrays, source)
        return cls(terms=terms, features=features, pool=PoolName(**settings["pool"]), release_id=release_id)

    @cached_property
    def future_statement(self) -> PrivacyStatement:
        """Privacy statement of a future release, without a release id."""
        return self.statement(seeded=False)

    def statement(self, *, seeded: bool, release_id: str | None = None) -> PrivacyStatement:
        """Return the privacy statement, composed with earlier releases."""
        unit, labels = Unit(self.unit), self.labels
        first, *others = always_assumed(unit, counted_in=bool(self.prior))
        exposed = []
        if labels.columns:
            known = "they were released before with their own guarantee, which is included above"
            exposed = [f"the names of the labels: {known if labels.learned else 'they are public'}"]
            if labels.described:
                exposed.append("the descriptions of the labels: they are public")
        statement = release_statement(
            guarantee=self.terms.budget.guarantee(),
            unit=unit,
            relation=Relation.ADD_REMOVE,
            trust=Trust.CENTRAL,
            mechanism=TextDistribution.mechanism,
            parameters={
                **noise_parameters(self.terms.budget, self.substitution_guarantee),
                **{f"promise_of_{name}": str(before.guarantee) for name, before in self.prior.items()},
                "classes": len(labels),
                "label_columns": ", ".join(labels.columns) or None,
                "labels_sha256": labels.sha256,
                "most_documents": self.terms.most_documents,
                "count_weight": COUNT_WEIGHT,
                "features_fitted_on": self.pool.name,
                "features_fitted_on_sha256": self.pool.sha256,
                **self.features.parameters(),
            },
            assumptions=(first, *self.features.assumptions(), *others),
            exposed=exposed,
            seeded=seeded,
            release_id=release_id or new_release_id(),
        )
        return counted_in(statement, self.prior)


def _static_arrays(blocks: Sequence[Mapping[str, Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the blocks with the static word vectors of the package, by their names in a folder."""
    places = [place for place, block in enumerate(blocks) if block["encoder"].get("source") == STATIC]
    vectors = described(MeanOfWords(load_vectors_once(STATIC)))[1] if places else {}
    return {f"features.{place}.encoder.{name}": array for place in places for name, array in vectors.items()}


class Synthesizer(ReprMixin):
    """Fit a private distribution of users' texts, from which synthetic corpora are drawn without further privacy loss.

    The documents of each user become one matrix (`dptext.synthesis.moments`): the number of documents per label and the
    sum of their public features, clipped to a Euclidean norm of 1 over all labels. The matrices are summed, and
    Gaussian noise is added once to every entry. The result, a `TextDistribution`, weights public texts, or texts by a
    language model, by their likelihood among the private texts. This is post-processing and can be repeated.

    **Guarantee** (unit user; add/remove; central): (epsilon, delta)-DP for a person with all their documents and
    labels. *Proof.* Adding or removing a person changes the sum by at most 1 in Euclidean norm (checked in integers,
    for every person), sigma is the noise scale of the analytic Gaussian mechanism for sensitivity 1 (Balle and Wang
    2018, Theorem 8), and the noise is exact. Under substitution, epsilon and delta are larger: see the statement.
    Assumptions: pool, features, labels and all arguments are public and chosen without regard to the private texts, or
    were released under statements that this one includes; each person has exactly one user id, which is not shared;
    there is at least one document, and this fact is public.

    Args:
        epsilon, delta: privacy budget per user.
        labels: the public label set: a list; a mapping from labels to public descriptions, such as ``{"sports":
            "football, tennis, a match", ...}``, which help most with few users; a mapping from columns to either, whose
            combinations are the classes; the result of `dptext.private_labels`, with its own privacy loss; None: no
            labels. The label set is never read from the documents. Documents with another label, or none, are ignored.
        column: name of the label column; learned labels have their own.
        features: "static" (means of the word vectors in the package), "words" (TF-IDF and SVD; extra ``sklearn``),
            "glove" (means of GloVe vectors; extra ``glove``), a `TextEncoder` such as `dptext.SentenceEncoder` (extra
            ``onnx``), or a list of these; "both" is a sentence model and words. None: "both" where a
            sentence model is installed, else ["static", "words"] (only "static" without scikit-learn; only "words"
            for a pool of mostly unknown words, such as one in another language).
        unit: "user"; or "document", a much weaker guarantee that does not cover a user with several documents.
        most_documents: maximum number of documents used per user; later ones are ignored.
        public_users: public upper bound on the number of users, used to check delta
            (`dptext.privacy.budgets.DeltaWarning`). Do not count the private data.
        cache: folder for cached vectors of public pools; None: the user's cache folder; False: no cache.
        seed: for tests and papers only: there is no guarantee against anyone who knows it. None: cryptographic
            randomness.

    Raises:
        ParameterError: an argument is out of range.
        RefusedError: the labels were learned under a guarantee for another unit.

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
        self.labels, self.column = Labels.of(labels, column=column), column
        self.epsilon, self.delta, self.unit, self.most_documents = epsilon, delta, unit, most_documents
        self.features, self.public_users, self.cache, self.seed = features, public_users, cache, seed
        _ = self.terms  # raises for an argument that is out of range

    @property
    def terms(self) -> Terms:
        """The validated arguments that decide the guarantee."""
        names = ("epsilon", "delta", "labels", "column", "unit", "most_documents")
        return Terms.of(**{name: getattr(self, name) for name in names})

    def plan(self, public: Any, *, progress: ProgressOption = None) -> SynthesisPlan:
        """Fit the features on public texts and return the configuration of a release.

        Raises:
            ParameterError, DataError: the pool has no texts, or too few for its features.
            MissingExtraError: a package that the features need is not installed.
        """
        pool = Pool.of(public)
        with progress_bar(progress, "public texts", len(pool)) as done:
            features = fit_features(self.features, pool.texts, cache=self.cache, progress=done)
        return SynthesisPlan(terms=self.terms, features=features, pool=pool)

    def fit(
        self,
        documents: Any,
        *,
        public: Any,
        text: str = "text",
        user: str | None = None,
        label: str | Sequence[str] | None = None,
        release_id: str | None = None,
        progress: ProgressOption = None,
    ) -> TextDistribution:
        """Return a private distribution of the documents, which may come in any order.

        Args:
            documents: a table, as in `dptext.privatize`; the result of `dptext.read_documents` (with ``user=``, and the
                label columns in ``keep=``); or `Document` objects (with ``label``, or ``attributes``).
            text, user: columns of the table.
            label: label column of the table, or one per label column of the synthesizer; None: columns of these names.
            public: public texts for fitting the features: a plan, a `Pool` or an argument for one.
            release_id: id of a reservation in the ledger; None: a new id.
            progress: progress bar (`dptext.display`), or a function called with the number of encoded public texts.

        Raises:
            DataError: a row has no user, or there are no documents.
            ParameterError: the documents are given as public texts, or more than half of their distinct texts are in
                the pool (`dptext.synthesis.prompts.TextSample`).
            RefusedError: the features use an encoder that was trained on texts that are not public.

        Warns:
            OverlapWarning: more than a tenth of the distinct texts are in the pool.
        """
        if public is documents:
            raise ParameterError("the private documents were also passed as public texts: pass public texts")
        is_plan = isinstance(public, SynthesisPlan)
        terms = public.terms if is_plan else self.terms
        columns = terms.labels.columns
        documents = documents_of(documents, terms.unit, text=text, user=user, label=label, columns=columns)
        plan = public if is_plan else self.plan(public, progress=progress)
        warn_of_delta(as_approx(plan.future_statement.guarantee).delta, public_users=self.public_users)
        bits = RandomBits(self.seed)
        with progress_bar(None if callable(progress) else progress, "texts of people"):
            total = plan.total_of(documents)
        return self.released(plan, total, bits, release_id=release_id)

    def released(
        self, plan: SynthesisPlan, total: npt.NDArray[np.int64], bits: RandomBits, *, release_id: str | None = None
    ) -> TextDistribution:
        """Return the release of a sum that was computed elsewhere (such as on Spark).

        Each call draws new noise from ``bits`` and is a release that spends the whole budget. The argument ``total`` is
        **private**: it is the result of `SynthesisPlan.total`.
        """
        if total.shape != (len(plan.labels), 1 + plan.features.dimension):
            raise ParameterError(f"expected the sum of this plan, got shape {total.shape}")
        matrix = noisy_matrix(total, plan.terms.budget.sigma, bits)
        warn_unprotected(plan.future_statement)
        return TextDistribution(
            matrix=matrix,
            sigma=plan.terms.budget.sigma,
            labels=plan.labels,
            features=plan.features,
            statement=plan.statement(seeded=bits.seeded, release_id=release_id),
        )

    def _repr_fields(self) -> Fields:
        yield "epsilon", self.epsilon
        yield "delta", self.delta
        yield "unit", self.unit
        yield "labels", self.labels.names if self.labels.columns else None
        yield "features", self.features
