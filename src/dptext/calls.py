"""How a public function is called: arguments under the names that they had in the version before, and what is answered
to a call that does not fit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import update_wrapper
from inspect import Parameter, signature, unwrap
from numbers import Real
from types import FunctionType
from typing import Any, TypeVar

from dptext.checks import meant, shown
from dptext.errors import CallError, ParameterError, warn

__all__ = ["answering", "renamed", "wrapping"]

C = TypeVar("C", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[C], C]:
    """A function or a class that also takes keyword arguments under their old names, with a warning, for one version.

    >>> import warnings
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
        changed = f"{function} takes {names[old]}, which was {old}: the old name goes in the next version"
        warn(changed, DeprecationWarning)
        options[names[old]] = options.pop(old)
    return options


def wrapping(called: Callable[..., Any], function: Any) -> Any:
    """``called`` in the place of ``function``: help, signature and pickle see the function, and so do doctests, which
    look for what a module defines by the globals of its functions. So ``called`` sees nothing but its own closure."""
    body: Any = called
    made = FunctionType(body.__code__, function.__globals__, function.__name__, None, body.__closure__)
    return update_wrapper(made, function)


# -- a call that does not fit ---------------------------------------------------------------------------------


def answering(public: Any) -> Any:
    """A public class or function that answers a call that does not fit with the spelling that does.

    ``TEM(vectors, 5.0)``: "TEM takes epsilon by name: TEM(vectors, epsilon=5.0)"; the same for an argument that is
    missing or that there is not. A call that fits costs one more call. A class stays the class that it is: its
    constructor and its own methods are replaced in place. A function takes the place of the one in its module.
    """
    if isinstance(public, type):
        for owner in public.__mro__:
            if owner.__module__.partition(".")[0] == "dptext":
                for name, method in list(vars(owner).items()):
                    if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
                        is_new = name == "__init__"  # whose signature a class may show in place of its constructor's
                        setattr(owner, name, _answering(method, owner if is_new else method, own=1))
        return public
    if not isinstance(public, FunctionType):
        return public
    made = _answering(public, public, own=0)
    setattr(sys.modules[public.__module__], public.__name__, made)
    return made


def _answering(function: Any, described: Any, *, own: int) -> Any:
    """``own``: how many of the first arguments the caller does not write (``self``)."""
    try:
        parameters = list(signature(described).parameters.values())
    except ValueError:  # of an exception, say
        return function
    name, parameters = described.__name__, parameters[own:] if described is function else parameters
    if hasattr(function, "_answers") or not any(each.kind is Parameter.KEYWORD_ONLY for each in parameters):
        return function
    answer = _answer

    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            better = answer(error, function, (name, parameters), arguments[own:], options)
            if better is None:
                raise
        raise better

    made = wrapping(called, function)
    made._answers = True
    return made


def _answer(
    error: TypeError,
    function: Any,
    described: tuple[str, list[Parameter]],
    given: tuple[Any, ...],
    options: dict[str, Any],
) -> CallError | None:
    """What is said of a call that does not fit; None where it fitted, and went wrong within."""
    name, own = described
    within = unwrap(function)
    trace: Any = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is within.__code__:
            return None
        trace = trace.tb_next
    by_place = [each.name for each in own if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    by_name = [each for each in own if each.kind is Parameter.KEYWORD_ONLY]
    needed = [each.name for each in by_name if each.default is Parameter.empty and each.name not in options]
    if len(given) > len(by_place):
        values = given[len(by_place) :]
        others = [each for each in by_name if each.name not in (*needed, *options)]
        if isinstance(values[0], str):  # no number is meant
            others.sort(key=lambda each: (each.annotation != "str", "str" not in str(each.annotation)))
        free = [*needed, *(each.name for each in others)]
        values = values[: len(free)]
        spelled = [f"{each}={_spelled(value)}" for each, value in zip(free, values, strict=False)]
        names = ", ".join(free[: len(values)]) or "no more"
        return CallError(f"{name} takes {names} by name: {name}({', '.join([*by_place, *spelled])})")
    foreign = [each for each in options if each not in {each.name for each in own}]
    if foreign and not any(each.kind is Parameter.VAR_KEYWORD for each in own):
        known = [each.name for each in own]
        return CallError(f"{name} has no argument {foreign[0]}{meant(foreign[0], known)} (it has {', '.join(known)})")
    at_first = [each for each in own if each.name in by_place[len(given) :] and each.default is Parameter.empty]
    missing = [*(each.name for each in at_first if each.name not in options), *needed]
    if not missing:
        return None
    spelled = [*(each for each in by_place if each in missing), *(f"{each}=..." for each in needed)]
    before = by_place[: len(given)]
    help_ = "; dptext.advise and dptext.calibrate help to choose epsilon" if "epsilon" in missing else ""
    return CallError(f"{name} needs {', '.join(missing)}: {name}({', '.join([*before, *spelled])}){help_}")


def _spelled(value: object) -> str:
    """A number as it is; of everything else nothing, for it may be somebody's text."""
    return shown(value) if isinstance(value, Real) else "..."
