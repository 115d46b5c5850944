"""Checks of a synthetic corpus and of the description behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dptext.audits.verdict import Verdict, judge_gaussian
from dptext.errors import DataError, ParameterError, extra
from dptext.features.pool import Pool
from dptext.io.documents import read_documents
from dptext.methods.base import (
    Audit,
    ReleaseFiles,
)
from dptext.methods.checks import (
    FILES_AGREE,
    Check,
    check_digest,
    check_guarantee,
    covers_earlier,
    describes,
    earlier_guarantees,
    own_guarantee,
    real_parameter,
    whole_parameter,
)
from dptext.methods.files import columns_of
from dptext.noise.gaussian_sums import count_off_grid
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement, disagreements, release_statement
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


def description_folder(data: Path, named: Path | None = None) -> Path | None:
    folder = distribution_path(data) if named is None else named
    if folder.is_dir() and announces_description(folder):
        return folder
    if named is not None:
        raise DataError(f"{named.name} is not the folder of a description of texts")
    return None


def check_corpus(files: ReleaseFiles, pool: Pool | None, described: Described | None) -> Audit:
    """Check a synthetic corpus against its statement, its pool and its description."""
    statement = files.statement
    _require_pool(statement, pool)
    checks = check_digest(statement, files.data)
    if checks[0].passed is not None:
        checks += _check_texts(files, pool, described)
    if described is not None:
        checks.append(_check_grid(described))
        differ = disagreements(statement, described.statement, of_a_release=True)  # it may contain more, not less
        if statement.release_id is None or statement.release_id != described.statement.release_id:
            differ.insert(0, "release_id")
        seen = f"{', '.join(differ)} differ" if differ else f"release {described.statement.release_id}"
        checks.append(Check("the corpus was made from this description", not differ, seen))
    return Audit(statement, [*checks, _check_people(statement)], _judge_people(statement))


def check_description(folder: Path) -> Audit:
    described = read_description(folder)
    statement, shape = described.statement, described.matrix.shape
    parameters = statement.parameters
    checks = [FILES_AGREE]
    expected = (parameters.get("classes"), 1 + whole_parameter(statement, "features_dimension"))
    fits = shape == expected == (len(described.labels), expected[1]) and bool(np.isfinite(described.matrix).all())
    checks.append(Check("the matrix has the stated shape", fits, " x ".join(f"{entry:,}" for entry in shape)))
    same = described.sigma == parameters.get("sigma")
    checks.append(Check("the noise has the stated scale", same, f"standard deviation {described.sigma:g}"))
    checks += [_check_grid(described), _check_people(statement)]
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


def _check_texts(files: ReleaseFiles, pool: Pool | None, described: Described | None) -> Iterator[Check]:
    labels = None if described is None else described.labels
    columns = () if labels is None else labels.columns
    missing = set(columns) - set(columns_of(files.data, text=files.text, columns=columns))
    known = None if pool is None else {" ".join(text.split()) for text in pool.texts}
    count = foreign = outside = 0
    seen: set[str] = set()
    for document in read_documents(files.parts, text=files.text, keep=() if missing else columns):
        count += 1
        spaced = " ".join((document.text or "").split())
        foreign += known is not None and spaced not in known
        seen.add(spaced)
        if labels is not None and not missing:
            values = document.attributes or {}
            outside += labels.code([values.get(column) for column in columns]) < 0
    announced = files.statement.parameters.get("texts")
    yield Check("there are as many texts as the statement says", count == announced, f"{count:,} texts")
    if "pool_sha256" not in files.statement.parameters:
        yield Check("every text is one of the public pool", None, "a generator wrote them")
    else:
        yield Check("no text occurs twice", len(seen) == count, f"{count - len(seen):,} texts do")
        named = pool is not None
        seen_of_pool = f"{foreign:,} texts are not" if named else "the pool was not named (--public)"
        yield Check("every text is one of the public pool", foreign == 0 if named else None, seen_of_pool)
    if labels is None:
        yield Check("every label is one of the public set", None, "the description was not named (--distribution)")
    elif missing:
        yield Check("every label is one of the public set", False, f"the column {min(missing)!r} is missing")
    elif columns:
        yield Check("every label is one of the public set", outside == 0, f"{outside:,} texts have another")


def _require_pool(statement: PrivacyStatement, pool: Pool | None) -> None:
    digest = statement.parameters.get("pool_sha256")
    if pool is not None and digest is not None and pool.sha256 != digest:
        count = statement.parameters.get("pool_texts")
        texts = f"{count:,} texts, " if isinstance(count, int) else ""
        raise ParameterError(
            f"this pool ({len(pool):,} texts) is not the pool of the statement ({texts}SHA-256 digest {digest}): "
            "pass that one as --public. Nothing was checked."
        )


def _check_people(statement: PrivacyStatement) -> Check:
    """Check that the guarantee follows from epsilon, delta and the guarantees of earlier releases."""
    guarantee = own_guarantee(statement)
    epsilon, delta = (statement.parameters[name] for name in ("epsilon", "delta"))
    assert isinstance(epsilon, int | float) and isinstance(delta, int | float)
    with describes("a budget"):
        budget = PersonalBudgets(epsilon, delta=delta, floor=0.0)
    earlier = earlier_guarantees(statement)
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
    if not earlier or not check.passed:
        return check
    return Check(check.name, *covers_earlier(statement))


def _judge_people(statement: PrivacyStatement) -> Verdict:
    sigma, guarantee = real_parameter(statement, "sigma"), own_guarantee(statement)
    people = "people" if statement.unit is Unit.USER else "documents"
    coverage = f"all {people}, each of length 1 at most, if the stated software works as documented"
    with describes("noise"):
        return judge_gaussian(statement, sigma=sigma, sensitivity=1.0, release_guarantee=guarantee, coverage=coverage)
