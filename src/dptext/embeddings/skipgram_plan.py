"""What a training of skip-gram vectors is decided on before a text is read, and what it promises."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.participation import Participation
from dptext.embeddings.dpsgd.ranks import ALONE, RANKS, Ranks
from dptext.embeddings.dpsgd.recipe import CELLS, IEEE, LAZY, NoiseForm, Recipe
from dptext.embeddings.refinement import SHARE, learned, public_base
from dptext.embeddings.release_plan import ReleasePlan
from dptext.errors import ParameterError
from dptext.privacy.condition import Condition
from dptext.privacy.guarantee import ApproxDP, Guarantee, NoGuarantee
from dptext.privacy.randomness import NoiseKey, RandomBits, seed_bytes
from dptext.privacy.statement import Parameter
from dptext.privacy.unit import Relation
from dptext.text.vocabulary import Vocabulary
from dptext.users.store import UserStore

if TYPE_CHECKING:
    from dptext.embeddings.dpsgd.training import Training

__all__ = ["FROM_NOTHING", "FROM_PUBLIC", "Mode", "SkipGramPlan"]

Mode: TypeAlias = Literal["private", "clipped", "plain"]
Singles = npt.NDArray[np.float32]

FROM_PUBLIC, FROM_NOTHING = 400.0, 1000.0
"""How far tables go, by default: from public vectors, from a random start."""
_LEAST_LAZY = 2.0**-12  # of noise in all, where tables go as far as they do by default: a thousand single roundings
_SCALE = 3.0  # the length of public vectors in the training: scores w.c then reach as far as they have to
_WITHOUT = {
    "clipped": "trained without noise, for comparison: gradients are bounded, and nothing hides them",
    "plain": "trained without noise and without bounds, for comparison",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class SkipGramPlan(ReleasePlan):
    """What a training of skip-gram vectors is decided on.

    Attributes:
        rows: (R,) which of the words are trained; ``trained``: these, as a vocabulary.
        recipe: how a step goes.
        participation: noise, steps, and who takes part how often.
        mode: with noise, without noise, without bounds.
        users: the public number of units, for the denominator.
        dimension: of the vectors.
        ranks: how many processes train together.
    """

    rows: npt.NDArray[np.int64]
    trained: Vocabulary
    recipe: Recipe
    participation: Participation
    mode: Mode
    users: int
    dimension: int
    ranks: int = 1

    mechanism: ClassVar[str] = "skip-gram"
    share: ClassVar[str] = "sampling_rate"

    def shared(self, ranks: int) -> SkipGramPlan:
        """The same for several ranks.

        Raises:
            ParameterError: what is asked for is for one process alone.
        """
        if self.mode == "plain":
            raise ParameterError("mode='plain' follows one user after the other: train it in one process")
        if self.recipe.noise == "lazy":
            raise ParameterError(
                "several ranks train with dense noise: leave out noise='lazy', or train in one process"
            )
        return replace(self, recipe=replace(self.recipe, noise="dense"), ranks=ranks)

    @property
    def denominator(self) -> float:
        """By what the sum of a step is divided: the units that are expected in it, by public numbers."""
        return max(1.0, self.users * self.participation.rates[self.participation.most])

    @property
    def both(self) -> bool:
        """Whether word vectors are trained too; public ones stay as they are, and context vectors learn beside them."""
        return self.public is None

    @property
    def offsets(self) -> Singles:
        """(2 R,) of `dptext.embeddings.dpsgd.recipe.Recipe.offsets`; 0 for a start at random, as in word2vec."""
        count = len(self.rows)
        contexts = np.zeros(count, dtype=np.float32) if self.both else self.recipe.offsets(count)
        return np.concatenate([np.zeros(count, dtype=np.float32), contexts])

    @property
    def form(self) -> NoiseForm:
        """Dense or lazy noise.

        Lazy noise comes to numbers of single precision. Where it is so little that their rounding shows beside it, it
        would hide nothing, and the exact noise of the dense form is taken.

        Raises:
            ParameterError: it is so little, and lazy noise was asked for.
        """
        form = self.recipe.form(len(self.rows), self.denominator)
        least = _LEAST_LAZY * max(1.0, self.recipe.distance / FROM_NOTHING)
        if form == "dense" or self.mode != "private" or self.noise_of_tables >= least:
            return form
        if self.recipe.noise == "lazy":
            raise ParameterError(
                "lazy noise comes to numbers of single precision, and here it is so little that their rounding shows "
                "beside it: leave out noise='lazy'"
            )
        return "dense"

    @property
    def fingerprint(self) -> bytes:
        """Digest of all of it, and of the version of the code."""
        said = {
            "recipe": asdict(self.recipe),
            "participation": [
                self.participation.noise_multiplier,
                self.participation.steps,
                self.participation.delta,
            ],
            "rates": dict(self.participation.rates),
            "default": self.participation.default,
            # under another attribute, people would go on at rates that are not those they began with
            "level": self.levels.attribute,
            "mode": self.mode,
            "users": self.users,
            "dimension": self.dimension,
            "words": hashlib.sha256("\n".join(self.words.words).encode("utf-8", "surrogatepass")).hexdigest(),
            "trained": hashlib.sha256(self.rows.astype("<i8").tobytes()).hexdigest(),
            "public": None if self.public is None else self.public.fingerprint,
            "software": version("dptext"),
        } | self.levels.parameters
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest()

    def start(self) -> Singles:
        """(2 R, d) word vectors above context vectors: public ones, or random ones that are the same in every run.

        Context vectors begin at 0, as in word2vec, and so does a word that has no public vector beside some that have.
        """
        tables = np.zeros((2 * len(self.rows), self.dimension), dtype=np.float32)
        if self.public is not None:
            known = self.rows < len(self.public)
            base = public_base(self.public.matrix, self.public.vocabulary.unknown_row)
            tables[: len(self.rows)][known] = _SCALE * base[self.rows[known]]
        else:
            bits = RandomBits.keyed(seed_bytes(b"dptext skip-gram start", 0))
            for row in range(len(self.rows)):
                tables[row] = (bits.uniform(self.dimension) - 0.5) / self.dimension
        return tables

    def finish(self, tables: Singles) -> Singles:
        """(V, d) the vectors of the release, from trained tables. Post-processing."""
        trained = np.nan_to_num(tables, nan=0.0, posinf=0.0, neginf=0.0)
        matrix = np.zeros((len(self.words), self.dimension))
        if self.public is None:
            matrix[self.rows] = trained[: len(self.rows)]
        else:
            matrix[: len(self.public)] = public_base(self.public.matrix, self.public.vocabulary.unknown_row)
            matrix[self.rows] += SHARE * learned(trained[len(self.rows) :].astype(np.float64), self.noise_of_tables)
        return matrix.astype(np.float32)

    def training(
        self,
        store: UserStore,
        tables: Singles,
        key: NoiseKey,
        *,
        done: int = 0,
        every: int = 0,
        ranks: Ranks = ALONE,
    ) -> Training:
        """The training on these users, with tables that it changes in place, after so many steps.

        ``every``: so many steps lie between two checkpoints; 0: there are none. Lazy noise is caught up before each.

        Raises:
            MissingExtraError: numba is not installed.
        """
        from dptext.embeddings.dpsgd.noise import CellNoise  # needs numba
        from dptext.embeddings.dpsgd.training import Tables, Training

        caught_up = b"%d" % every if self.form == "lazy" else b""
        participation = self.participation
        return Training(
            store=store,
            recipe=self.recipe,
            participation=participation,
            unknown=self.trained.unknown_row,
            offsets=self.offsets,
            clipped=self.mode != "plain",
            tables=Tables(
                tables,
                self.recipe.rates(participation.steps) / (self.denominator * CELLS),  # for sums in units of C / CELLS
                CellNoise(participation.noise_multiplier * CELLS) if self.mode == "private" else None,
                lazy=self.form == "lazy",
                both=self.both,
                done=done,
                ranks=ranks,
            ),
            key=key,
            # with a seed all ranks have one key, and must not have one noise
            parameters=self.fingerprint + (b"" if ranks is ALONE else b"%d of %d" % (ranks.number, ranks.count)),
            content=store.digest() + caught_up if key.seeded else b"",
        )

    @property
    def noise_of_tables(self) -> float:
        """Standard deviation of the noise on each number of the tables, if it only added up."""
        rates = self.recipe.rates(self.participation.steps) / self.denominator
        return self.participation.noise_multiplier * math.sqrt(float((rates**2).sum()))

    def guarantee(self, level: str, *, relation: Relation = Relation.ADD_REMOVE) -> ApproxDP:
        """What the training alone promises to a user of a level.

        Raises:
            MissingExtraError: dp-accounting is not installed.
        """
        return self.participation.guarantee(level, relation=relation)

    def _promised(self, level: str) -> Guarantee:
        return super()._promised(level) if self.mode == "private" else NoGuarantee(_WITHOUT[self.mode])

    def _condition(self, level: str) -> Condition:
        condition = super()._condition(level)
        return condition if self.unit != "pair" else Condition(about="pairs", requirements=condition.requirements)

    def _parameters(self, level: str) -> dict[str, Parameter]:
        return super()._parameters(level) | ({"ranks": self.ranks} if self.ranks > 1 else {})

    def _costs(self, level: str) -> dict[str, Parameter]:
        participation, clipping = self.participation, self.recipe.clipping
        said: dict[str, Parameter] = {}
        if self.mode == "private":
            said = {
                "epsilon": self.guarantee(level).epsilon,
                "delta": participation.delta,
                "noise_multiplier": participation.noise_multiplier,
            }
            said |= self._substituted(level) | {"noise": self.form}
        said |= {"mode": self.mode, "sampling_rate": participation.rates[level], "steps": participation.steps}
        if self.mode != "plain":
            said["sensitivity"] = clipping.norm
            if clipping.words:
                said |= {"sensitivity_of_words": clipping.words, "sensitivity_of_contexts": clipping.contexts}
        return said

    def _shape(self) -> dict[str, Parameter]:
        recipe = self.recipe
        return {
            "trained_words": len(self.rows),
            "trained_tables": "both" if self.both else "contexts",
            "dimension": self.dimension,
            "pairs": recipe.pairs,
            "window": recipe.window,
            "negatives": recipe.negatives,
            "subsample": recipe.subsample,
            "distance": recipe.distance,
            "denominator": self.denominator,
            "public_users": self.users,
            "most_words": recipe.most_words,
        }

    def _assumptions(self) -> tuple[str, ...]:
        return super()._assumptions() if self.mode == "private" else ()

    def _taken_for_granted(self) -> tuple[str, ...]:
        said = [
            f"it stays secret which {self.unit}s took part in which step",
            "that the corpus holds at least one document may be known",
            IEEE,
        ]
        if self.form == "lazy":
            said.append(LAZY)
        if self.unit == "pair":
            said.append("chances of single pairs to take part are as double precision has them")
        if self.ranks > 1:
            said.append(RANKS)
        return tuple(said)
