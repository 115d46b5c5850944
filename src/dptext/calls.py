"""How a public function is called: what becomes of arguments under the names that they had in the version before."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar

from dptext.errors import ParameterError

__all__ = ["renamed"]

C = TypeVar("C", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[C], C]:
    """A function or a class that also takes keyword arguments under their old names, with a warning, for one version.

    >>> @renamed(colour="color")
    ... def paint(*, color):
    ...     return color
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     paint(colour="red"), str(said[0].message)
    ('red', 'paint takes color, which was colour: the old name goes in the next version')

    Args:
        names: old name to new name.
    """

    def decorate(public: Any) -> Any:
        owner: Any = public if isinstance(public, type) else None
        within = public if owner is None else owner.__init__
        said, to_new = within.__qualname__.removesuffix(".__init__"), _under_new_names

        def called(*arguments: Any, **options: Any) -> Any:
            return within(*arguments, **to_new(said, names, options))

        if owner is None:
            return wrapping(called, within)
        owner.__init__ = wrapping(called, within)
        return owner

    return decorate


def _under_new_names(function: str, names: Mapping[str, str], options: dict[str, Any]) -> dict[str, Any]:
    for old in sorted(names.keys() & options.keys()):
        if names[old] in options:
            raise ParameterError(
                f"{function} was given {names[old]} and {old}, which are one argument: leave {old} out"
            )
        warnings.warn(
            f"{function} takes {names[old]}, which was {old}: the old name goes in the next version",
            DeprecationWarning,
            stacklevel=3,
        )
        options[names[old]] = options.pop(old)
    return options


def wrapping(called: Callable[..., Any], function: Any) -> Any:
    """``called`` in the place of ``function``: help, signature and pickle see the function, and so do doctests, which
    look for what a module defines by the globals of its functions. So ``called`` sees nothing but its own closure."""
    body: Any = called
    made = FunctionType(body.__code__, function.__globals__, function.__name__, None, body.__closure__)
    return update_wrapper(made, function)
