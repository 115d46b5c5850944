"""What a card says about the way in which vectors were made: by one release, or step by step, and with what levels."""

from __future__ import annotations

from typing import Any

from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.unit import Unit
from dptext.vectors.word_vectors import WordVectors

__all__ = ["how_levels", "how_made", "plain", "whose_method"]


def how_made(vectors: WordVectors, statement: PrivacyStatement) -> list[str]:
    """Points of a list: what became of the texts, and where the noise is."""
    return _step_by_step(statement) if _is_training(statement) else _at_once(vectors, statement)


def whose_method(statement: PrivacyStatement) -> str:
    """Who is to be named."""
    if _is_training(statement):
        return (
            "The training is that of M. Abadi et al., *Deep learning with differential privacy*, CCS 2016, on the "
            "model of T. Mikolov et al., *Distributed representations of words and phrases and their "
            "compositionality*, NIPS 2013."
        )
    return (
        "The noise is that of B. Balle and Y.-X. Wang, *Improving the Gaussian mechanism for differential privacy*, "
        "ICML 2018."
    )


_PREDICTED = {
    "public": "For some it was predicted from what is public about them. Which level somebody has may be known.",
    "texts": "For some it was predicted from their own texts. What stands below for less than the largest epsilon "
    "holds for those who chose their level themselves, and for nobody else.",
    "device": "For some it was predicted from their own texts, on their own devices, and sent with noise: what that "
    "cost is counted in. The level that counts for somebody is the one that was sent, which may be known.",
}


def how_levels(statement: PrivacyStatement) -> str:
    """How people came by their levels."""
    predicted = _PREDICTED.get(str(statement.parameters.get("levels_predicted_from")))
    known = "Which level somebody chose is not in this folder, and may be known." if predicted is None else predicted
    return (
        "People could choose how much they want to be protected; the numbers above hold for all of them, and for "
        f"some there is more. {known} Who has none counts as *{plain(str(statement.parameters.get('default_level')))}*."
    )


def _is_training(statement: PrivacyStatement) -> bool:
    return "noise_multiplier" in statement.parameters


def _at_once(vectors: WordVectors, statement: PrivacyStatement) -> list[str]:
    said = statement.parameters
    measured = f"{said.get('window')} words on either side"
    return [
        f"- **Texts of people:** not here, and not counted here: how many there are is protected as well. Of each "
        f"{statement.unit} it was added up which words stand beside which ({measured}), and brought to a length of "
        f"{_number(said.get('sensitivity'))} at most before it went into the sum.",
        f"- **Noise:** Gaussian, standard deviation {_number(said.get('sigma'))} on each of the "
        f"{len(vectors):,} x {said.get('features')} numbers of the sum, drawn once. All that followed used the noisy "
        "sum and public numbers only.",
    ]


def _step_by_step(statement: PrivacyStatement) -> list[str]:
    said = statement.parameters
    unit = "pair of words" if statement.unit is Unit.EXAMPLE else str(statement.unit)
    tables = 2 if said.get("trained_tables") == "both" else 1
    numbers = f"{tables} x {said.get('trained_words'):,} x {said.get('dimension')} numbers"
    near = f"which words stand near each other, up to {said.get('window')} apart"
    return [
        f"- **Texts of people:** not here, and not counted here: how many there are is protected as well. In each of "
        f"{said.get('steps'):,} steps every {unit} took part by chance ({_number(said.get('sampling_rate'))}), and "
        f"then {near} ({said.get('pairs')} times), pulled at the vectors: with a length of "
        f"{_number(said.get('sensitivity'))} at most for each {unit}.",
        f"- **Noise:** Gaussian, {_number(said.get('noise_multiplier'))} times that length on each of the {numbers} "
        "that were trained, in every step anew. All that followed used these noisy steps and public numbers only.",
    ]


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def plain(text: str) -> str:
    """Names are anybody's: they must not end a cell or a line, or become markup."""
    return "".join(f"\\{each}" if each in "\\|`*_<>[]" else " " if not each.isprintable() else each for each in text)
