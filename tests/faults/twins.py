"""Broken runs that the tool must find wrong, as `python -m faults --twin NAME` applies them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dptext.privacy.ledger import Ledger
from dptext.privacy.noise_key import NoiseKey

__all__ = ["TWINS"]


def _publish_by_copying() -> None:
    def replace(path: Path, target: Path) -> None:
        with path.open("rb") as source, Path(target).open("wb", buffering=0) as out:
            while data := source.read(64):
                out.write(data)
        path.unlink()

    Path.replace = Path.rename = replace  # type: ignore[assignment,method-assign]


def _open_to_all() -> None:
    opened: Any = os.open

    def open_to_all(path: Any, flags: int, mode: int = 0o777, **more: Any) -> Any:
        return opened(path, flags, mode | 0o044, **more)

    os.open = open_to_all
    os.fchmod = os.chmod = lambda *_, **__: None


def _forget_the_key() -> None:
    NoiseKey.restored = classmethod(lambda cls, _secret, *, seeded: cls())  # type: ignore[assignment,method-assign]


def _give_nothing_back() -> None:
    Ledger.void = lambda *_: None  # type: ignore[assignment,method-assign]


def _leave_all_behind() -> None:
    Path.unlink = lambda *_, **__: None  # type: ignore[method-assign]


TWINS: dict[str, tuple[str, Callable[[], None]]] = {
    "published by copying": ("privatize jsonl", _publish_by_copying),
    "open to all": ("privatize jsonl", _open_to_all),
    "another key": ("privatize jsonl", _forget_the_key),
    "nothing given back": ("privatize jsonl, ledger", _give_nothing_back),
    "left behind": ("embed, ledger", _leave_all_behind),
}
"""By name: the scenario that shows it, and what breaks it."""
