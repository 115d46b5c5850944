"""Checks of a release against its statement: for all methods, and for a synthetic corpus."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.audits.verdict import Verdict, judge_gaussian
from dptext.errors import DataError, ParameterError, extra
from dptext.features.pool import Pool
from dptext.io.documents import DocumentReader, find_files, read_documents
from dptext.methods.files import columns_of
from dptext.noise.gaussian_sums import count_off_grid
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement, disagreements, release_statement
from dptext.release.mechanism import TextMechanism
from dptext.release.redaction import as_redacted, is_redacted
from dptext.release.release import data_agrees
from dptext.synthesis.distribution import (
    Described,
    TextDistribution,
    announces_description,
    is_described,
    read_description,
)
from dptext.synthesis.release import distribution_path
from dptext.synthesis.synthesizer import always_assumed, noise_parameters

Floats = npt.NDArray[np.float64]
NOISE_ERROR = 1e-6
"""Probability with which `check_noise` rejects an honest release."""
_VISIBLE = 0.85  # smallest noise, relative to the stated scale, that a conclusive comparison may miss
_SEEN = {True: "its SHA-256 agrees", False: "its SHA-256 DIFFERS", None: "there is no data to compare"}
_WORDING = {"condition", "assumptions", "exposed"}


@dataclass(frozen=True, kw_only=True)
class ReleaseFiles:
    """A release in a file or folder, its statement, and the public inputs that its examination needs."""

    data: Path
    statement: PrivacyStatement
    text: str = "text"
    vectors: str | None = None  # where the word vectors are, if they moved
    words: Sequence[str] = ()  # to audit pairs of; none: chosen at random
    bank: Path | None = None
    public: Sequence[Path] = ()
    public_text: str = "text"
    distribution: Path | None = None
    samples: int = 200_000  # of a sampled audit
    error: float = 1e-6
    seed: int | None = None

    @property
    def sampling(self) -> dict[str, Any]:
        return {"samples": self.samples, "error": self.error, "seed": self.seed}

    def documents(self) -> DocumentReader:
        """The texts of the release."""
        return read_documents(self.parts, text=self.text)

    def counted(self, name: str) -> int:
        """A count in the statement, which anybody may have changed; 0: it has none."""
        value = self.statement.parameters.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

    @cached_property
    def pool(self) -> Pool | None:
        """The public pool, if it was named."""
        return Pool(list(self.public), text=self.public_text) if self.public else None

    @property
    def parts(self) -> list[Path]:
        """The data files: one, or the parts of a folder that Spark wrote."""
        return [path for path, _ in find_files([self.data])]


@dataclass(frozen=True)
class Check:
    """The result of one check of a file (None: it could not be made)."""

    name: str
    passed: bool | None
    detail: str
    owner_only: bool = False

    @property
    def is_shared(self) -> bool:
        return not self.owner_only or self.passed is False


FILES_AGREE = Check("all files are those that config.json announces", True, "their SHA-256 agree")


@dataclass(frozen=True)
class Audit:
    """The checks of a release against its statement, and the verdict on its guarantee."""

    statement: PrivacyStatement
    checks: list[Check]
    verdict: Verdict

    @property
    def refuted(self) -> bool:
        return self.verdict.refuted or any(check.passed is False for check in self.checks)


@contextmanager
def describes(thing: str) -> Iterator[None]:
    try:
        yield
    except ParameterError as problem:
        raise DataError(f"the statement describes {thing} that cannot exist: {problem}") from None


def real_parameter(statement: PrivacyStatement, name: str) -> float:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"the statement lacks the {name} of its release: dptext did not write it")
    return float(value)


def whole_parameter(statement: PrivacyStatement, name: str) -> int:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"the statement lacks the {name} of its vectors: dptext did not write it")
    return value


def audit_file(files: ReleaseFiles, contents: Callable[[], Iterable[Check]], follows: Check, verdict: Verdict) -> Audit:
    """Audit a file: its digest, its contents if there are any, the guarantee, and the verdict on the mechanism."""
    agrees = data_agrees(files.statement, files.data)
    digest = Check("the data is the data of the statement", agrees, _SEEN[agrees])
    return Audit(files.statement, [digest, *([] if agrees is None else contents()), follows], verdict)


def check_guarantee(statement: PrivacyStatement, repeated: PrivacyStatement, *, apart_from: Collection[str]) -> Check:
    """Check that a statement follows from its parameters."""
    differ = disagreements(statement, repeated, of_a_release=True, apart_from=tuple(apart_from))
    same_version = statement.software == repeated.software
    counted = [name for name in differ if same_version or name not in _WORDING]
    seen = f"{repeated.guarantee}" + (f"; {', '.join(differ)} differ" if differ else "")
    if len(counted) < len(differ):
        seen += ", perhaps in their wording only: another version wrote the statement"
    return Check("the guarantee follows from the parameters", not counted, seen)


def check_document_guarantee(
    statement: PrivacyStatement, mechanism: TextMechanism, longest: int, *, apart_from: Collection[str]
) -> Check:
    """Check that a statement follows from a mechanism, with its redaction, for documents of this length."""
    repeated = mechanism.document_statement(longest)
    if is_redacted(statement):
        repeated = as_redacted(repeated, statement.parameters, shows_placeholders=mechanism.keeps_marks)
    return check_guarantee(statement, repeated, apart_from=apart_from)


# -- a guarantee that covers earlier releases -------------------------------------------------------------------------

DIGITS = (1 - 1e-3, 1 - 1e-2)
"""Relative precision of a guarantee in words: 4 digits of epsilon and 3 of delta, rounded up."""
_GUARANTEE = re.compile(
    r"\((?P<epsilon>[\d.e+-]+), (?P<delta>[\d.e+-]+)\)|(?P<pure>[\d.e+-]+)-differential privacy \(pure\)"
)


def earlier_guarantees(statement: PrivacyStatement) -> list[str]:
    """Return the guarantees of earlier releases that this one contains, as the statement prints them."""
    return [str(value) for name, value in statement.parameters.items() if name.startswith("promise_of_")]


def covers_earlier(statement: PrivacyStatement, epsilon: float = 0.0) -> tuple[bool, str]:
    """Return whether the guarantee is at least the sum of all parts (and a pure epsilon), and the parts in words."""
    release, earlier, guarantee = own_guarantee(statement), earlier_guarantees(statement), statement.guarantee
    parts = [(release.epsilon, release.delta), (epsilon, 0.0), *map(_at_least, earlier)]
    least_epsilon, least_delta = (math.fsum(values) * (1 - 1e-12) for values in zip(*parts, strict=True))
    covers = isinstance(guarantee, ApproxDP) and guarantee.epsilon >= least_epsilon and guarantee.delta >= least_delta
    return covers, f"{guarantee}" + (f", of which {', '.join(earlier)} for earlier releases" if earlier else "")


def _at_least(guarantee: str) -> tuple[float, float]:
    """Return the smallest epsilon and delta that a printed guarantee can stand for."""
    match = _GUARANTEE.match(guarantee)
    if match is None:
        return 0.0, 0.0
    return float(match["epsilon"] or match["pure"]) * DIGITS[0], float(match["delta"] or 0.0) * DIGITS[1]


def own_guarantee(statement: PrivacyStatement) -> ApproxDP:
    """Return the guarantee of this release alone, without earlier releases."""
    epsilon, delta = (real_parameter(statement, name) for name in ("epsilon", "delta"))
    with describes("a budget"):
        return ApproxDP(epsilon, delta)


# -- a synthetic corpus and the description behind it ------------------------------------------------------------------


def description_folder(data: Path, named: Path | None = None) -> Path | None:
    folder = distribution_path(data) if named is None else named
    if folder.is_dir() and announces_description(folder):
        return folder
    if named is not None:
        raise DataError(f"{named.name} is not the folder of a released distribution")
    return None


def check_corpus(files: ReleaseFiles, described: Described | None) -> Audit:
    """Check a synthetic corpus against its statement, its pool and its description."""
    statement, pool = files.statement, files.pool
    digest, count = (statement.parameters.get(name) for name in ("pool_sha256", "pool_texts"))
    if pool is not None and digest not in (None, pool.sha256):
        texts = f"{count:,} texts, " if isinstance(count, int) else ""
        raise ParameterError(
            f"this pool ({len(pool):,} texts) is not the pool of the statement ({texts}SHA-256 digest {digest}): "
            "pass that one as --public. Nothing was checked."
        )

    contents = partial(_check_texts, files, described)
    audit = audit_file(files, contents, _check_people(statement), _judge_people(statement))
    if described is not None:
        differ = disagreements(statement, described.statement, of_a_release=True)  # it may contain more, not less
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
        if files.pool is not None:
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
    return Audit(statement, checks, _judge_people(statement))


def _check_grid(described: Described) -> Check:
    """Check that the released numbers lie on the public grid of the stated noise, as all sums with this noise do."""
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
    repeated = release_statement(
        guarantee=guarantee,
        unit=statement.unit if statement.unit in (Unit.USER, Unit.DOCUMENT) else Unit.USER,
        relation=Relation.ADD_REMOVE,
        trust=Trust.CENTRAL,
        mechanism=statement.mechanism if is_described(statement) else TextDistribution.mechanism,
        parameters=noise_parameters(budget, budget.guarantee(relation=Relation.SUBSTITUTION)),
        assumptions=always_assumed(statement.unit, counted_in=bool(earlier)),
    )
    # earlier guarantees are known up to the digits in the statement
    summed = ("guarantee", "epsilon_under_substitution", "delta_under_substitution") if earlier else ()
    check = check_guarantee(statement, repeated, apart_from=summed)
    return Check(check.name, *covers_earlier(statement)) if earlier and check.passed else check


def _judge_people(statement: PrivacyStatement) -> Verdict:
    sigma, guarantee = real_parameter(statement, "sigma"), own_guarantee(statement)
    people = "people" if statement.unit is Unit.USER else "documents"
    coverage = f"all {people}, each of length 1 at most, if the stated software works as documented"
    with describes("noise"):
        return judge_gaussian(statement, sigma=sigma, sensitivity=1.0, release_guarantee=guarantee, coverage=coverage)
