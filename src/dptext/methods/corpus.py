"""What a page says of a synthetic corpus: its texts, what a model learns from it, and whether it shows who is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import AttackScore
from dptext.attacks.membership import gaussian_ceiling, sum_membership
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, ParameterError
from dptext.evaluation.corpus_quality import MEASURES, compare, nearest_labels
from dptext.evaluation.measures import measure
from dptext.evaluation.utility import trained_answers
from dptext.features.pool import Pool
from dptext.intervals import Estimate, mean_over_runs, paired_difference
from dptext.io.batches import display_name
from dptext.io.documents import OnError, read_documents
from dptext.methods.checks import Check
from dptext.methods.corpus_checks import check_corpus, check_noise, description_folder
from dptext.methods.figures import plane_figure
from dptext.methods.files import chosen_rows, count_rows
from dptext.methods.findings import Examination, picture_of_attacks
from dptext.methods.results import Corpus, LabelOfCorpus, Measurement, Spread
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.guarantee import Unit
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.distribution import TextDistribution, read_description
from dptext.synthesis.moments import MomentSum
from dptext.users.grouping import UserTexts, texts_of

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_MOST_TO_TRAIN = 20_000
_LABELS_SHOWN, _SAMPLES_SHOWN, _LONGEST = 20, 3, 200
_NEAREST_AMONG = 2000
_DRAWS, _MOST_COMPARED, _FEWEST_COMPARED = 5, 1000, 10
_DRAWN = 400  # points of each kind in the plane
_TARGETS = 1000  # members, and others
_MOST_NUMBERS = 1 << 31
_HELD_BACK = "--held-out names a file of people who had no part in the release"


@dataclass(frozen=True, eq=False)
class _Texts:
    """Texts with their classes, and whose they are (None: nobody is named)."""

    texts: list[str]
    codes: Codes
    people: list[str] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, places: npt.NDArray[np.intp]) -> _Texts:
        people = None if self.people is None else [self.people[place] for place in places]
        return _Texts([self.texts[place] for place in places], self.codes[places], people)


class CorpusExamination(Examination):
    """A corpus that was made from a description of people's texts."""

    def look(self) -> tuple[list[Check], Verdict]:
        self._refuse_columns()
        self.say(f"Auditing {self.statement.mechanism} ...")
        described = read_description(self._folder)
        audit = check_corpus(self.asked.files(self.data, self.statement), self._pool, described)
        checks, verdict = audit.checks, audit.verdict
        self.notes += [f"{doubt[0].upper()}{doubt[1:]}." for doubt in self._distribution.doubts()]
        if self._pool is None:
            self.notes.append("The public pool was not named (--public): the corpus was not compared with it.")
        self.attacks.append(self._best_attacker())
        if self.asked.original is not None:
            checks += self._check_noise(self.asked.original)
        if self._real is not None:
            self._measure_use(self._real)
            self._attack()
        self.pictures["attacks"] = picture_of_attacks(
            [*self.owner_attacks, *self.attacks], measure="share of pairs told apart, one of the two in the release"
        )
        self.say("Comparing texts ...")
        self.corpus = self._look_at_texts()
        return checks, verdict

    def membership(self) -> list[AttackScore]:
        """Who is in the description? The attacker who knows everybody else, and one who guesses the others."""
        self._attack()
        return [self._best_attacker(), *self.owner_attacks]

    def _refuse_columns(self) -> None:
        names = [name for name in ("label", "attribute", "group") if getattr(self.asked, name) is not None]
        own = self._distribution.labels.columns
        if self.asked.label in own:  # the models learn its own labels in any case
            names.remove("label")
        if names:
            labels = f"its labels are known ({', '.join(own)})" if own else "it has no labels"
            raise ParameterError(
                f"a synthetic corpus has no row of anybody, and {labels}: leave {' and '.join(names)} out"
            )
        if self.asked.label is not None and self.asked.original is None:
            self.notes.append("No model was trained: that takes real texts to test it on (--original).")

    # -- what is looked at ----------------------------------------------------------------------------------

    @cached_property
    def _folder(self) -> Path:
        result = description_folder(self.data, self.asked.distribution)
        if result is None:
            raise DataError(
                f"{display_name(self.data)}: expected the description that it was made from beside it "
                f"({self.data.name}.distribution), there is none: name it (--distribution)"
            )
        return result

    @cached_property
    def _distribution(self) -> TextDistribution:
        return TextDistribution.load(self._folder)

    @cached_property
    def _pool(self) -> Pool | None:
        return self.asked.files(self.data, self.statement).pool

    @cached_property
    def _bits(self) -> RandomBits:
        """For what original texts have a part in."""
        return RandomBits(self.asked.seed)

    @cached_property
    def _public_bits(self) -> RandomBits:
        """For what may be shared: its draws must not follow from how many original texts there are."""
        return RandomBits(self.asked.seed)

    @cached_property
    def _corpus_texts(self) -> _Texts:
        result = self._read(self.data, None, most=None)
        if len(result) < 2 * self.asked.folds:
            raise DataError(
                f"{display_name(self.data)}: expected at least {2 * self.asked.folds} texts with a label of the public "
                f"set to look at, got {len(result)}"
            )
        return result

    @cached_property
    def _real(self) -> _Texts | None:
        """Original texts, with a label of the set."""
        return self._real_texts(self.asked.original)

    @cached_property
    def _others(self) -> _Texts | None:
        """Texts of people who had no part."""
        return self._real_texts(self.asked.held_out)

    def _real_texts(self, path: Path | None) -> _Texts | None:
        if path is None:
            return None
        result = self._read(path, self.asked.user, most=self.asked.rows)
        if len(result) < 2 * self.asked.folds or (result.people is not None and len(set(result.people)) < 2):
            raise DataError(
                f"{display_name(path)}: expected at least {2 * self.asked.folds} texts with a label of the public set, "
                f"of two people or more, got {len(result)}"
            )
        return result

    def _read(self, path: Path, user: str | None, *, most: int | None) -> _Texts:
        """The texts of a file that have a class; of many rows, as many as asked for."""
        labels = self._distribution.labels
        chosen = None
        if most is not None and (count := count_rows(path, text=self.asked.text)) > most:
            chosen = set(chosen_rows(count, most, self._bits).tolist())
            self.notes.append(f"Of {count:,} rows of {display_name(path)}, {most:,} were looked at, chosen at random.")
        texts, codes, people = [], [], []
        with closing(read_documents(path, text=self.asked.text, user=user, keep=labels.columns)) as reader:
            for row, document in enumerate(reader):
                values = document.attributes or {}
                code = labels.code([values.get(column) for column in labels.columns])
                if (chosen is None or row in chosen) and code >= 0:
                    texts.append(document.text or "")
                    codes.append(code)
                    people.append(str(document.user))
        return _Texts(texts, np.array(codes, dtype=np.int64), people if user is not None else None)

    # -- use ------------------------------------------------------------------------------------------------

    def _measure_use(self, real: _Texts) -> None:
        names, result = self._distribution.labels.names, self._distribution
        if len(names) < 2:
            self.notes.append("No model was trained: the corpus has no labels, or one only.")
            return
        output = self._corpus_texts.at(chosen_rows(len(self._corpus_texts), _MOST_TO_TRAIN, self._bits))
        learn, test = (real, self._others) if self._others is not None else self._halves(real)
        if len(np.unique(test.codes)) < 2:
            self.notes.append("No model was trained: the real texts that it would be tested on have one label only.")
            return
        self.say(f"Training models on {len(output):,} texts ...")
        where = "held-out texts" if self._others is not None else "the other half of the original texts"
        tested = f"tested on {len(test):,} {where}"
        of_corpus = self._add("trained on the corpus", output, test, tested)
        self._add("trained on original texts", learn, test, tested)
        same = chosen_rows(max(len(learn), len(output)), min(len(learn), len(output)), RandomBits(self.asked.seed))
        if len(learn) > len(output):
            self._add("trained on original texts, as many as the corpus has", learn.at(same), test, tested)
        elif len(learn) < len(output):
            self._add("trained on the corpus, cut to as many texts", output.at(same), test, tested)
        rival: dict[str, Any] = {"is_rival": True}
        compared = rival | {"beside": of_corpus}
        by_names = partial(nearest_labels, result.features, result.labels)
        weights = result.weigh(test.texts)
        self._score("the release alone: its linear model, no text", weights.scores.argmax(axis=1), test, **compared)
        self._score("the nearest label name: epsilon 0, no private data", by_names(test.texts), test, **rival)
        if self._pool is not None:
            places = chosen_rows(len(self._pool), len(output), self._bits)
            draws = [self._pool.texts[place] for place in places.tolist()]
            labelled = _Texts(draws, result.weigh(draws).scores.argmax(axis=1))
            self._add("random texts of the pool, labelled by the release", labelled, test, **compared)
            named = replace(labelled, codes=by_names(draws))
            self._add("random texts of the pool, labelled by label names: epsilon 0", named, test, **rival)
        shuffled = output.codes[np.argsort(self._bits.integers(len(output)), kind="stable")]
        self._add("the corpus with its labels shuffled", replace(output, codes=shuffled), test, **rival)

    def _add(self, what: str, learn: _Texts, test: _Texts, tested: str = "", **more: Any) -> npt.NDArray[Any]:
        answers = trained_answers(learn.texts, learn.codes, test.texts, seed=self.asked.seed)
        detail = f"{len(learn):,} texts; {tested}" if tested else ""
        self._score(what, answers, test, detail, texts=len(learn), **more)
        return answers

    def _score(
        self,
        what: str,
        answers: npt.NDArray[Any],
        test: _Texts,
        detail: str = "",
        *,
        beside: npt.NDArray[Any] | None = None,
        **more: Any,
    ) -> None:
        """Add the accuracy of answers; ``beside``: the answers of the model that was trained on the corpus."""
        people = None if test.people is None else np.asarray(test.people)
        accuracy, f1 = (
            measure(name, test.codes, answers, people=people, seed=self.asked.seed) for name in ("accuracy", "macro-F1")
        )
        if beside is not None:
            owners = np.arange(len(test)) if people is None else people
            more["lead"] = paired_difference(beside == test.codes, answers == test.codes, owners)
        by_class = f"macro-F1 {f1.score.value:.3f} ({f1.score.low:.3f} to {f1.score.high:.3f})"
        detail = f"{by_class}; {detail}" if detail else by_class
        self.utility.append(Measurement.of(accuracy, what=what, detail=detail, owner_only=True, **more))

    def _halves(self, real: _Texts) -> tuple[_Texts, _Texts]:
        """To learn from and to test on: nobody is in both."""
        self.notes.append(
            "Models were tested on original texts, which the description was made from as well; the promise bounds "
            f"what that can change. {_HELD_BACK[0].upper()}{_HELD_BACK[1:]}."
        )
        person = np.arange(len(real)) if real.people is None else np.unique(real.people, return_inverse=True)[1]
        order = np.argsort(self._bits.integers(int(person.max()) + 1), kind="stable")
        first = np.isin(person, order[: len(order) // 2])
        return real.at(np.flatnonzero(first)), real.at(np.flatnonzero(~first))

    # -- who is in it -----------------------------------------------------------------------------------------

    def _best_attacker(self) -> AttackScore:
        auc = gaussian_ceiling(self._distribution.sigma).auc
        return AttackScore(
            attack="membership (knows everybody else)",
            measure="AUC",
            score=Estimate(auc, auc, auc, 1, "releases"),
            baseline=0.5,
            baseline_name="chance",
            detail=f"the best there can be, on average: computed from the stated noise, for any {self.statement.unit}",
        )

    def _attack(self) -> None:
        """People who were described and people who were not, told apart by the released matrix."""
        requested = self.asked
        why_not: str | None
        if requested.original is None or requested.held_out is None:
            why_not = _HELD_BACK
        elif self.statement.unit is Unit.USER and requested.user is None:
            why_not = "the promise is to a user, and no column says who wrote a text (--user)"
        else:
            why_not = self._attack_sums(requested.original, requested.held_out)
        if why_not is not None:
            self.notes.append(f"Who is in the release was not attacked: {why_not}.")

    def _attack_sums(self, original: Path, held_out: Path) -> str | None:
        """Attack the released sums; why that cannot be done, if so."""
        self.say("Telling people who were described from others ...")
        classes, numbers = self._distribution.matrix.shape
        maximum = min(_TARGETS, self.asked.rows, _MOST_NUMBERS // (2 * classes * numbers))
        inside = self._matrices(original, maximum)
        outside = self._matrices(held_out, 2 * maximum)
        strangers, outside = outside[: len(outside) // 2], outside[len(outside) // 2 :]
        if min(len(inside), len(outside), len(strangers)) < 2:
            return "that takes two people at least, and four others"
        released = self._distribution.matrix
        targets, members = [*inside, *outside], np.arange(len(inside) + len(outside)) < len(inside)
        guess = np.sum(strangers, axis=0)
        guess *= float(np.vdot(guess, released)) / max(float(np.vdot(guess, guess)), 1e-300)
        result = sum_membership(released, targets, members, guess=guess, attack="membership (guesses the others)")
        ceiling = gaussian_ceiling(self._distribution.sigma)
        limits = (ceiling.auc, ceiling.accuracy, ceiling.at_1_percent, ceiling.at_01_percent)
        for score, limit in zip(result.scores, limits, strict=True):
            detail = f"at most {limit:.3f} on average, by the noise; {score.detail}"
            self.owner_attacks.append(replace(score, detail=detail))
            self.limits[score.measure] = limit
        return None

    def _check_noise(self, original: Path) -> list[Check]:
        distribution = self._distribution
        if self.statement.unit is Unit.USER and self.asked.user is None:
            self.notes.append("The noise was not compared with the original texts: name the column of users (--user).")
            return []
        self.say("Comparing the noise with the original texts ...")
        total = MomentSum(distribution.features, len(distribution.labels))
        # rows that the release skipped, if any, are skipped here as well
        with self._people(original, again=False, on_error="skip") as people:
            total.add(people)
        return [check_noise(distribution.matrix, np.asarray(total.cells * CELL, dtype=np.float64), distribution.sigma)]

    @contextmanager
    def _people(self, path: Path, *, again: bool, on_error: OnError = "fail") -> Iterator[Iterable[UserTexts]]:
        """Group the texts of a file by user (or document), as the release did."""
        labels, limit = self._distribution.labels, self.statement.parameters.get("most_documents")
        is_user = self.statement.unit is Unit.USER
        options: dict[str, Any] = {"text": self.asked.text, "user": self.asked.user if is_user else None}
        with (
            closing(read_documents(path, keep=labels.columns, on_error=on_error, **options)) as reader,
            texts_of(
                reader,
                columns=labels.columns,
                code=labels.code,
                unit="user" if is_user else "document",
                most_documents=limit if isinstance(limit, int) else None,
                reread=again,
            ) as people,
        ):
            yield people

    def _matrices(self, path: Path, most: int) -> list[Floats]:
        """Return the contributions of a random sample of users to the sum."""
        result, labels = self._distribution, self._distribution.labels
        with self._people(path, again=True) as people:
            count = sum(1 for _ in people)
            chosen = set(chosen_rows(count, most, self._bits).tolist())
            draws = [list(entry.chunks()) for place, entry in enumerate(people) if place in chosen]
        space: Any = _Encoded(result, [text for person in draws for texts, _ in person for text in texts])
        matrices: list[Floats] = []
        for entry in draws:
            alone = MomentSum(space, len(labels))
            alone.add([UserTexts(entry)])
            if alone.cells.any():  # who brings no document of any class is not in the sum, whoever they are
                matrices.append(np.asarray(alone.cells * CELL, dtype=np.float64))
        return matrices

    # -- the texts --------------------------------------------------------------------------------------------

    def _look_at_texts(self) -> Corpus:
        output, pool, real, features = self._corpus_texts, self._pool, self._real, self._distribution.features
        kinds = {"corpus": output.texts}
        if pool is not None:
            places = chosen_rows(len(pool), self.asked.rows, self._public_bits)
            kinds["pool"] = [pool.texts[place] for place in places.tolist()]
        if real is not None:
            kinds["real"] = real.texts
        places = chosen_rows(len(output), self.asked.rows, self._public_bits)
        few = kinds | {"corpus": [output.texts[place] for place in places.tolist()]}
        vectors = {name: np.asarray(features.vectors(texts), dtype=np.float64) for name, texts in few.items()}
        self.pictures["spread"] = self._plane(vectors)
        labels, more = self._labels(output, real)
        announced = self.statement.parameters.get("pool_texts")
        return Corpus(
            texts=len(output),
            pool=announced if isinstance(announced, int) else None,
            labels=labels,
            more_labels=more,
            spread=[*self._various(kinds, vectors), *self._near(few, vectors)],
            owner_picture=real is not None,
        )

    def _various(self, kinds: dict[str, list[str]], vectors: dict[str, Floats]) -> Iterator[Spread]:
        distinct = {name: len(set(texts)) for name, texts in kinds.items()}
        counts: dict[str, Any] = {name: f"{distinct[name]:,} of {len(texts):,}" for name, texts in kinds.items()}
        yield Spread(what="distinct texts", **counts)
        if self._pool is not None:
            used = len(set(kinds["corpus"]) & set(self._pool.texts)) / len(self._pool)
            yield Spread(what="share of the pool that is used", corpus=f"{100 * used:.1f}%")
        words = {name: np.mean([len(text.split()) for text in texts]) for name, texts in kinds.items()}
        averages: dict[str, Any] = {name: f"{value:.1f}" for name, value in words.items()}
        yield Spread(what="words in a text, on average", **averages)
        # as many of each, since more lie nearer; the number of real texts has no part in it
        among = min(_NEAREST_AMONG, *(len(entry) for name, entry in vectors.items() if name != "real"))
        nearest: dict[str, Any] = {name: f"{_nearest(entry[:among]):.3f}" for name, entry in vectors.items()}
        detail = f"in the public features; among {among:,} texts of each kind, or as many as there are"
        yield Spread(what="mean distance to the nearest other text", detail=detail, **nearest)

    def _near(self, texts: dict[str, list[str]], vectors: dict[str, Floats]) -> Iterator[Spread]:
        """How close the distribution of texts is to that of real ones, over several draws."""
        size = min(_MOST_COMPARED, len(vectors.get("real", ())) // 2, *map(len, vectors.values()))
        if size < _FEWEST_COMPARED:
            return
        result: dict[str, list[dict[str, float]]] = {name: [] for name in vectors}
        for draw in range(_DRAWS):
            order = {
                name: np.argsort(self._bits.integers(len(entry)), kind="stable") for name, entry in vectors.items()
            }
            real, order["real"] = vectors["real"][order["real"][:size]], order["real"][size:]
            for name, entry in vectors.items():
                rows = order[name][:size]
                result[name].append(compare([texts[name][row] for row in rows.tolist()], entry[rows], real, seed=draw))
        detail = f"{_DRAWS} draws of {size:,} texts: mean ± half its 95% interval; {self._distribution.features.name}"
        for label, meaning in MEASURES.items():
            if label in result["corpus"][0]:
                runs = {name: mean_over_runs([entry[label] for entry in every]) for name, every in result.items()}
                visible = {
                    name: f"{entry.value:.3f} ± {(entry.high - entry.low) / 2:.3f}" for name, entry in runs.items()
                }
                yield Spread(what=f"{label}: {meaning}", detail=detail, owner_only=True, **visible)

    def _labels(self, made: _Texts, real: _Texts | None) -> tuple[list[LabelOfCorpus], int]:
        names, shares = self._distribution.labels.names, self._distribution.shares()
        if not self._distribution.labels.columns:
            names, shares = ("all texts",), {"all texts": 1.0}
        counts = Counter(made.codes.tolist())
        theirs = Counter() if real is None else Counter(real.codes.tolist())
        order = sorted(range(len(names)), key=lambda code: (-counts[code], code))
        result = []
        for code in order[:_LABELS_SHOWN]:
            places = np.flatnonzero(made.codes == code)
            draws = places[np.argsort(self._public_bits.integers(len(places)), kind="stable")[:_SAMPLES_SHOWN]]
            result.append(
                LabelOfCorpus(
                    name=names[code],
                    count=counts[code],
                    share=counts[code] / len(made),
                    released=shares[names[code]],
                    real=None if real is None else theirs[code] / len(real),
                    samples=[_shortened(made.texts[place]) for place in draws.tolist()],
                )
            )
        return result, max(0, len(names) - _LABELS_SHOWN)

    def _plane(self, vectors: dict[str, Floats]) -> tuple[str, bytes]:
        """All texts along the two directions in which the public pool varies most."""
        features = self._distribution.features
        values, basis = np.linalg.eigh(features.covariance)
        axes = basis[:, np.argsort(-values)[:2]]
        if axes.shape[1] < 2:
            axes = np.column_stack([axes, np.zeros(len(axes))])
        names = {"pool": "public pool", "real": "original texts", "corpus": "corpus"}
        points = [(names[name], (vectors[name][:_DRAWN] - features.mean) @ axes) for name in names if name in vectors]
        return (
            f"At most {_DRAWN:,} texts of each kind, along the two directions in which the public features vary most",
            plane_figure(points, axes_are="first and second principal component of the pool's public features"),
        )


class _Encoded:
    """A feature space for texts that were encoded together."""

    def __init__(self, distribution: TextDistribution, texts: Sequence[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self.dimension = distribution.features.dimension
        self._rows = {text: row for row, text in enumerate(distinct)}
        self._units = distribution.features.units(distinct)

    def units(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        unit: npt.NDArray[np.int32] = self._units[[self._rows[text] for text in texts]]
        return unit


def _nearest(vectors: Floats) -> float:
    """The mean distance of a vector to the nearest other one."""
    if len(vectors) < 2:
        return 0.0
    squares = (vectors**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * vectors @ vectors.T
    np.fill_diagonal(distances, np.inf)
    return float(np.sqrt(np.maximum(distances.min(axis=1), 0.0)).mean())


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1].rstrip()}…"
