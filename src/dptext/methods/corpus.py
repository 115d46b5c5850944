"""The examination of a synthetic corpus: its texts, models trained on it, and membership in the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import AttackScore
from dptext.attacks.membership import gaussian_ceiling, sum_membership
from dptext.errors import DataError, ParameterError
from dptext.evaluation.corpus_quality import MEASURES, compare, nearest_labels, squared_radii
from dptext.evaluation.measures import measure
from dptext.evaluation.utility import trained_answers
from dptext.intervals import Estimate, mean_over_runs, paired_difference
from dptext.io.batches import display_name
from dptext.io.documents import OnError, read_documents
from dptext.methods.checks import check_corpus, check_noise, description_folder
from dptext.methods.examination import Examination
from dptext.methods.files import chosen_rows, count_rows
from dptext.methods.results import Corpus, LabelOfCorpus, Measurement, Spread
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.guarantee import Unit
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.distribution import TextDistribution, read_description
from dptext.synthesis.moments import MomentSum
from dptext.users.grouping import UserTexts, texts_of

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_MAX_TRAINING = 20_000
_LABELS_SHOWN, _SAMPLES_SHOWN, _MAX_CHARACTERS = 20, 3, 200
_DISTANCE_TEXTS = 2000
_COMPARISONS, _MAX_COMPARED, _MIN_COMPARED = 5, 1000, 10
_MAX_TARGETS = 1000  # members, and others
_MAX_NUMBERS = 1 << 31
_NO_HELD_OUT = "--held-out names a file of people who are not in the data"


@dataclass(frozen=True, eq=False)
class _Texts:
    """Texts with their classes and authors (None: unknown)."""

    texts: list[str]
    codes: Codes
    people: list[str] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, rows: npt.NDArray[np.intp]) -> _Texts:
        people = None if self.people is None else [self.people[row] for row in rows]
        return _Texts([self.texts[row] for row in rows], self.codes[rows], people)


class CorpusExamination(Examination):
    """A synthetic corpus and the description that it was sampled from."""

    def run(self) -> None:
        config, labels = self.config, self._distribution.labels.columns
        wrong = [name for name in ("attribute", "group") if getattr(config, name) is not None]
        wrong += ["label"] if config.label is not None and config.label not in labels else []
        if wrong:
            known = f"its labels are known ({', '.join(labels)})" if labels else "it has no labels"
            raise ParameterError(f"a synthetic corpus has no original rows, and {known}: omit {' and '.join(wrong)}")
        self.say(f"Auditing {self.statement.mechanism} ...")
        self.add_audit(check_corpus(self.files, read_description(self._folder)))
        self.notes += [f"{doubt[0].upper()}{doubt[1:]}." for doubt in self._distribution.doubts()]
        if config.label is not None and config.original is None:
            self.notes.append("No model was trained: name real texts to test it on (--original).")
        if self.files.pool is None:
            self.notes.append("The corpus was not compared with the public pool: name it with --public.")
        self.attacks.append(self._bound())
        corpus, real = self._read(self.data, None), None
        if config.original is not None:
            self._check_noise(config.original)
            real = self._read(config.original, config.user, maximum=config.rows)
            self._measure_utility(corpus, real)
            self._attack_membership()
        self.say("Comparing texts ...")
        self.corpus = self._describe_texts(corpus, real)

    def membership(self) -> list[AttackScore]:
        """Return the bound on membership inference, and the success of an adversary who guesses the other texts."""
        self._attack_membership()
        return [self._bound(), *self.owner_attacks]

    # -- inputs -----------------------------------------------------------------------------------------------

    @cached_property
    def _folder(self) -> Path:
        result = description_folder(self.data, self.config.distribution)
        if result is None:
            raise DataError(
                f"{display_name(self.data)}: its description ({self.data.name}.distribution) is missing: name it with "
                "--distribution"
            )
        return result

    @cached_property
    def _distribution(self) -> TextDistribution:
        return TextDistribution.load(self._folder)

    @cached_property
    def _bits(self) -> RandomBits:
        """Random bits for numbers that depend on original texts."""
        return RandomBits(self.config.seed)

    @cached_property
    def _public_bits(self) -> RandomBits:
        """Random bits for published numbers: these must not depend on the number of original texts."""
        return RandomBits(self.config.seed)

    def _read(self, path: Path, user: str | None, *, maximum: int | None = None) -> _Texts:
        """Return the texts of a file that have a class; a random sample of this size if there are more rows."""
        labels, chosen = self._distribution.labels, None
        if maximum is not None and (count := count_rows(path, text=self.config.text)) > maximum:
            chosen = set(chosen_rows(count, maximum, self._bits).tolist())
            self.notes.append(f"{maximum:,} of {count:,} rows of {display_name(path)} were examined, chosen at random.")
        texts, codes, people = [], [], []
        with closing(read_documents(path, text=self.config.text, user=user, keep=labels.columns)) as reader:
            for row, document in enumerate(reader):
                values = document.attributes or {}
                code = labels.code([values.get(column) for column in labels.columns])
                if (chosen is None or row in chosen) and code >= 0:
                    texts.append(document.text or "")
                    codes.append(code)
                    people.append(str(document.user))
        minimum = 2 * self.config.folds
        if len(texts) < minimum or (user is not None and len(set(people)) < 2):
            raise DataError(
                f"{display_name(path)} must have at least {minimum} texts with a label of the public set, by two "
                f"people or more, got {len(texts)}"
            )
        return _Texts(texts, np.array(codes, dtype=np.int64), people if user is not None else None)

    # -- utility ----------------------------------------------------------------------------------------------

    def _measure_utility(self, corpus: _Texts, real: _Texts) -> None:
        config, distribution, pool, held_out = self.config, self._distribution, self.files.pool, None
        if config.held_out is not None:  # texts of people who are not in the data
            held_out = self._read(config.held_out, config.user, maximum=config.rows)
        if len(distribution.labels.names) < 2:
            self.notes.append("No model was trained: the corpus has no labels, or a single one.")
            return
        corpus = corpus.select(chosen_rows(len(corpus), _MAX_TRAINING, self._bits))
        train, test = (real, held_out) if held_out is not None else self._halves(real)
        if len(np.unique(test.codes)) < 2:
            self.notes.append("No model was trained: the real texts for the test have a single label.")
            return
        self.say(f"Training models on {len(corpus):,} texts ...")
        source = "held-out texts" if held_out is not None else "the other half of the original texts"
        tested = f"tested on {len(test):,} {source}"
        predicted = self._train("trained on the corpus", corpus, test, tested)
        self._train("trained on original texts", train, test, tested)
        sizes = len(train), len(corpus)
        rows = chosen_rows(max(sizes), min(sizes), RandomBits(self.config.seed))
        if sizes[0] > sizes[1]:
            self._train("trained on original texts, as many as the corpus has", train.select(rows), test, tested)
        elif sizes[0] < sizes[1]:
            self._train("trained on the corpus, cut to as many texts", corpus.select(rows), test, tested)
        by_release = distribution.weigh(test.texts).scores.argmax(axis=1)
        self._score(
            "the release alone: its linear model, no text", by_release, test, is_rival=True, reference=predicted
        )
        by_name = nearest_labels(distribution.features, distribution.labels, test.texts)
        self._score("the nearest label name: epsilon 0, no private data", by_name, test, is_rival=True)
        if pool is not None:
            draws = [pool.texts[row] for row in chosen_rows(len(pool), len(corpus), self._bits).tolist()]
            labelled = _Texts(draws, distribution.weigh(draws).scores.argmax(axis=1))
            name = "random texts of the pool, labelled by the release"
            self._train(name, labelled, test, is_rival=True, reference=predicted)
            labelled = _Texts(draws, nearest_labels(distribution.features, distribution.labels, draws))
            self._train("random texts of the pool, labelled by label names: epsilon 0", labelled, test, is_rival=True)
        shuffled = corpus.codes[np.argsort(self._bits.integers(len(corpus)), kind="stable")]
        self._train("the corpus with its labels shuffled", replace(corpus, codes=shuffled), test, is_rival=True)

    def _train(self, name: str, train: _Texts, test: _Texts, tested: str = "", **options: Any) -> npt.NDArray[Any]:
        """Train a model, add its accuracy, and return its predictions."""
        predicted = trained_answers(train.texts, train.codes, test.texts, seed=self.config.seed)
        detail = f"{len(train):,} texts; {tested}" if tested else ""
        self._score(name, predicted, test, detail, texts=len(train), **options)
        return predicted

    def _score(
        self,
        name: str,
        predicted: npt.NDArray[Any],
        test: _Texts,
        detail: str = "",
        *,
        reference: npt.NDArray[Any] | None = None,
        **options: Any,
    ) -> None:
        """Add the accuracy of predictions; ``reference``: predictions of the model trained on the corpus."""
        people = None if test.people is None else np.asarray(test.people)
        accuracy, f1 = (
            measure(kind, test.codes, predicted, people=people, seed=self.config.seed)
            for kind in ("accuracy", "macro-F1")
        )
        if reference is not None:
            owners = np.arange(len(test)) if people is None else people
            options["lead"] = paired_difference(reference == test.codes, predicted == test.codes, owners)
        by_class = f"macro-F1 {f1.score.value:.3f} ({f1.score.low:.3f} to {f1.score.high:.3f})"
        detail = f"{by_class}; {detail}" if detail else by_class
        self.utility.append(Measurement.of(accuracy, name=name, detail=detail, owner_only=True, **options))

    def _halves(self, real: _Texts) -> tuple[_Texts, _Texts]:
        """Split original texts by person, for training and test."""
        self.notes.append(
            "Models were tested on original texts, which the description contains as well; the guarantee bounds the "
            f"effect. {_NO_HELD_OUT[0].upper()}{_NO_HELD_OUT[1:]}."
        )
        person = np.arange(len(real)) if real.people is None else np.unique(real.people, return_inverse=True)[1]
        order = np.argsort(self._bits.integers(int(person.max()) + 1), kind="stable")
        first = np.isin(person, order[: len(order) // 2])
        return real.select(np.flatnonzero(first)), real.select(np.flatnonzero(~first))

    # -- membership -------------------------------------------------------------------------------------------

    def _bound(self) -> AttackScore:
        auc = gaussian_ceiling(self._distribution.sigma).auc
        return AttackScore(
            attack="membership (knows everybody else)",
            measure="AUC",
            score=Estimate(auc, auc, auc, 1, "releases"),
            baseline=0.5,
            baseline_name="chance",
            detail=f"upper bound on average, computed from the stated noise, for any {self.statement.unit}",
        )

    def _attack_membership(self) -> None:
        config = self.config
        reason: str | None
        if config.original is None or config.held_out is None:
            reason = _NO_HELD_OUT
        elif self.statement.unit is Unit.USER and config.user is None:
            reason = "the guarantee protects users, and no column names them (--user)"
        else:
            reason = self._attack_sums(config.original, config.held_out)
        if reason is not None:
            self.notes.append(f"Membership was not attacked: {reason}.")

    def _attack_sums(self, original: Path, held_out: Path) -> str | None:
        """Attack the released sums; return the reason if there are too few people."""
        self.say("Distinguishing members from other people ...")
        released = self._distribution.matrix
        maximum = min(_MAX_TARGETS, self.config.rows, _MAX_NUMBERS // (2 * released.size))
        inside = self._contributions(original, maximum)
        outside = self._contributions(held_out, 2 * maximum)
        strangers, outside = outside[: len(outside) // 2], outside[len(outside) // 2 :]
        if min(len(inside), len(outside), len(strangers)) < 2:
            return "at least two members and four other people are needed"
        guess = np.sum(strangers, axis=0)
        guess *= float(np.vdot(guess, released)) / max(float(np.vdot(guess, guess)), 1e-300)
        members = np.arange(len(inside) + len(outside)) < len(inside)
        attack = "membership (guesses the others)"
        result = sum_membership(released, [*inside, *outside], members, guess=guess, attack=attack)
        ceiling = gaussian_ceiling(self._distribution.sigma)
        limits = (ceiling.auc, ceiling.accuracy, ceiling.at_1_percent, ceiling.at_01_percent)
        for score, limit in zip(result.scores, limits, strict=True):
            detail = f"at most {limit:.3f} on average, by the noise; {score.detail}"
            self.owner_attacks.append(replace(score, detail=detail))
            self.limits[score.measure] = limit
        return None

    def _check_noise(self, original: Path) -> None:
        distribution = self._distribution
        if self.statement.unit is Unit.USER and self.config.user is None:
            self.notes.append("The noise was not compared with the original texts: name the column of users (--user).")
            return
        self.say("Comparing the noise with the original texts ...")
        total = MomentSum(distribution.features, len(distribution.labels))
        with self._people(original, on_error="skip") as people:  # as the release skipped them
            total.add(people)
        exact = np.asarray(total.cells * CELL, dtype=np.float64)
        self.checks.append(check_noise(distribution.matrix, exact, distribution.sigma))

    @contextmanager
    def _people(self, path: Path, *, on_error: OnError = "fail") -> Iterator[Iterable[UserTexts]]:
        """Group the texts of a file by user (or document), as the release did."""
        labels, limit = self._distribution.labels, self.statement.parameters.get("most_documents")
        is_user = self.statement.unit is Unit.USER
        options: dict[str, Any] = {"text": self.config.text, "user": self.config.user if is_user else None}
        with (
            closing(read_documents(path, keep=labels.columns, on_error=on_error, **options)) as reader,
            texts_of(
                reader,
                columns=labels.columns,
                code=labels.code,
                unit="user" if is_user else "document",
                most_documents=limit if isinstance(limit, int) else None,
            ) as people,
        ):
            yield people

    def _contributions(self, path: Path, maximum: int) -> list[Floats]:
        """Return the contributions of a random sample of users to the sum; users without a class contribute nothing."""
        distribution = self._distribution
        with self._people(path) as people:
            count = sum(1 for _ in people)
            chosen = set(chosen_rows(count, maximum, self._bits).tolist())
            draws = [list(person.chunks()) for number, person in enumerate(people) if number in chosen]
        space: Any = _EncodedTexts(distribution, [text for person in draws for texts, _ in person for text in texts])
        matrices: list[Floats] = []
        for chunks in draws:
            total = MomentSum(space, len(distribution.labels))
            total.add([UserTexts(chunks)])
            if total.cells.any():
                matrices.append(np.asarray(total.cells * CELL, dtype=np.float64))
        return matrices

    # -- texts ------------------------------------------------------------------------------------------------

    def _describe_texts(self, corpus: _Texts, real: _Texts | None) -> Corpus:
        pool, features = self.files.pool, self._distribution.features
        kinds = {"corpus": corpus.texts}
        if pool is not None:
            kinds["pool"] = [pool.texts[row] for row in chosen_rows(len(pool), self.config.rows, self._public_bits)]
        if real is not None:
            kinds["real"] = real.texts
        rows = chosen_rows(len(corpus), self.config.rows, self._public_bits)
        compared = kinds | {"corpus": [corpus.texts[row] for row in rows]}
        vectors = {name: np.asarray(features.vectors(texts), dtype=np.float64) for name, texts in compared.items()}
        return Corpus(
            texts=len(corpus),
            pool=self.files.counted("pool_texts") or None,
            labels=self._labels(corpus, real),
            more_labels=max(0, len(self._distribution.labels.names) - _LABELS_SHOWN),
            spread=[*self._variety(kinds, vectors), *self._distances_to_real(compared, vectors)],
        )

    def _variety(self, kinds: dict[str, list[str]], vectors: dict[str, Floats]) -> Iterator[Spread]:
        def row(name: str, values: dict[str, str], detail: str = "") -> Spread:
            return Spread(name=name, detail=detail, **values)  # type: ignore[arg-type]

        yield row("distinct texts", {name: f"{len(set(texts)):,} of {len(texts):,}" for name, texts in kinds.items()})
        if self.files.pool is not None:
            used = len(set(kinds["corpus"]) & set(self.files.pool.texts)) / len(self.files.pool)
            yield row("share of the pool that is used", {"corpus": f"{100 * used:.1f}%"})
        words = {name: np.mean([len(text.split()) for text in texts]) for name, texts in kinds.items()}
        yield row("words per text, on average", {name: f"{value:.1f}" for name, value in words.items()})
        # equally many of each kind, because more texts lie nearer; the number of real texts must not matter
        size = min(_DISTANCE_TEXTS, *(len(values) for name, values in vectors.items() if name != "real"))
        detail = f"in the public features; among {size:,} texts of each kind, or as many as there are"
        samples = {name: values[:size] for name, values in vectors.items()}
        nearest = {
            name: f"{np.sqrt(squared_radii(sample, 1)).mean():.3f}" if len(sample) > 1 else "0.000"
            for name, sample in samples.items()
        }
        yield row("mean distance to the nearest other text", nearest, detail)

    def _distances_to_real(self, texts: dict[str, list[str]], vectors: dict[str, Floats]) -> Iterator[Spread]:
        """Compare the distribution of each kind of texts with real ones, over several draws."""
        size = min(_MAX_COMPARED, len(vectors.get("real", ())) // 2, *map(len, vectors.values()))
        if size < _MIN_COMPARED:
            return
        results: dict[str, list[dict[str, float]]] = {name: [] for name in vectors}
        for draw in range(_COMPARISONS):
            order = {
                name: np.argsort(self._bits.integers(len(values)), kind="stable") for name, values in vectors.items()
            }
            real, order["real"] = vectors["real"][order["real"][:size]], order["real"][size:]
            for name, values in vectors.items():
                rows = order[name][:size]
                results[name].append(compare([texts[name][row] for row in rows], values[rows], real, seed=draw))
        space = self._distribution.features.name
        detail = f"{_COMPARISONS} draws of {size:,} texts: mean ± half its 95% interval; {space}"
        for label, meaning in MEASURES.items():
            if label in results["corpus"][0]:
                runs = {name: mean_over_runs([draw[label] for draw in draws]) for name, draws in results.items()}
                cells = {name: f"{run.value:.3f} ± {(run.high - run.low) / 2:.3f}" for name, run in runs.items()}
                yield Spread(name=f"{label}: {meaning}", detail=detail, owner_only=True, **cells)

    def _labels(self, corpus: _Texts, real: _Texts | None) -> list[LabelOfCorpus]:
        names, shares = self._distribution.labels.names, self._distribution.shares()
        if not self._distribution.labels.columns:
            names, shares = ("all texts",), {"all texts": 1.0}
        counts = Counter(corpus.codes.tolist())
        real_counts = Counter() if real is None else Counter(real.codes.tolist())
        result = []
        for code in sorted(range(len(names)), key=lambda code: (-counts[code], code))[:_LABELS_SHOWN]:
            rows = np.flatnonzero(corpus.codes == code)
            draws = rows[np.argsort(self._public_bits.integers(len(rows)), kind="stable")[:_SAMPLES_SHOWN]]
            result.append(
                LabelOfCorpus(
                    name=names[code],
                    count=counts[code],
                    share=counts[code] / len(corpus),
                    released=shares[names[code]],
                    real=None if real is None else real_counts[code] / len(real),
                    samples=[shorten(corpus.texts[row], _MAX_CHARACTERS, placeholder="…") for row in draws.tolist()],
                )
            )
        return result


class _EncodedTexts:
    """A feature space for texts that were encoded together."""

    def __init__(self, distribution: TextDistribution, texts: list[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self.dimension = distribution.features.dimension
        self._rows = {text: row for row, text in enumerate(distinct)}
        self._units = distribution.features.units(distinct)

    def units(self, texts: list[str]) -> npt.NDArray[np.int32]:
        unit: npt.NDArray[np.int32] = self._units[[self._rows[text] for text in texts]]
        return unit
