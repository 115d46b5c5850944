"""`TextDistribution`: released noisy moments of users' texts, and their post-processing."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Never, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ProgressOption, ReprMixin, progress_bar
from dptext.errors import DataError, ParameterError, extra
from dptext.features.features import UNIT, PublicFeatures, encoded_pool
from dptext.features.latent_words import LatentWords
from dptext.features.pool import Pool
from dptext.intervals import CONFIDENCE, Estimate
from dptext.io.artifacts import SavedFolder, read_statement_of, read_tensors, tensor_bytes
from dptext.io.documents import canonical_label
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import ApproxDP, Guarantee, as_approx, compose
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import HasStatement, Parameter, PrivacyStatement
from dptext.privacy.wording import facts_of, filled
from dptext.release.release import Release
from dptext.representations.encoders import TextEncoder
from dptext.synthesis import questions
from dptext.synthesis.density import VARIETY, LogRatio, Weights, choose
from dptext.synthesis.moments import COUNT_WEIGHT, Labels
from dptext.synthesis.prompts import CANDIDATES, Source, generated
from dptext.validation import check_choice, check_int, check_path

Floats = npt.NDArray[np.float64]
Shares: TypeAlias = Literal["released", "uniform"]
HINTS = 12
SURE = 3.0
"""Minimum number of noise standard deviations of a value that counts as signal."""

_TENSORS, _PRIVACY, _CARD = "distribution.safetensors", "privacy.json", "README.md"
FOLDER = SavedFolder(
    format="dptext-text-distribution",
    version=1,
    writer="dptext synthesize (OUT.distribution) or TextDistribution.save",
    holds="a distribution of texts",
    keys=("labels", "sigma", "features"),
    files=(_TENSORS, _PRIVACY, _CARD),
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TextDistribution(HasStatement, ReprMixin):
    """Private distribution of users' texts, released by `dptext.Synthesizer`.

    **Guarantee.** See `statement`. It covers every result of these methods, which only post-process the released matrix
    with public texts.

    Attributes:
        matrix: (K, 1 + k) float64, the noisy sum (`dptext.synthesis.moments`). The guarantee covers it, so it may
            be shared.
        sigma: standard deviation of the noise on each entry.
        labels: the classes.
        features: the public feature space.
        statement: privacy statement.
    """

    matrix: Floats
    sigma: float
    labels: Labels
    features: PublicFeatures
    statement: PrivacyStatement

    mechanism: ClassVar[str] = "text distribution"

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        expected = (len(self.labels), 1 + self.features.dimension)
        if matrix.shape != expected or not np.isfinite(matrix).all():
            raise ParameterError(f"expected finite numbers of shape {expected}, got {matrix.shape}")
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @cached_property
    def ratio(self) -> LogRatio:
        """Density ratio between the private and the public texts."""
        described, blocks = self.labels.described, self.features.blocks
        pretrained = [place for place, block in enumerate(blocks) if not isinstance(block.encoder, LatentWords)]
        return LogRatio.fit(
            self.matrix,
            self.sigma,
            COUNT_WEIGHT,
            self.features.mean,
            self.features.covariance,
            None if described is None else self.features.units(described) * UNIT,
            [block.dimension for block in blocks],
            leading=pretrained[0] if pretrained else 0,
        )

    def shares(self) -> dict[str, float]:
        """Return the noisy fraction of each label; all users have the same total weight."""
        return dict(zip(self.labels.names, self.ratio.shares.tolist(), strict=True))

    def estimate_shares(
        self, categories: Mapping[str, Sequence[str]], *, confidence: float = CONFIDENCE, other_source: bool = False
    ) -> dict[str, Estimate]:
        """Estimate the share of each of several categories, which may be named after the release.

        No budget is spent: the released sum is compared with the mean features of public texts, corrected for
        categories that the features confuse. This assumes that the private texts of a category have the same mean
        features as its public texts, and that the categories cover all private texts. All users have about the same
        total weight. Labels are not used. Derivation and limits: docs/mechanisms/synthesis.md#ask-later

        Args:
            categories: public texts by category, 20 or more each, better hundreds by different authors. Give each kind
                of other texts its own category: a pooled one must mix the kinds as the private texts do. If the
                features include "words", the pool of the release must not contain these texts.
            confidence: confidence of the interval of each category on its own. The intervals of C categories hold
                together with 95% for ``1 - 0.05 / C``.
            other_source: accept public texts that differ a little from the private ones. The intervals then rely on
                the estimated difference. They are wrong if a kind of text has no category.

        Returns:
            The estimate of each category: ``value``, ``low`` and ``high``.

        Raises:
            ParameterError: a category has too few texts.
            DataError: the private texts do not look like a mixture of these categories (1% false alarms).
        """
        return questions.estimate_shares(
            self.matrix, self.sigma, self.features, categories, confidence=confidence, other_source=other_source
        )

    def doubts(self) -> tuple[str, ...]:
        """Return warnings about noise, computed from the released matrix."""
        counts, features = self.matrix[:, 0] / self.sigma, self.matrix[:, 1:] / self.sigma
        whole, total = features.sum(axis=0), max(counts.sum(), 1.0)
        if not _is_seen(features):
            why = ", or their labels are not in the list or are spelled differently" if self.labels.columns else ""
            return (
                f"noise hides the private texts: there are too few people for this epsilon{why}; texts are selected "
                "at random",
            )
        if not self.labels.columns:
            return ()
        # contribution of the noise on the counts
        further = SURE**2 * len(counts) * float(whole @ whole) / total**2
        if not _is_seen(features - np.outer(counts / total, whole), further=further):
            return (
                "noise hides the differences between the labels: there are too few people for this epsilon, or the "
                "features do not capture these differences (is the pool in another language, or from another domain?)",
            )
        hidden = [repr(name) for name, count in zip(self.labels.names, counts, strict=True) if count < SURE]
        if not hidden:
            return ()
        names = ", ".join(hidden[:5]) + ("" if len(hidden) <= 5 else f" and {len(hidden) - 5:,} more")
        return (
            f"the noisy count of {names} is within its noise: few users have such a label, or its name is spelled "
            "differently; texts for it are selected at random",
        )

    def weigh(self, texts: Sequence[str]) -> Weights:
        """Return the likelihood scores of texts. The texts must be public or post-processing of a release."""
        return self.ratio.weigh(self.features.units(texts), UNIT)

    @cached_property
    def classes_(self) -> npt.NDArray[np.str_]:
        """(K,) sorted names of the classes, as in scikit-learn."""
        return np.sort(np.array(self.labels.names))

    def predict_proba(self, texts: Sequence[str]) -> Floats:
        """Return the class probabilities of texts that are public or stay with their owner.

        The release is a classifier: predictions use the released matrix only, so they spend no budget. Whether it
        predicts better than a model trained on `sample` depends on the data: `dptext.report` compares the two.

        Args:
            texts: n strings. Probabilities of private texts are *not private*.

        Returns:
            (n, K) float64, classes in the order of `classes_`; each row sums to 1.

        Raises:
            ParameterError: the release has no labels.
        """
        if not self.labels.columns:
            raise ParameterError("this release has no labels to predict: fit a Synthesizer with labels=")
        scores = self.weigh(texts).scores[:, np.argsort(np.array(self.labels.names))]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def predict(self, texts: Sequence[str]) -> npt.NDArray[np.str_]:
        """Return the (n,) names of the likeliest classes; raise the same errors as `predict_proba`."""
        return np.asarray(self.classes_[self.predict_proba(texts).argmax(axis=1)])

    def score(self, texts: Sequence[str], labels: Sequence[Any]) -> float:
        """Return the accuracy of `predict`, given one label per text. For private texts it is *not private*."""
        if not len(labels) or len(labels) != len(texts):
            raise ParameterError(f"labels must have one entry for each of {len(texts)} texts, got {len(labels)}")
        return float(np.mean(self.predict(texts) == [canonical_label(label) for label in labels]))

    def fit(self, *_: Any, **__: Any) -> Never:
        """Raise a ParameterError: a release is already fitted. Scikit-learn requires this method."""
        raise ParameterError(
            "a release is already fitted: wrap it in sklearn.frozen.FrozenEstimator, or fit a new Synthesizer"
        )

    def __sklearn_tags__(self) -> Any:
        tags = extra("sklearn.utils", "sklearn", "an estimator")
        return tags.Tags(
            estimator_type="classifier",
            target_tags=tags.TargetTags(required=True),
            classifier_tags=tags.ClassifierTags(),
            requires_fit=False,
            input_tags=tags.InputTags(two_d_array=False, one_d_array=True, string=True),
        )

    def hints(self, count: int = HINTS) -> dict[str, tuple[str, ...]]:
        """Return the most characteristic public words of each label."""
        count, words = check_int("count", count, minimum=0), self.features.words
        if not words:
            return dict.fromkeys(self.labels.names, ())
        scores = self.weigh(words).scores
        if scores.shape[1] > 1:
            scores = scores - scores.mean(axis=1, keepdims=True)
        best = np.argsort(-scores, axis=0, kind="stable")[:count].T.tolist()
        return {name: tuple(words[row] for row in rows) for name, rows in zip(self.labels.names, best, strict=True)}

    def sample(
        self,
        public: Any,
        n: int,
        *,
        variety: float = VARIETY,
        shares: Shares = "released",
        cache: Any = None,
        progress: ProgressOption = None,
        seed: int | None = None,
    ) -> Release:
        """Select likely texts from a public pool, each at most once, with a label.

        Args:
            public: a `Pool`, or files, a table or texts for one. It must be chosen without regard to the private texts;
                do not remove a text because it is among them.
            n: number of texts (public).
            variety: from 0 (the most typical texts of each label) to 1 (a draw from all likely texts).
            shares: fractions of the labels: "released" (by the noisy counts) or "uniform".
            cache: as in `dptext.Synthesizer`.
            progress: progress bar (`dptext.display`), or a function called with the number of encoded public texts.
            seed: seed of the selection, which does not affect the guarantee; None draws one.

        Returns:
            A `dptext.Release` with ``texts``, ``labels`` and the privacy statement.

        Raises:
            ParameterError: an argument is out of range, or n exceeds the size of the pool.
        """
        n = check_int("n", n, minimum=1)
        check_choice("shares", shares, get_args(Shares))
        pool = Pool.of(public)
        with progress_bar(progress, "public texts", len(pool)) as done:
            units = encoded_pool(self.features, pool.texts, cache=cache, progress=done)
            weights = self.ratio.weigh(units, UNIT)
        chosen, classes = choose(
            weights.scores, weights.nearness, n, shares=self._wanted(shares), variety=variety, bits=RandomBits(seed)
        )
        doubts = (*self.doubts(), *self._distance(float(weights.nearness[chosen].mean()), "texts of the pool"))
        return self._make_release([pool.texts[place] for place in chosen.tolist()], classes, [pool], doubts)

    def generate(
        self,
        source: Source,
        n: int,
        *,
        examples: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
        public: Any = None,
        rounds: int = 2,
        candidates: int = CANDIDATES,
        variety: float = VARIETY,
        shares: Shares = "released",
        progress: ProgressOption = None,
        seed: int | None = None,
    ) -> Release:
        """Let a source write candidates, and select the likely ones.

        The source receives names and descriptions of the labels, hints, the examples, and in later rounds its own good
        texts, but no private text. Generation spends no privacy budget. If public texts of the same domain exist,
        `sample` gives better texts than a small model writes.

        Args:
            source: `dptext.LocalModel`, `dptext.CompletionEndpoint`, `dptext.ChatEndpoint`, or any `Source`.
            n, variety, shares, seed: as in `sample`.
            examples: public texts per label name, three or more each; a list for a release without labels. They help
                more than anything else. Written near copies of them are left out.
            public: a `Pool`, or an argument for one, to select from together with the written texts. Written near
                copies of its texts are left out.
            rounds: maximum number of rounds; a round that does not improve the texts is the last one.
            candidates: number of texts that the source writes per selected text and round.
            progress: progress bar (`dptext.display`), or a function called with the number of written texts.

        Raises:
            ParameterError: an argument is out of range, or an example has an unknown label.
            DataError: the source returned no or too few texts.
        """
        n, rounds = check_int("n", n, minimum=1), check_int("rounds", rounds, minimum=1)
        candidates = check_int("candidates", candidates, minimum=1)
        check_choice("shares", shares, get_args(Shares))
        if not isinstance(source, Source):
            raise ParameterError("source must be a dptext.synthesis.prompts.Source (pass a pool as public=)")
        pool = None if public is None else Pool.of(public)
        by_label = self.labels.check_examples(examples)
        with progress_bar(progress, "texts written") as done:
            generation = generated(
                self.weigh,
                source,
                self.labels,
                self.hints(),
                n,
                examples=by_label,
                pool=() if pool is None else pool.texts,
                rounds=rounds,
                candidates=candidates,
                shares=self._wanted(shares),
                variety=variety,
                bits=RandomBits(seed),
                progress=done,
            )
        doubts = (*self.doubts(), *generation.doubts(), *self._distance(generation.nearness, "written texts"))
        parameters: dict[str, Parameter] = {
            "generator": type(source).__name__,  # unless the source names itself
            "generator_rounds": rounds,
            "generator_candidates": candidates,
            "generator_examples": sum(map(len, by_label.values())),
        }
        sources: list[Pool | Source] = [source] if pool is None else [source, pool]
        assumptions = ("the examples for the generator are public texts",) if by_label else ()
        return self._make_release(generation.texts, generation.classes, sources, doubts, parameters, assumptions)

    def _distance(self, nearness: float, candidates: str) -> tuple[str, ...]:
        """Return a doubt if the selected texts are far from the private ones."""
        domain = self.ratio.domain
        deviation = math.sqrt(max(float(domain @ self.features.covariance @ domain), 0.0))
        if not 0 < deviation < -nearness:
            return ()
        return (
            f"too few of the {candidates} are like the private ones: the selected texts are "
            f"{-nearness / deviation:.1f} standard deviations away from them. Select fewer texts (-n), or use public "
            "texts of the same domain",
        )

    def _wanted(self, shares: Shares) -> Floats:
        return self.ratio.shares if shares == "released" else np.full(len(self.labels), 1 / len(self.labels))

    def _make_release(
        self,
        texts: Sequence[str],
        classes: npt.NDArray[np.intp],
        sources: Sequence[Pool | Source],
        doubts: tuple[str, ...],
        parameters: Mapping[str, Parameter] = MappingProxyType({}),
        assumptions: tuple[str, ...] = (),
    ) -> Release:
        """Return texts with their labels; the statement includes their sources."""
        values, released = [self.labels.values_of(code) for code in classes.tolist()], self.statement.parameters
        columns = {column: [row[column] for row in values] for column in self.labels.columns}
        added: dict[str, Parameter] = dict(parameters)
        for source in sources:
            added |= source.parameters()
        statement = self.statement.replace(
            parameters={**released, **added, **released, "texts": len(texts)},  # the release takes precedence
            assumptions=(
                *self.statement.assumptions,
                *assumptions,
                *(a for source in sources for a in source.assumptions()),
            ),
            exposed=(*self.statement.exposed, *(line for source in sources for line in source.exposed())),
            data_sha256=None,
        )
        troubles = (getattr(source, "trouble", "") for source in sources)  # for sources that can fail
        return Release(
            statement=statement,
            documents=len(texts),
            doubts=(*doubts, *filter(None, troubles)),
            outputs={"texts": list(texts), "columns": columns},
        )

    def save(self, folder: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save the shareable files (arrays, configuration, statement, card) in a folder, completely or not at all.

        Args:
            folder: path of the new folder.
            replace: overwrite the folder if this method wrote it.

        Raises:
            ParameterError: the path already exists.
            StorageError: the folder cannot be written.
        """
        target = FOLDER.place(folder, replace=replace)
        config, tensors = self.features.to_parts()
        arrays = tensor_bytes({**tensors, "matrix": self.matrix})
        statement = self.statement.replace(data_sha256=hashlib.sha256(arrays).hexdigest())
        files = {_TENSORS: arrays, _PRIVACY: (statement.to_json() + "\n").encode(), _CARD: self.card().encode()}
        announced = {
            "labels": self.labels.to_dict(),
            "sigma": self.sigma,
            "features": config,
        }
        FOLDER.write(target, announced, files, software=statement.software, replace=replace)

    def card(self) -> str:
        """Return the Markdown card of the folder: guarantee, limits and usage."""
        return filled("synthesis/templates/card.md", distribution=self, statement=self.statement)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        encoder: TextEncoder | Sequence[TextEncoder] | None = None,
        features: PublicFeatures | None = None,
    ) -> TextDistribution:
        """Load a distribution from a folder of `save`.

        Args:
            folder: path of the folder.
            encoder: encoders that the folder does not contain (your own function, a model in another folder).
            features: the public features, if they are already in memory.

        Raises:
            DataError: the folder was changed, or is not a distribution.
            RefusedError: the encoder was trained on texts that are not public.
            MissingExtraError: a package that the features need is not installed.
            StorageError: the folder cannot be read.
        """
        place = check_path("the folder", folder)
        source = place.name or str(place)
        parts = read_description(place)
        if features is None:
            features = PublicFeatures.from_parts(parts.config["features"], parts.tensors, source, encoder=encoder)
        loaded = cls(
            matrix=parts.matrix, sigma=parts.sigma, labels=parts.labels, features=features, statement=parts.statement
        )
        if wrong := loaded._disagreements():
            raise DataError(
                f"{source}: its files and {_PRIVACY} do not agree ({', '.join(wrong)} differ): the folder was "
                "changed, or another version of dptext wrote it. Get it again"
            )
        return loaded

    def _disagreements(self) -> list[str]:
        """Return the fields of the statement that contradict the release."""
        parameters = self.statement.parameters
        prior = {**dict(self.labels.learned), **self.features.prior}
        known: dict[str, object] = {
            "sigma": self.sigma,
            "classes": len(self.labels),
            "label_columns": ", ".join(self.labels.columns) or None,
            "labels_sha256": self.labels.sha256,
            "count_weight": COUNT_WEIGHT,
            **self.features.parameters(),
            **{f"promise_of_{name}": str(before.guarantee) for name, before in prior.items()},
        }
        wrong = [name for name, value in known.items() if parameters.get(name) != value]
        wrong += [name for name in parameters if name.startswith("promise_of_") and name not in known]
        if not is_described(self.statement):
            wrong.append("mechanism")
        if not noise_is_enough(self.statement, prior):
            wrong.append("guarantee")
        return wrong

    def _repr_fields(self) -> Fields:
        yield "labels", self.labels.names if self.labels.columns else None
        yield "features", self.features.name
        yield "dimension", self.features.dimension
        yield "sigma", self.sigma
        yield "guarantee", str(self.statement.guarantee)

    def _html_fields(self) -> Fields:
        yield from facts_of(self.statement)
        if self.labels.columns:
            yield "shares", ", ".join(f"{name} {share:.0%}" for name, share in self.shares().items())
        yield from (("doubt", doubt) for doubt in self.doubts())


@dataclass(frozen=True, eq=False, kw_only=True)
class Described:
    matrix: Floats
    sigma: float
    labels: Labels
    statement: PrivacyStatement
    config: Mapping[str, Any]
    tensors: Mapping[str, npt.NDArray[Any]]


def is_described(statement: PrivacyStatement) -> bool:
    return statement.mechanism.split(" + ")[0] == TextDistribution.mechanism


def read_description(folder: Path) -> Described:
    """Read the distribution in a folder, without its features."""
    source = folder.name or str(folder)
    config, contents = FOLDER.read(folder, source)
    statement = read_statement_of(contents[_PRIVACY], source, _PRIVACY)
    tensors, _ = read_tensors(folder / _TENSORS, source=f"{source}: {_TENSORS}")
    try:
        return Described(
            matrix=np.asarray(tensors["matrix"], dtype=np.float64),
            sigma=float(config["sigma"]),
            labels=Labels.from_dict(config["labels"]),  # with the statements that later releases compose
            statement=statement,
            config=config,
            tensors=tensors,
        )
    except (ParameterError, TypeError, KeyError, ValueError, AttributeError):
        raise DataError(f"{source}: its files do not belong together. Get the folder again") from None


def _is_seen(features: Floats, *, further: float = 0.0) -> bool:
    """Return True if the norm exceeds the 99.9% quantile of noise alone."""
    usual = features.size + SURE * math.sqrt(2 * features.size)
    return float(np.square(features).sum()) > usual + further


def noise_is_enough(statement: PrivacyStatement, prior: Mapping[str, PrivacyStatement]) -> bool:
    """Return True if the noise suffices for this release and the guarantee covers it and earlier releases."""
    try:
        names = ("epsilon", "delta", statement.noise_parameter)
        epsilon, delta, sigma = (float(statement.parameters[name]) for name in names)  # type: ignore[arg-type]
        total: Guarantee = ApproxDP(epsilon, delta)
        for before in prior.values():
            total = compose(total, before.whole_guarantee)
        spent, minimum = as_approx(statement.guarantee), as_approx(total)
        needed = gaussian_delta(sigma, epsilon=epsilon, sensitivity=1.0)
    except (KeyError, TypeError, ValueError, ArithmeticError):  # missing parameters, or guarantees that do not compose
        return False
    covered = spent.epsilon >= minimum.epsilon * (1 - 1e-12) and spent.delta >= minimum.delta * (1 - 1e-12)
    return covered and statement.parameters.get("sensitivity") == 1.0 and needed <= delta * (1 + 1e-9)
