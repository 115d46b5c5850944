"""Known-broken runs that the tool must detect (`python -m faults --broken`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dptext.privacy.randomness import NoiseKey
from dptext.release.run import Charges
from dptext.synthesis import release as corpus


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


def _forget_what_was_reserved() -> None:
    Charges.note_pending = lambda *_: False  # type: ignore[assignment,method-assign]


def _texts_before_their_statement() -> None:
    write, write_statement = corpus.write_corpus, corpus.write_statement

    def late(*args: Any) -> Any:
        statements: list[tuple[Any, ...]] = []
        corpus.write_statement = lambda *arguments: statements.append(arguments)  # type: ignore[assignment]
        output = write(*args)
        for statement in statements:
            write_statement(*statement)
        return output

    corpus.write_corpus = late


def _forget_what_is_pending() -> None:
    Charges.settle = lambda *_: None  # type: ignore[assignment,method-assign]


@dataclass(frozen=True)
class Broken:
    """The scenario that shows a defect, the point as ``--at`` takes it, and the function that breaks all later runs."""

    scenario: str
    point: str
    apply: Callable[[], None]


BROKEN = {
    "published by copying": Broken("privatize jsonl", "KILL:write /work/out.jsonl", _publish_by_copying),
    "open to all": Broken("privatize jsonl", "KILL:write /work/.out.jsonl.rows", _open_to_all),
    "another key": Broken("privatize jsonl", "FAIL:fsync /work/.out.jsonl.rows", _forget_the_key),
    "reservation forgotten": Broken(
        "privatize jsonl, ledger", "FAIL:write /work/.out.jsonl.rows", _forget_what_was_reserved
    ),
    "texts before their statement": Broken(
        "synthesize", "KILL:open /work/.made.parquet.privacy.json.", _texts_before_their_statement
    ),
    "pending forgotten": Broken(
        "synthesize, ledger", "KILL:chmod /work/made.parquet.distribution", _forget_what_is_pending
    ),
}
