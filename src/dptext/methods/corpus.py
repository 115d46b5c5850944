"""Synthetic corpora: checks of a corpus and its description, models trained on it, and membership in its data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import AttackScore
from dptext.attacks.membership import gaussian_ceiling, sum_membership
from dptext.audits.verdict import Verdict, judge_gaussian
from dptext.errors import DataError, ParameterError, StorageError, extra
from dptext.evaluation.measures import measure
from dptext.evaluation.utility import trained_answers
from dptext.intervals import Estimate, paired_difference
from dptext.io.batches import display_name
from dptext.io.documents import read_documents
from dptext.methods.examination import Examination, Measurement
from dptext.methods.files import (
    FILES_AGREE,
    FOLDS,
    Audit,
    Check,
    ReleaseFiles,
    audit_file,
    check_guarantee,
    chosen_rows,
    columns_of,
    count_rows,
    covers_earlier,
    describes,
    earlier_guarantees,
    own_guarantee,
    real_parameter,
    whole_parameter,
)
from dptext.noise.gaussian_sums import CELL, count_off_grid
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, disagreements, release_statement
from dptext.release.release import is_present
from dptext.synthesis.distribution import FOLDER, Described, TextDistribution, is_described, read_description
from dptext.synthesis.moments import MomentSum
from dptext.synthesis.planning import nearest_labels
from dptext.synthesis.release import distribution_path
from dptext.synthesis.servers import two_server_statement
from dptext.synthesis.synthesizer import always_assumed, noise_parameters
from dptext.users.grouping import UserTexts, texts_of

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

NOISE_ERROR = 1e-6
"""Probability with which `check_noise` rejects an honest release."""
_VISIBLE = 0.85  # smallest noise, relative to the stated scale, that a conclusive comparison may miss
_MAX_TRAINING = 20_000
_MAX_TARGETS = 1000  # of members, and as many other people
_MAX_NUMBERS = 1 << 31
_NO_DISTRIBUTION = (
    "The released distribution (OUT.distribution) was not named with --distribution and is not next to the corpus. "
    "Without it these were not checked: that the corpus was made from it, its noise, labels, utility and membership."
)
_NO_HELD_OUT = "no file of people who are not in the data was named (--held-out)"


# -- checks --------------------------------------------------------------------------------------------------------


def description_folder(data: Path, named: Path | None = None) -> Path | None:
    """Return the folder of the released distribution; None if it is not next to the data and was not named."""
    folder = distribution_path(data) if named is None else named
    if folder.is_dir() and FOLDER.announces(folder):
        return folder
    if named is not None and not named.exists():
        raise StorageError(f"cannot read {str(named)!r}: there is no such file or folder")
    if named is not None:
        raise DataError(f"{named.name} is not the folder of a released distribution: name OUT.distribution")
    return None


def check_corpus(files: ReleaseFiles, described: Described | None) -> Audit:
    """Check a synthetic corpus against its statement, its pool and its description."""
    statement, pool = files.statement, files.pool
    digest = statement.parameters.get("pool_sha256")
    if pool is not None and digest not in (None, pool.sha256):
        raise ParameterError(
            f"this pool ({len(pool):,} texts) is not the pool of the statement (SHA-256 digest {digest}): pass that "
            "one as --public. Nothing was checked."
        )
    contents = partial(_check_texts, files, described)
    audit = audit_file(files, contents, _check_people(statement), judge_people(statement))
    if described is not None:
        differ = disagreements(statement, described.statement, of_a_release=True)  # the corpus may add to it
        if statement.release_id is None or statement.release_id != described.statement.release_id:
            differ.insert(0, "release_id")
        seen = f"{', '.join(differ)} differ" if differ else f"release {described.statement.release_id}"
        same = Check("the corpus was made from this description", not differ, seen)
        audit.checks[-1:-1] = [_check_grid(described), same]
    return audit


def _check_texts(files: ReleaseFiles, described: Described | None) -> Iterator[Check]:
    labels = None if described is None else described.labels
    columns = () if labels is None else labels.columns
    missing = sorted(set(columns) - set(columns_of(files.data))) if columns else []
    texts: list[str] = []
    outside = 0
    for document in read_documents(files.parts, text=files.text, keep=() if missing else columns):
        texts.append(" ".join((document.text or "").split()))
        if labels is not None and not missing:
            values = document.attributes or {}
            outside += labels.code([values.get(column) for column in columns]) < 0
    count, repeated = len(texts), len(texts) - len(set(texts))
    is_stated = count == files.statement.parameters.get("texts")
    yield Check("there are as many texts as the statement says", is_stated, f"{count:,} texts")
    of_pool: tuple[bool | None, str] = (None, "a generator wrote them")
    if "pool_sha256" in files.statement.parameters:
        yield Check("no text occurs twice", not repeated, f"{repeated:,} texts do")
        of_pool = (None, "the pool was not named (--public)")
        if "generator" in files.statement.parameters:
            of_pool = (None, "a generator wrote some of them")
        elif files.pool is not None:
            known = {" ".join(text.split()) for text in files.pool.texts}
            foreign = sum(text not in known for text in texts)
            of_pool = (not foreign, f"{foreign:,} texts are not")
    yield Check("every text is one of the public pool", *of_pool)
    of_labels: tuple[bool | None, str] = (not outside, f"{outside:,} texts have another")
    if labels is None:
        of_labels = (None, "the description was not named (--distribution)")
    elif missing:
        of_labels = (False, f"the column {missing[0]!r} is missing")
    if labels is None or columns:
        yield Check("every label is one of the public set", *of_labels)


def check_description(folder: Path) -> Audit:
    described = read_description(folder)
    statement, shape = described.statement, described.matrix.shape
    parameters, width = statement.parameters, 1 + whole_parameter(statement, "features_dimension")
    fits = shape == (parameters.get("classes"), width) == (len(described.labels), width)
    fits = fits and bool(np.isfinite(described.matrix).all())
    same = described.sigma == parameters.get("sigma")
    checks = [
        FILES_AGREE,
        Check("the matrix has the stated shape", fits, " x ".join(f"{length:,}" for length in shape)),
        Check("the noise has the stated scale", same, f"standard deviation {described.sigma:g}"),
        _check_grid(described),
        _check_people(statement),
    ]
    return Audit(statement, checks, judge_people(statement))


def _check_grid(described: Described) -> Check:
    """Check that the released numbers are on the public grid of the stated noise, like all sums with this noise."""
    count = described.matrix.size
    off = count_off_grid(described.matrix, described.sigma) if described.sigma > 0 else count
    return Check("the numbers lie on the grid of the stated noise", off == 0, f"{off:,} of {count:,} do not")


def check_noise(matrix: Floats, exact: Floats, sigma: float) -> Check:
    """Compare the noise of a description, (matrix - exact) / sigma, with N(0, 1)."""
    stats = extra("scipy.stats", "audit", "the comparison of noise")
    noise = (matrix - exact) / sigma
    residuals, rounding = np.sort(np.abs(noise), axis=None), 2.0**-13  # the grid moves a residual by at most this much
    count, error = residuals.size, NOISE_ERROR / 4

    def lowest(degrees: int) -> float:
        return math.sqrt(stats.chi2.ppf(error, degrees) / degrees)

    parts = [(noise[:, 0], len(noise))]
    if len(noise) > 1:
        parts.append((noise - noise.mean(axis=0), (len(noise) - 1) * noise.shape[1]))
    is_small = any(np.linalg.norm(part) / math.sqrt(n) + 2 * rounding < lowest(n) for part, n in parts)
    scale, low = float(np.linalg.norm(residuals)) / math.sqrt(count), lowest(count)
    high = math.sqrt(stats.chi2.isf(error, count) / count)
    excess = float((np.arange(1, count + 1) / count - stats.halfnorm.cdf(residuals)).max())
    seen = f"{count:,} numbers, {scale:.3f} times the stated scale; below {low:.3f} refutes"
    if is_small or scale + rounding < low or excess - rounding > math.sqrt(-math.log(error) / (2 * count)):
        agrees: bool | None = False
    elif scale - rounding > high:
        agrees = None
        seen += ". This may not be the original of the release: check --original, --user and --text"
    else:
        agrees = True if low >= _VISIBLE else None
        seen += "" if agrees else "; too few numbers for a conclusion"
    return Check("the noise has the stated distribution", agrees, seen, owner_only=True)


def _check_people(statement: PrivacyStatement) -> Check:
    """Check that the guarantee follows from epsilon, delta and the guarantees of earlier releases."""
    guarantee, earlier = own_guarantee(statement), earlier_guarantees(statement)
    with describes("a budget"):
        budget = PersonalBudgets(guarantee.epsilon, delta=guarantee.delta, floor=0.0)
    parameters = noise_parameters(budget, budget.guarantee(relation=Relation.SUBSTITUTION))
    mechanism = statement.mechanism if is_described(statement) else TextDistribution.mechanism
    repeated = repeated_statement(statement, mechanism, parameters, counted_in=bool(earlier))
    # earlier guarantees are known up to the digits in the statement
    summed = ("guarantee", "epsilon_under_substitution", "delta_under_substitution") if earlier else ()
    check = check_guarantee(statement, repeated, apart_from=summed)
    return Check(check.name, *covers_earlier(statement)) if earlier and check.passed else check


def repeated_statement(
    statement: PrivacyStatement, mechanism: str, parameters: Mapping[str, Parameter], *, counted_in: bool = False
) -> PrivacyStatement:
    """Return the statement of a sum with Gaussian noise, as this version writes it."""
    repeated = release_statement(
        guarantee=own_guarantee(statement),
        unit=statement.unit if statement.unit in (Unit.USER, Unit.DOCUMENT) else Unit.USER,
        relation=Relation.ADD_REMOVE,
        trust=Trust.CENTRAL,
        mechanism=mechanism,
        parameters=parameters,
        assumptions=always_assumed(statement.unit, counted_in=counted_in),
    )
    return two_server_statement(repeated) if statement.trust is Trust.TWO_SERVERS else repeated


def judge_people(statement: PrivacyStatement, guarantee: ApproxDP | None = None) -> Verdict:
    """Judge whether the stated noise suffices, for this guarantee or that of the release."""
    sigma, guarantee = real_parameter(statement, statement.noise_parameter), guarantee or own_guarantee(statement)
    people = "people" if statement.unit is Unit.USER else "documents"
    coverage = f"all {people}, each of length 1 at most, if the stated software works as documented"
    with describes("noise"):
        return judge_gaussian(statement, sigma=sigma, sensitivity=1.0, release_guarantee=guarantee, coverage=coverage)


def membership_bound(statement: PrivacyStatement) -> AttackScore:
    """Return the largest AUC of any membership inference, by the stated noise."""
    auc = gaussian_ceiling(real_parameter(statement, "sigma")).auc
    return AttackScore(
        attack="membership (knows everybody else)",
        measure="AUC",
        score=Estimate(auc, auc, auc, 1, "releases"),
        baseline=0.5,
        baseline_name="chance",
        detail=f"upper bound on average, computed from the stated noise, for any {statement.unit}",
    )


# -- the report ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Numbers of texts in a synthetic corpus and in its public pool (None: a generator wrote the texts)."""

    texts: int
    pool: int | None


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
        files, described = self.files, None if self._folder is None else read_description(self._folder)
        labels = () if described is None else described.labels.columns
        if files.attribute is not None or (described and files.label is not None and files.label not in labels):
            known = f"labels ({', '.join(labels)})" if labels else "texts"
            raise ParameterError(f"a synthetic corpus has only {known}: omit other columns")
        if files.held_out is not None and files.original is None:
            raise ParameterError("held_out needs original: name both, to compare members with other people")
        self.add_audit(check_corpus(files, described))
        self.attacks.append(membership_bound(self.statement))
        self.corpus = Corpus(texts=files.counted("texts"), pool=files.counted("pool_texts") or None)
        if files.label is not None and files.original is None:
            self.notes.append("No model was trained: name real texts to test it on (--original).")
        if files.pool is None:
            self.notes.append("The corpus was not compared with the public pool: name it with --public.")
        if described is None or not is_present(files.data):
            if described is None:
                self.notes.append(_NO_DISTRIBUTION)
            return
        self.notes += [f"{doubt[0].upper()}{doubt[1:]}." for doubt in self._distribution.doubts()]
        corpus = self._read(files.data, None)
        self.corpus = replace(self.corpus, texts=len(corpus))
        if files.original is not None:
            self._check_noise(files.original)
            self._measure_utility(corpus, self._read(files.original, files.user, maximum=files.rows))
            self._attack_membership()

    def membership(self) -> list[AttackScore]:
        """Return the bound on membership inference, and the success of an adversary who guesses the other texts."""
        self._attack_membership()
        return [membership_bound(self.statement), *self.owner_attacks]

    @cached_property
    def _folder(self) -> Path | None:
        return description_folder(self.files.data, self.files.distribution)

    @cached_property
    def _distribution(self) -> TextDistribution:
        assert self._folder is not None
        return TextDistribution.load(self._folder)

    @cached_property
    def _bits(self) -> RandomBits:
        """Random bits for numbers that depend on original texts."""
        return RandomBits(self.files.seed)

    def _read(self, path: Path, user: str | None, *, maximum: int | None = None) -> _Texts:
        """Return the texts of a file that have a class; a random sample of this size if there are more rows."""
        labels, chosen = self._distribution.labels, None
        if maximum is not None and (count := count_rows(path, text=self.files.text)) > maximum:
            chosen = set(chosen_rows(count, maximum, self._bits).tolist())
            self.notes.append(f"{maximum:,} of {count:,} rows of {display_name(path)} were examined, chosen at random.")
        texts, codes, people = [], [], []
        reading: dict[str, Any] = {"user": user, "keep": labels.columns, "on_error": "skip"}  # as the release did
        with closing(read_documents(path, text=self.files.text, **reading)) as reader:
            for row, document in enumerate(reader):
                values = document.attributes or {}
                code = labels.code([values.get(column) for column in labels.columns])
                if (chosen is None or row in chosen) and code >= 0:
                    texts.append(document.text or "")
                    codes.append(code)
                    people.append(str(document.user))
        if len(texts) < 2 * FOLDS or (user is not None and len(set(people)) < 2):
            raise DataError(
                f"{display_name(path)} must have at least {2 * FOLDS} texts with a label of the public set, by two "
                f"people or more, got {len(texts)}"
            )
        return _Texts(texts, np.array(codes, dtype=np.int64), people if user is not None else None)

    # -- utility ----------------------------------------------------------------------------------------------

    def _measure_utility(self, corpus: _Texts, real: _Texts) -> None:
        files, distribution, held_out = self.files, self._distribution, None
        if files.held_out is not None:  # texts of people who are not in the data
            held_out = self._read(files.held_out, files.user, maximum=files.rows)
        if len(distribution.labels.names) < 2:
            self.notes.append("No model was trained: the corpus has no labels, or a single one.")
            return
        corpus = corpus.select(chosen_rows(len(corpus), _MAX_TRAINING, self._bits))
        train, test = (real, held_out) if held_out is not None else self._halves(real)
        if len(np.unique(test.codes)) < 2:
            self.notes.append("No model was trained: the real texts for the test have a single label.")
            return
        people = None if test.people is None else np.asarray(test.people)
        source = "held-out texts" if held_out is not None else "the other half of the original texts"

        def add(name: str, predicted: npt.NDArray[Any], *, texts: int | None = None, **fields: Any) -> None:
            accuracy, f1 = (measure(kind, test.codes, predicted, people=people) for kind in ("accuracy", "macro-F1"))
            detail = f"macro-F1 {f1.score.value:.3f} ({f1.score.low:.3f} to {f1.score.high:.3f})"
            if texts is not None:
                detail += f"; {texts:,} texts; tested on {len(test):,} {source}"
            self.utility.append(Measurement.of(accuracy, name=name, detail=detail, owner_only=True, **fields))

        def train_on(texts: _Texts) -> npt.NDArray[Any]:
            return trained_answers(texts.texts, texts.codes, test.texts)

        predicted = train_on(corpus)
        add("trained on the corpus", predicted, texts=len(corpus))
        add("trained on original texts", train_on(train), texts=len(train))
        by_release = distribution.weigh(test.texts).scores.argmax(axis=1)
        add("the release alone: its linear model, no text", by_release, is_rival=True)
        vectors = distribution.features.vectors(test.texts)
        by_name = nearest_labels(distribution.features, distribution.labels, vectors)
        add("the nearest label name: epsilon 0, no private data", by_name, is_rival=True)
        if files.pool is not None:
            rows = chosen_rows(len(files.pool), len(corpus), self._bits)
            draws = [files.pool.texts[row] for row in rows.tolist()]
            by_pool = train_on(_Texts(draws, distribution.weigh(draws).scores.argmax(axis=1)))
            owners = np.arange(len(test)) if people is None else people
            lead = paired_difference(predicted == test.codes, by_pool == test.codes, owners)
            name = "random texts of the pool, labelled by the release"
            add(name, by_pool, texts=len(draws), is_rival=True, lead=lead)

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

    def _attack_membership(self) -> None:
        files = self.files
        reason: str | None
        if files.original is None or files.held_out is None:
            reason = _NO_HELD_OUT
        elif self.statement.unit is Unit.USER and files.user is None:
            reason = "the guarantee protects users, and no column names them (--user)"
        else:
            reason = self._attack_sums(files.original, files.held_out)
        if reason is not None:
            self.notes.append(f"Membership was not attacked: {reason}.")

    def _attack_sums(self, original: Path, held_out: Path) -> str | None:
        """Attack the released sums; return the reason if there are too few people."""
        released = self._distribution.matrix
        maximum = min(_MAX_TARGETS, self.files.rows, _MAX_NUMBERS // (2 * released.size))
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
        if self.statement.unit is Unit.USER and self.files.user is None:
            self.notes.append("The noise was not compared with the original texts: name the column of users (--user).")
            return
        total = MomentSum(distribution.features, len(distribution.labels))
        with self._people(original) as people:
            total.add(people)
        exact = np.asarray(total.cells * CELL, dtype=np.float64)
        self.checks.append(check_noise(distribution.matrix, exact, distribution.sigma))

    @contextmanager
    def _people(self, path: Path) -> Iterator[Iterable[UserTexts]]:
        """Group the texts of a file by user (or document), as the release did."""
        labels, limit = self._distribution.labels, self.statement.parameters.get("most_documents")
        is_user = self.statement.unit is Unit.USER
        options: dict[str, Any] = {"text": self.files.text, "user": self.files.user if is_user else None}
        with (
            closing(read_documents(path, keep=labels.columns, on_error="skip", **options)) as reader,
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


class _EncodedTexts:
    """A feature space for texts that were encoded together."""

    def __init__(self, distribution: TextDistribution, texts: list[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self.dimension = distribution.features.dimension
        self._rows = {text: row for row, text in enumerate(distinct)}
        self._units = distribution.features.units(distinct)

    def units(self, texts: list[str]) -> npt.NDArray[np.int32]:
        return self._units[[self._rows[text] for text in texts]]
