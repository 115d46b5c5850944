"""The option ``--attacker``. It is not in `options`, because importing every attack is slow."""

from __future__ import annotations

from typing import Annotated

import typer

from dptext.attacks.base import ATTACKERS

Attackers = Annotated[
    tuple[str, ...],
    typer.Option(help=f"Who infers the attribute: {', '.join(ATTACKERS)} (may be repeated); default: all."),
]
