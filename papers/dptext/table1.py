"""Table 1 of the DPText paper in ten folds, with three attributes, a learned budget, and the paper's first claim.

Command: ``python -m papers.dptext.table1 [--data FOLDER] [--trustpilot FILE] [--quick] [--report]``

The first part is the table, the second the learned budget over the weight of the adversaries (three folds). The texts
are TrustPilot reviews if a file is given (`papers.dptext.trustpilot`), else posts of bloggers, whose *industry replaces
the country* of a reviewer: an attribute of several classes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import TOPIC, Posts, bloggers, posts_for
from papers.dptext import methods
from papers.dptext.experiment import REFERENCE, Fold, Setting, folds_of, measure, run_cells
from papers.dptext.methods import ENCODERS, GLOVE
from papers.dptext.report import PRINTED, Rows
from papers.dptext.trustpilot import read_reviews
from papers.membership import loss_membership
from papers.reports import (
    above,
    duration,
    estimate_numbers,
    interval,
    parse_options,
    require_rows,
    run_command,
    stored,
    stored_interval,
    table,
    write_tables,
)
from papers.sweeps import Row

from dptext.attacks import Membership, bag_inversion, score_membership
from dptext.attacks.base import Learner
from dptext.evaluation.utility import words_of
from dptext.intervals import mean_over_runs
from dptext.representations.additive import L2Laplace, Laplace
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPText
from dptext.representations.randomizer import Randomizer

Floats = npt.NDArray[np.float64]

_MAX_SHARE, _MIN_POSTS = 0.1, 2
_ROUNDING = 1e-5  # relative, of a float32
_IMPOSSIBLE = -1e9  # log-likelihood


def measure_claims(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """Return the success of the three attacks, means over folds with Student's interval.

    - **released**: is a post among those that were sent? The attacker has the post and the public encoder. The score is
      the mean over all received vectors of their likelihood given this post, relative to the likelihood given public
      posts; without noise, the similarity to the nearest one. Senders' posts are compared with tested ones.
    - **trained**: is a post among those that trained the encoder? Members have a smaller loss in the task (Yeom et al.
      2018), by a model of the senders' received posts. Public posts are compared with tested ones.
    - **recovered**: which words does a post have? Of words that occur in at most a tenth of the posts.
    """
    return over_folds(
        _attack_fold(fold, place, seed, setting) for place, fold in enumerate(folds_of(settings, seed, setting))
    )


def over_folds(rows: Any) -> dict[str, float]:
    table = list(rows)
    numbers: dict[str, float] = {}
    for name in table[0]:
        numbers |= estimate_numbers(name, mean_over_runs([row[name] for row in table]))
    return numbers


def _attack_fold(fold: Fold, place: int, seed: int, setting: Setting) -> dict[str, float]:
    rows, sender, words = setting.rows(place), fold.sender, _informative_words(setting)
    public = sender.send(rows.take(fold.public), fold.seed + 2)
    clean, clean_public = (
        sender.clean(rows.take(part)) for part in (np.concatenate([fold.senders, fold.tested]), fold.public)
    )
    precision, recall = bag_inversion(
        fold.known,
        [words[row] for row in fold.senders],
        fold.unknown,
        [words[row] for row in fold.tested],
        top=10,
        people=rows.people[fold.tested].tolist(),
    )
    return {
        "released AUC": _release_membership(fold, clean, clean_public).auc.score.value,
        "trained AUC": _training_membership(fold, public, rows.task, seed).auc.score.value,
        "words precision": precision.score.value,
        "words precision blind": precision.baseline,
        "words recall": recall.score.value,
        "words recall blind": recall.baseline,
    }


def _release_membership(fold: Fold, clean: Floats, public: Floats) -> Membership:
    """Attack the clean vectors of senders, which are members, and of tested posts."""
    likelihood = likelihoods(fold.sender.noise, clean.shape[1])
    result = likelihood(clean, fold.known)
    if fold.sender.noise is None:
        score = result.max(axis=1)
    else:
        score = _log_mean(result - _log_mean(likelihood(public, fold.known).T))
    return score_membership(score, np.arange(len(clean)) < fold.senders.size, attack="released")


def likelihoods(noise: Randomizer | None, dimension: int) -> Callable[[Floats, Floats], Floats]:
    """Return a function of (n, d) clean and (m, d) sent vectors to (n, m) log-likelihoods, up to a common constant.

    Without noise, and for a class that was sent by randomised response, it is the negative distance.
    """
    parameters: Any = {} if noise is None else noise.channel(dimension).parameters()
    if isinstance(noise, DPText):
        return partial(_one_sided, scale=float(parameters["scale"]))
    if isinstance(noise, PrivUnit):
        return partial(_cap, height=float(parameters["cap_height"]), epsilon=noise.epsilon)
    if isinstance(noise, Laplace | L2Laplace):
        return partial(_distance, order=1 if isinstance(noise, Laplace) else 2, scale=float(parameters["scale"]))
    return partial(_distance, order=2, scale=1.0)


def _distance(clean: Floats, sent: Floats, *, order: int, scale: float) -> Floats:
    return -np.stack([np.linalg.norm(sent - vector, ord=order, axis=1) for vector in clean]) / scale


def _one_sided(clean: Floats, sent: Floats, *, scale: float) -> Floats:
    minimum = -_ROUNDING * np.abs(sent).max(initial=1.0)
    noises = (sent - vector for vector in clean)
    return np.stack(
        [np.where((noise >= minimum).all(axis=1), -noise.sum(axis=1) / scale, _IMPOSSIBLE) for noise in noises]
    )


def _cap(clean: Floats, sent: Floats, *, height: float, epsilon: float) -> Floats:
    """PrivUnit's density has two values: inside the cap around a vector, and outside."""
    directions = sent / np.linalg.norm(sent, axis=1, keepdims=True)
    return epsilon * (clean @ directions.T >= height)


def _log_mean(logs: Floats) -> Floats:
    """Return (n,) ln of the mean of exp(logs) over each row."""
    highest = logs.max(axis=1)
    return highest + np.log(np.exp(logs - highest[:, None]).mean(axis=1))


def _training_membership(fold: Fold, public: Floats, task: npt.NDArray[np.str_], seed: int) -> Membership:
    """Attack the received vectors of public posts, which are members, and of tested posts."""
    classes, codes = np.unique(task[fold.senders], return_inverse=True)
    rows = np.concatenate([fold.public, fold.tested])
    members = np.arange(len(rows)) < fold.public.size
    known = np.isin(task[rows], classes)
    model = Learner("linear", seed).fit(fold.known, codes.astype(np.int64))
    confidences = model.confidences(np.concatenate([public, fold.unknown])[known])
    return loss_membership(confidences, np.searchsorted(classes, task[rows][known]), members[known])


@lru_cache(maxsize=1)
def _informative_words(setting: Setting) -> list[list[str]]:
    """Return the words of each post that occur in at least two posts and at most a tenth of all."""
    bags = [words_of(text) for text in setting.posts.texts]
    counts = Counter(word for bag in bags for word in set(bag))
    maximum = _MAX_SHARE * len(bags)
    return [[word for word in bag if _MIN_POSTS <= counts[word] <= maximum] for bag in bags]


HERE = Path(__file__).resolve().parent
START, END = "<!-- table 1: written by papers.dptext.table1 -->", "<!-- end of table 1 -->"
NAME, LEARNT = "table 1", "learnt budget"
RUNS, FOLDS = 2, 10  # of table 1; the learned budget has one run and three folds
SMALLEST_GROUP = 30  # people
SMALLEST_INDUSTRY = 25  # bloggers
OTHER = "all others"
ALPHAS = (1.0, 10.0, 0.0, 3.0, 0.3, 30.0)
LARGE_CAP = 500.0  # the published noise leaves some information: its scale is .26 in 64 dimensions
ATTACKERS = ("linear",)
"""On the topics (GloVe) two layers of 512 gained .003 of macro-F1 (5% and 95% of 70 cells: -.02 and +.02), and take as
long as the training; boosted trees were the best in 5 of the cells, by .01 at most."""
EPOCHS = (1, 10, 20, 30, 40)  # after which the learned budget is recorded
_PRINTED_COLUMNS = {"age": 1, "country": 2, "industry": 2, "gender": 3}
_PRINTED_NAMES = {methods.ORIGINAL: "ORIGINAL", methods.DIFPRIV: "DIFPRIV", methods.ADV_ALL: "ADV-ALL"}
_PRINTED_NAMES |= {methods.PRINTED: "DPTEXT", methods.LEARNT_PRINTED: "DPTEXT"}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "Table 1 with three attributes, a learned budget, membership and words.",
        HERE,
        arguments,
        trustpilot={"type": Path, "metavar": "FILE", "help": "reviews, see papers/dptext/trustpilot.py"},
        encoders={"nargs": "*", "choices": ENCODERS, "default": [GLOVE], "help": "kinds of stored vectors"},
    )
    if not options.report:
        run(options)
    write_report(options.out, readme=options.readme)


def run(options: argparse.Namespace) -> None:
    """Measure both parts; then the other runs of table 1, each with its own folds."""
    texts = _texts(options)
    for seed in range(1, 2 if options.quick else RUNS + 1):
        for part in (NAME, LEARNT) if seed == 1 else (NAME,):
            for encoder in options.encoders:
                run_cells(
                    cell,
                    settings_of(part, quick=options.quick),
                    texts,
                    seed=seed,
                    encoder=encoder,
                    part=part,
                    options=options,
                    folds=FOLDS if part == NAME and not options.quick else 3,
                    resamples=100 if options.quick else 1000,
                    attackers=ATTACKERS,
                    smallest_group=SMALLEST_GROUP,
                )


def cell(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    numbers = measure(settings, seed, setting=setting) | measure_claims(settings, seed, setting=setting)
    return numbers | learned_budget(settings, seed, setting=setting)


def learned_budget(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """Return the budget as a share of the cap during training, and the slopes that moved it; means over folds.

    Without a learned budget the share is 1 and slopes are 0. A slope is the derivative of a term of the loss by ln
    epsilon, its mean over all steps of a training.
    """
    rows = []
    for fold in folds_of(settings, seed, setting):
        budgets = fold.sender.budgets
        shares = [budget.share for budget in budgets] or [1.0]
        row = {f"share after {epoch}": shares[min(epoch, len(shares)) - 1] for epoch in EPOCHS}
        row["share, least"] = min(shares)
        for name in ("task", "attributes"):
            row[f"slope of {name}"] = float(np.mean([getattr(budget, name) for budget in budgets] or [0.0]))
        rows.append(row)
    return over_folds(rows)


def settings_of(part: str = NAME, *, quick: bool = False) -> list[dict[str, Any]]:
    """Return the paper's rows, ours and the paper's regulariser; or the learned budget over alpha and caps."""
    row, both = methods.settings_of_method, ((methods.LEARNT_L2, methods.MAIN), (methods.LEARNT_PRINTED, methods.CAP))
    if part == NAME:
        result = [
            dict(REFERENCE),
            row(methods.ORIGINAL),
            row(methods.LABEL),
            row(methods.DIFPRIV, methods.CAP),
            row(methods.LEARNT_PRINTED, methods.CAP),
            row(methods.LEARNT_L2, methods.MAIN),
            row(methods.PRINTED, methods.CAP),
            row(methods.OURS, methods.MAIN),
            row(methods.OURS_L2, methods.MAIN),
            row(methods.PRINTED_LAMBDA[methods.ADV_ALL]),
        ]
        return result[:6] if quick else result
    result = [dict(REFERENCE), *(row(*method, alpha) for alpha in ALPHAS for method in both)]
    result += [row(methods.PRINTED_LAMBDA[name], epsilon) for name, epsilon in both]
    result += [row(methods.LEARNT_PRINTED, LARGE_CAP, alpha) for alpha in (1.0, 10.0)]
    return result[:2] if quick else result


def _texts(options: argparse.Namespace) -> Posts:
    if options.trustpilot is not None:
        return read_reviews(options.trustpilot)
    people = list(bloggers(options.data))
    if options.quick:
        return add_industry(posts_for(TOPIC, people, max_posts=3, min_bloggers=30, passes=2))
    return add_industry(posts_for(TOPIC, people, max_posts=6, min_bloggers=50))


def add_industry(posts: Posts, smallest: int = SMALLEST_INDUSTRY) -> Posts:
    """Add the industry of the author as an attribute; industries with few bloggers become one group."""
    assert posts.industry is not None
    bloggers_of = Counter(name for name, _ in set(zip(posts.industry.tolist(), posts.people.tolist(), strict=True)))
    kept = [industry for industry, count in bloggers_of.items() if count >= smallest]
    groups = np.where(np.isin(posts.industry, kept), posts.industry, OTHER)
    return replace(posts, attributes=posts.attributes | {"industry": groups})


# -- the report --------------------------------------------------------------------------------------------------------


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``table1.md`` next to the rows, and the same into a README."""
    tables, budgets = ([Rows(path) for path in sorted(out.glob(f"{part}, *.jsonl"))] for part in (NAME, LEARNT))
    require_rows(tables or budgets, out)
    sections = [part for rows in tables for part in (_head(rows), _table(rows), _claims(rows), _repeated(rows))]
    sections += [part for rows in budgets for part in (_head(rows), _budgets(rows))]
    sections.append(duration([*tables, *budgets]))
    write_tables(out / "table1.md", sections, readme=readme, start=START, end=END)


def _head(rows: Rows) -> str:
    constants = rows.constants
    part, task = rows.task.split(", ", 1)
    return (
        f"### {part.capitalize()}: {task}, {rows.encoder}\n\n{constants['posts']:,} texts of "
        f"{constants['bloggers']:,} people, {constants['classes']} classes, {constants['folds']} folds, three "
        f"attributes hidden together; attackers: {', '.join(rows.attackers)}."
    )


def _attributes(rows: Rows) -> list[str]:
    """Return age, country (or industry) and gender, in the order of the paper."""
    return [name for name in _PRINTED_COLUMNS if f"{name} best" in rows.any]


def _table(rows: Rows) -> str:
    names = _attributes(rows)
    head = ["", "true epsilon", "task: accuracy", "printed"]
    line = ["majority; for F1 a guess", "", f"{rows.any['task accuracy blind']:.3f}", ""]
    for name in names:
        head += [f"{name}{' (replaces location)' if name == 'industry' else ''}: macro-F1", "printed"]
        line += [f"{rows.any[f'{name} {rows.attackers[0]} macro-F1 blind']:.3f}", ""]
    lines = [line]
    for row in rows.table:
        is_printed = row.settings["epsilon"] in (None, methods.CAP)
        printed = PRINTED.get(_PRINTED_NAMES.get(row.settings["method"], "")) if is_printed else None
        line = [row.settings["method"], rows.guarantee(row), stored_interval(row.numbers, "task accuracy")]
        line.append("" if printed is None else f"{printed[0]:.3f}")
        for name in names:
            line += [
                above(row.numbers, rows.best_attack(row, name)),
                "" if printed is None else f"{printed[_PRINTED_COLUMNS[name]]:.3f}",
            ]
        lines.append(line)
    return (
        "**Utility and attributes**. Intervals over people, 95%; F1 in bold: above a guess beyond its interval. "
        "Printed: TrustPilot, without intervals, by the discriminators that the encoder was trained to fool.\n\n"
        + table(head, lines, text_columns=2)
    )


def _repeated(rows: Rows) -> str:
    """Return the same rows in other runs."""
    if not rows.repeated:
        return ""
    names = _attributes(rows)
    head = ["", "run", "task: accuracy", *(f"{name}: macro-F1" for name in names)]
    head += ["in the release: AUC", "in the encoder's training: AUC", "words recovered"]
    lines = [
        [row.settings["method"], row.seed, stored_interval(row.numbers, "task accuracy")]
        + [above(row.numbers, rows.best_attack(row, name)) for name in names]
        + _attacks(row)
        for row in rows.repeated
    ]
    return (
        "**Run again**, in other folds, with other trainings and other noise. Columns as in the two tables above.\n\n"
        + table(head, lines)
    )


def _claims(rows: Rows) -> str:
    head = ["", "true epsilon", "in the release: AUC", "in the encoder's training: AUC"]
    head += ["words recovered, of 10 named", "the most frequent words instead", "author named"]
    lines = []
    for row in rows.table:
        numbers = row.numbers
        authors = above(numbers, "authors") if numbers["authors blind"] else "all have one text"
        blind = f"{numbers['words precision blind']:.3f}"
        lines.append([row.settings["method"], rows.guarantee(row), *_attacks(row), blind, authors])
    return (
        "**The first claim, on the same vectors**. Means over folds with Student's interval (authors: first fold, over "
        f"people; blind {rows.any['authors blind']:.3f}). Blind for AUC: .5. Bold: above blind beyond the interval.\n\n"
        + table(head, lines, text_columns=2)
    )


def _attacks(row: Row) -> list[str]:
    numbers = row.numbers
    aucs = [above(numbers, f"{name} AUC", 0.5) for name in ("released", "trained")]
    return [*aucs, above(numbers, "words precision", numbers["words precision blind"])]


def _budgets(rows: Rows) -> str:
    """Return the learned budget as a share of its cap, and the slopes that moved it."""
    learned = [row for row in rows.rows if (methods.NAMES[row.settings["method"]].trained or {}).get("learn_epsilon")]
    if not learned:
        return "**The learned budget**: not run."
    after = [name for name in rows.any if name.startswith("share after ") and not name.endswith((" low", " high"))]
    head = ["", "cap", "alpha", "true epsilon", *(name.removeprefix("share ") for name in after), "minimum"]
    head += ["slope of the task's loss", "slope of the adversaries' term", "task", *_attributes(rows)]
    lines = []
    for row in learned:
        numbers = row.numbers
        line = [
            row.settings["method"],
            f"{row.settings['epsilon']:g}",
            f"{row.settings['alpha']:g}",
            rows.guarantee(row),
        ]
        line += [*(f"{numbers[name]:.3f}" for name in after[:-1]), stored_interval(numbers, after[-1])]
        line.append(f"{numbers['share, least']:.3f}")
        line += [interval(stored(numbers, f"slope of {name}"), 4, sign=True) for name in ("task", "attributes")]
        names = ("task accuracy", *(f"{name} best" for name in _attributes(rows)))
        lines.append([*line, *(f"{numbers[name]:.3f}" for name in names)])
    return (
        "**The learned budget**, as a share of the cap after a number of epochs (it starts at .881), means over folds; "
        "slopes by ln epsilon, means over all steps: negative ones reduce the noise. Attributes: accuracy of the "
        f"attacker.\n\n{table(head, lines)}"
    )


if __name__ == "__main__":
    run_command(main)
