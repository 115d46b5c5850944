"""``dptext attack membership`` and ``neighbours``: attacks on folders that were learned from people."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dptext.attacks import (
    AttackScore,
    nearest_secrets,
    with_secrets_told,
)
from dptext.attacks.membership import gaussian_ceiling
from dptext.attacks.neighbours import NO_ROW
from dptext.cli import options
from dptext.cli.attack import UserOfRows, attack
from dptext.cli.attack_results import (
    STRONGER,
    filled,
    meaning_of_neighbours,
    print_scores,
)
from dptext.cli.options import input_option
from dptext.embeddings.refinement import public_base
from dptext.errors import DataError, DptextError, ParameterError
from dptext.methods.files import FolderKind, folder_kind, read_rows
from dptext.methods.registry import audit_release
from dptext.synthesis.distribution import read_description
from dptext.text.tokens import fold
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors


@attack.command("membership")
@options.collected
def membership_command(
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A released distribution, or a folder of dptext embed.")
    ],
    members: Annotated[
        Path | None, input_option(metavar="FILE", help="Distribution: texts of people who are in it.")
    ] = None,
    others: Annotated[
        Path | None,
        input_option(metavar="FILE", help="Distribution: texts of people who are not in it, preferably twice as many."),
    ] = None,
    text: options.Text = "text",
    user: UserOfRows = None,
    output: options.Output,
) -> None:
    """Tell who took part in a release, and compare with what the noise allows at most.

    Results computed from --members and --others are not covered by the guarantee: they are for the owner of the data.

    Example: dptext attack membership out.distribution --members in.csv --others new.csv --user author
    """
    kind = folder_kind(folder) if folder.is_dir() else FolderKind.OTHER
    if kind is FolderKind.VECTORS:
        _ceiling_of_vectors(folder, output)
        return
    if kind is not FolderKind.DESCRIPTION:
        raise ParameterError(
            "membership needs a released distribution (OUT.distribution) or a folder of dptext embed; for a file of "
            "texts, use `dptext attack linkage ORIGINAL PRIVATE`"
        )
    if members is None or others is None:
        raise ParameterError(
            "--members FILE (people who are in the release) and --others FILE (people who are not) are required"
        )
    from dptext.methods.corpus import CorpusExamination
    from dptext.methods.findings import ReportConfig

    statement = read_description(folder).statement
    if statement.unit == "user" and user is None:
        raise ParameterError("--user COLUMN is required: the guarantee protects users, and it names them")
    asked = ReportConfig(
        private=folder,
        original=members,
        held_out=others,
        distribution=folder,
        user=user,
        text=text,
        seed=options.ANALYSIS_SEED,
    )
    making = CorpusExamination(asked, folder, statement, output.say)
    scores = making.membership()
    if len(scores) < 2:
        raise DataError(making.notes[-1] if making.notes else "too few people to tell apart")
    best, *found = scores
    print_scores(
        scores,
        did=(
            "For each person of both files the attacker made what they would have added to the description, took "
            "strangers for the rest of it, and asked how likely the released numbers are with them and without. Half "
            "of the others stood in for the strangers."
        ),
        meaning=[
            f"What the noise allows to anybody, with any knowledge: AUC {best.score.value:.3f}, on average over "
            "releases (chance: 0.500). One release has one noise, which all scores share: a single result may lie "
            "above it.",
            *(each.detail for each in found if each.detail),
            STRONGER,
        ],
        output=output,
    )


def _ceiling_of_vectors(folder: Path, output: options.Output) -> None:
    """Of vectors that were learned: what their noise allows; the sum that an attack would start from is not there."""
    audit = audit_release(folder)[1]
    statement, verdict = audit.statement, audit.verdict
    said, epsilon, delta = statement.parameters, verdict.allowed, verdict.delta
    # words that were learned, or a level that was sent: they tell something too
    has_more = any(name.startswith("promise_of_") for name in said) or bool(said.get("epsilon_for_level"))
    if has_more:
        epsilon, delta = statement.epsilon, getattr(statement.guarantee, "delta", 0.0)
    right = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)) if epsilon < 500 else 1.0
    found: dict[str, Any] = {"accuracy_at_most": right, "auc_at_most": None}
    lines = [
        f"Somebody who knows all others and all that one {statement.unit} wrote tells whether they are in it rightly "
        f"in at most {right:.2%} of the cases, where half are (a blind guess: 50%): from epsilon {epsilon:.4g}."
    ]
    sigma, sensitivity = said.get("sigma"), said.get("sensitivity")
    if isinstance(sigma, float) and isinstance(sensitivity, float) and not has_more:
        ceiling = gaussian_ceiling(sigma, sensitivity=sensitivity)
        found = {"accuracy_at_most": ceiling.accuracy, "auc_at_most": ceiling.auc}
        lines = [
            f"Somebody who knows all others and all that one {statement.unit} wrote is right in {ceiling.accuracy:.1%} "
            f"of the cases, where half are in it (a blind guess: 50%), AUC {ceiling.auc:.3f} (chance: 0.500): the best "
            "there can be, from the noise that the statement names."
        ]
    why = (
        "The vectors were computed from a noisy sum, or in noisy steps, and the folder holds neither: an attack on the "
        "numbers that the noise was added to cannot be run on it, and all that is made of the vectors stays below this."
    )
    run = (
        f"Whether the noise is enough for the promise: dptext audit {folder.name}. What they tell of pairs of words: "
        f"dptext attack neighbours {folder.name} --pairs FILE."
    )
    lines = ["WHAT AN ATTACKER CAN GET AT MOST", *map(filled, (*lines, why, run))]
    output.answer(lambda: {"attack": None, "why": why, **found}, lambda: typer.echo("\n".join(lines)))


@attack.command("neighbours")
@options.collected
def neighbours_command(
    *,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Word vectors learned from private texts.")],
    pairs: Annotated[
        Path,
        input_option(metavar="FILE", help="Names and their secrets: words in the columns name and secret."),
    ],
    output: options.Output,
) -> None:
    """Find the secret that belongs to a name by nearest neighbours in the word vectors.

    The pairs were planted in the texts, or are known to be there. Results are not covered by the guarantee: they
    are for the owner of the data. No word is printed.

    Example: dptext attack neighbours vectors --pairs pairs.csv
    """
    if not folder.is_dir() or folder_kind(folder) is not FolderKind.VECTORS:
        raise ParameterError(
            f"{folder.name or folder} is no folder of word vectors: name one that dptext embed or dptext.save_vectors "
            "wrote"
        )
    shared = load_vectors(folder)
    rows = read_rows(pairs, text="secret", columns=("name",), vector=None)
    asked = _Pairs(
        names=[str(word) for word in rows.columns["name"]],
        secrets=[str(word) for word in rows.texts],
    )
    output.say(f"Asking {len(shared):,} words for the secrets of {rows.size:,} names ...")
    before = _known_before(shared)
    scores = asked.scores(shared, public=None if before is None else _same_words(shared, before))
    if before is not None:
        with contextlib.suppress(ParameterError):  # it knows none of these words
            scores += asked.scores(before, attack="neighbours (public vectors alone)")
    checked = asked.scores(asked.told(shared), attack="neighbours (control: secrets told)")
    print_scores(
        [*scores, *checked],
        did=(
            "The attacker had the vectors alone. For each name they took the secret whose vector is nearest, of all "
            "secrets of its kind, and the nearest of all words."
        ),
        meaning=meaning_of_neighbours(scores, checked, shared),
        output=output,
    )


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Names and their secrets."""

    names: list[str]
    secrets: list[str]

    def rows(self, vectors: WordVectors) -> tuple[list[int], list[int]]:
        return _rows_of(vectors, self.names), _rows_of(vectors, self.secrets)

    def scores(self, vectors: WordVectors, **more: Any) -> list[AttackScore]:
        names, secrets = self.rows(vectors)
        left_out = [vectors.vocabulary.unknown_row]
        how: dict[str, Any] = {"left_out": left_out, "top": 10, "seed": options.ANALYSIS_SEED, **more}
        return nearest_secrets(vectors.matrix, names, secrets, **how)

    def told(self, vectors: WordVectors) -> WordVectors:
        return WordVectors(vectors.words, with_secrets_told(vectors.matrix, *self.rows(vectors)))


def _rows_of(vectors: WordVectors, words: Sequence[str]) -> list[int]:
    found = (vectors.vocabulary.row(fold(word)) for word in words)
    return [NO_ROW if row == vectors.vocabulary.unknown_row else row for row in found]


def _known_before(shared: WordVectors) -> WordVectors | None:
    found = None
    said = {} if shared.statement is None else shared.statement.parameters
    source, digest = said.get("public_vectors"), said.get("public_vectors_sha256")
    if isinstance(source, str):
        new = said.get("new_words")
        words = len(shared) - (new if isinstance(new, int) else 0)
        with contextlib.suppress(DptextError):
            tried = (load_vectors(source, limit=limit) for limit in (words - 1, words))
            found = next((each for each in tried if each.fingerprint == digest), None)
    if found is None:
        return None
    base = public_base(found.matrix, found.vocabulary.unknown_row)
    return WordVectors(found.words, base.astype(np.float32), source=found.source)


def _same_words(shared: WordVectors, before: WordVectors) -> Any:
    """(V, d) the public vectors of the words of FOLDER; 0 where there is none."""
    rows = np.array([before.vocabulary.row(word) for word in shared.words])
    found = before.matrix[rows].copy()
    found[rows == before.vocabulary.unknown_row] = 0.0
    return found
