"""Modules under the names that README and docs once showed: they work for one more version, with a warning."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # as in dptext/__init__.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

__all__ = ["install"]

MOVED = {
    "dptext.embeddings.concerns": "dptext.embeddings.levels",
    "dptext.embeddings.dpsgd.torch_ranks": "dptext.embeddings.dpsgd.ranks",
    "dptext.embeddings.personal": "dptext.embeddings.dpsgd.participation",
    "dptext.embeddings.policy": "dptext.embeddings.levels",
    "dptext.privacy.ledger": "dptext.ledger.ledger",
    "dptext.report": "dptext.reports",
    "dptext.report.corpus": "dptext.reports.measure",
    "dptext.representations.hiding": "dptext.hiding",
    "dptext.representations.hiding.erasure": "dptext.hiding.erasure",
    "dptext.representations.hiding.federate": "dptext.representations.federate",
    "dptext.scale": "dptext.spark",
    "dptext.scale.ranks": "dptext.embeddings.dpsgd.ranks",
    "dptext.scale.spark": "dptext.spark.frames",
    "dptext.words.corpus": "dptext.release.privatize",
    "dptext.words.privatize": "dptext.release.privatize",
    "dptext.words.training": "dptext.words.trained_vectors",
    "dptext.text.by_user": "dptext.users.grouping",
}


class _Moved(ModuleType):
    """Stands where a module was: what is asked of it, the module that is now elsewhere answers."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(import_module(MOVED[self.__name__]), name, None)
        # a name that went since is known where the public names of earlier versions are
        return getattr(import_module("dptext"), name) if found is None else found

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """As the public function of the name that the module had (``dptext.report``)."""
        package, _, name = self.__name__.partition(".")
        home = import_module(package)._HOME.get(name)
        if home is None:
            raise TypeError(f"{self.__name__} is a module")
        return getattr(import_module(f"{package}.{home}"), name)(*arguments, **options)

    def __dir__(self) -> list[str]:
        return dir(import_module(MOVED[self.__name__]))


class _Finder:
    """Finds modules that moved; Python asks it last, so it costs nothing where there is nothing to find."""

    def find_spec(self, name: str, _path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Moved(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        import warnings

        warnings.warn(
            f"{module.__name__} is {MOVED[module.__name__]} now; the old name goes in the next version",
            DeprecationWarning,
            stacklevel=2,
        )


def install() -> None:
    """Let ``import dptext.privacy.ledger`` and the like find what moved."""
    sys.meta_path.append(_Finder())
