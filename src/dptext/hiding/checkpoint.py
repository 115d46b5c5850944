"""Where the training of a hiding encoder has come to, in a file: weights, what Adam remembers, and the best epoch.

**Not private**, and no release: weights that were trained on texts hang on them. The file is readable by its owner only
(mode 0600). It is one file of arrays (`dptext.representations.tensors`) with a line of JSON in its header.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from dptext.errors import DataError, RefusedError, StorageError
from dptext.hiding.tradeoff import TradeOff
from dptext.own_files import replacing
from dptext.representations.tensors import read_metadata, read_tensors, tensor_bytes

if TYPE_CHECKING:
    from dptext.hiding.training import HidingEpoch

__all__ = ["CheckpointFile", "Reached", "RunState"]

Array = npt.NDArray[Any]
_FORMAT = "dptext hiding training 1"


class RunState:
    """All arrays of a run: weights, what optimisers remember, and the weights at their best.

    Args:
        torch: the module.
        modules, optimisers: what is trained, and by what, by name.
        others: single parameters, by name.
    """

    def __init__(
        self,
        torch: Any,
        modules: Mapping[str, Any],
        optimisers: Mapping[str, Any],
        others: Mapping[str, Any] | None = None,
    ) -> None:
        self._torch, self._modules, self._optimisers = torch, modules, optimisers
        self._others = dict(others or {})
        self._best: dict[str, Any] | None = None

    def keep(self) -> None:
        """Remember the weights as they are now."""
        self._best = {name: each.detach().clone() for name, each in self._weights().items()}

    def back(self) -> None:
        """Set the weights to what was remembered last."""
        if self._best is not None:
            self._set(self._weights(), self._best)

    def arrays(self) -> dict[str, Array]:
        """By name."""
        found = dict(self._weights())
        for name, optimiser in self._optimisers.items():
            for place, each in optimiser.state_dict()["state"].items():
                found |= {f"{name}.{place}.{key}": value for key, value in each.items()}
        found |= {f"best.{name}": each for name, each in (self._best or {}).items()}
        return {name: each.detach().numpy() for name, each in found.items()}

    def set_arrays(self, arrays: Mapping[str, Array]) -> None:
        """As `arrays` gave them."""
        tensors = {name: self._torch.from_numpy(each.copy()) for name, each in arrays.items()}
        self._set(self._weights(), tensors)
        best = {name.removeprefix("best."): each for name, each in tensors.items() if name.startswith("best.")}
        self._best = best or None
        for name, optimiser in self._optimisers.items():
            state: dict[int, dict[str, Any]] = {}
            for key, each in tensors.items():
                if key.startswith(f"{name}."):
                    _, place, what = key.split(".")
                    state.setdefault(int(place), {})[what] = each
            optimiser.load_state_dict({**optimiser.state_dict(), "state": state})

    def _weights(self) -> dict[str, Any]:
        found = {
            f"{name}.{key}": each for name, module in self._modules.items() for key, each in module.state_dict().items()
        }
        return found | self._others

    def _set(self, weights: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        with self._torch.no_grad():
            for name, each in weights.items():
                each.copy_(values[name])


@dataclass(frozen=True)
class Reached:
    """How far the run of a file has come."""

    epochs: tuple[HidingEpoch, ...]
    best: int
    highest: float


class CheckpointFile:
    """The file of one run.

    Args:
        path: where.
        parameters: digest of all that the run hangs on: options, data, seed.
        start: what its random choices hang on; that of the file, if there is one.
    """

    def __init__(self, path: str | os.PathLike[str], parameters: str, start: int) -> None:
        self.path, self.parameters, self.start = Path(path), parameters, start
        self._arrays: dict[str, Array] | None = None
        self._head: dict[str, Any] = {}
        if self.path.exists():
            self._open()

    def _open(self) -> None:
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise StorageError.of("read", self.path, error) from None
        self._arrays = read_tensors(content, source=self.path.name)
        told = read_metadata(content, source=self.path.name)
        head: Any = None
        with suppress(ValueError, KeyError, RecursionError):
            head = json.loads(told["training"])
        if not isinstance(head, dict) or head.get("format") != _FORMAT:
            raise DataError(f"{self.path.name}: expected the checkpoint of a hiding encoder, got another file")
        if head.get("parameters") != self.parameters:
            raise RefusedError(
                f"{self.path.name} belongs to another training (texts, labels, options or seed differ): name another "
                "file, or remove it"
            )
        self._head, self.start = head, int(head.get("start", 0))

    def read(self, state: RunState) -> Reached | None:
        """Put the run where the file has it, if there is a file."""
        if self._arrays is None:
            return None
        from dptext.hiding.training import HidingEpoch

        try:
            state.set_arrays(self._arrays)
            epochs = tuple(
                HidingEpoch(**{**each, "held_out": None if each["held_out"] is None else TradeOff(**each["held_out"])})
                for each in self._head["epochs"]
            )
            return Reached(epochs, int(self._head["best"]), float(self._head["highest"]))
        except (KeyError, TypeError, ValueError, RuntimeError):
            pass
        raise DataError(f"{self.path.name} is broken: it is not what this version wrote; remove it")

    def write(self, state: RunState, epochs: Sequence[HidingEpoch], best: int, highest: float) -> None:
        """Keep the run in the file, whole or not at all.

        Raises:
            StorageError: it cannot be written.
        """
        head = {
            "format": _FORMAT,
            "parameters": self.parameters,
            "start": self.start,
            "epochs": [_plain(each) for each in epochs],
            "best": best,
            "highest": str(highest),
        }
        content = tensor_bytes(state.arrays(), {"training": json.dumps(head)})
        with replacing(self.path, owner_only=True) as file:
            for part in content:
                file.write(part)


def _plain(epoch: HidingEpoch) -> dict[str, Any]:
    seen = epoch.held_out
    described = {name: getattr(epoch, name) for name in ("number", "of", "phase", "loss", "adversaries")}
    if seen is None:
        return described | {"held_out": None}
    return described | {"held_out": {"task": seen.task, "attributes": dict(seen.attributes), "score": seen.score}}
