"""What a function is, beside its name: a digest of its code, and digests of the values that it holds.

A function holds its defaults, what it closes over, what a partial gives it and, as a method or a callable object, its
instance. All of it decides about its results as its code does. Values are compared by content, as far down as they go:
numbers, text, arrays, containers, functions, and objects by what they would be pickled as. What has no such content (a
lock, an open file, a generator, most objects of compiled libraries) cannot be compared, and is never passed over.

Not looked at: code that the function calls, global names that it reads, and what a `functools.cached_property` keeps.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time, timedelta, tzinfo
from enum import Enum
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from dptext.errors import ParameterError

__all__ = ["Fingerprint", "fingerprint_of"]

_SELF = "self"
_PLAIN = (bool, int, float, complex, str, bytes, range, slice)
_CACHED = type(functools.lru_cache(abs))


@dataclass(frozen=True)
class Fingerprint:
    """What a function is.

    Attributes:
        name: of the function.
        code: a digest of its code, without comments and layout; None of a compiled function, which is its name.
        holds: a digest of each value that it holds, by name; attributes of its instance as ``self.name``.
    """

    name: str
    code: str | None
    holds: dict[str, str]


def fingerprint_of(run: Callable[..., Any], not_compared: Iterable[str] = ()) -> Fingerprint:
    """The fingerprint of a function, a method, a partial or a callable object.

    Held values that ``not_compared`` names are left out; ``"self"`` stands for all of an instance.

    Raises:
        ParameterError: a value that cannot be compared is not among these; a name among these is not held.
    """
    held: dict[str, Any] = {}
    function = _hold_all(run, held)
    left_out = {entry for entry in held if entry in not_compared or (_of_instance(entry) and _SELF in not_compared)}
    unknown = sorted(set(not_compared) - held.keys() - {_SELF})
    if unknown:
        names = ", ".join(held) or "nothing"
        raise ParameterError(f"not_compared: run holds no {unknown[0]!r}; it holds {names}")
    digests = {}
    for name, value in held.items():
        if name in left_out:
            continue
        try:
            digests[name] = _digest(value)
        except (_NotComparableError, RecursionError) as error:
            text = error if isinstance(error, _NotComparableError) else "a value nested without end"
            raise ParameterError(
                f"run holds {name!r}, of which {text} cannot be compared between calls, so rows of another {name!r} "
                f"would pass for its own: name it in not_compared=({name!r},) and say what it is in constants="
            ) from None
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return Fingerprint(name, _digest_of_code(function), digests)


def _hold_all(run: Callable[..., Any], held: dict[str, Any]) -> Callable[..., Any]:
    """Collect what a function holds, by name; returns the function itself."""

    def hold(found: Iterable[tuple[str, Any]]) -> None:
        for name, value in found:
            while name in held:  # an argument of a partial, and the default that it replaces
                name = f"{name} again"
            held[name] = value

    while True:
        if isinstance(run, _CACHED):
            run = run.__wrapped__
        elif isinstance(run, functools.partial):
            hold((f"argument {place}", value) for place, value in enumerate(run.args))
            hold(run.keywords.items())
            run = run.func
        elif isinstance(run, MethodType):
            hold(_instance(run.__self__))
            run = run.__func__
        else:
            break
    if isinstance(run, FunctionType):
        hold((*_defaults(run), *_closure(run)))
    elif not isinstance(run, BuiltinFunctionType):
        hold(_instance(run))
    elif not isinstance(run.__self__, ModuleType | None):
        hold([(_SELF, run.__self__)])
    return run


def _of_instance(name: str) -> bool:
    return name == _SELF or name.startswith(f"{_SELF}.")


def _defaults(function: FunctionType) -> Iterator[tuple[str, Any]]:
    code, defaults = function.__code__, function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _closure(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a name that has no value yet
            yield name, cell.cell_contents


def _instance(instance: Any) -> list[tuple[str, Any]]:
    """Its attributes one by one, where it consists of nothing else; else the instance itself."""
    state = None
    with suppress(_NotComparableError):
        output, state, *rest = _parts(instance)
        state = state if isinstance(state, dict) and len(output) <= 2 and not any(rest) else None
    if state is None:
        return [(_SELF, instance)]
    return [(f"{_SELF}.{name}", value) for name, value in state.items()]


# -- digests of values ------------------------------------------------------------------------------------------------


class _NotComparableError(Exception):
    """A value has no content that could be compared; the message says of which type it is."""


def _digest(value: Any) -> str:
    result = hashlib.sha256()
    _feed(result.update, value, {})
    return result.hexdigest()[:32]


def _feed(update: Callable[[Any], None], value: Any, seen: dict[int, tuple[int, Any]]) -> None:
    """Feed a value into a digest: what it is, how long it is, and its parts."""

    def say(kind: str, content: bytes = b"") -> None:
        update(f"{kind} {len(content)}:".encode() + content)

    def feed_all(kind: str, parts: Iterable[Any]) -> None:
        parts = list(parts)
        say(kind, str(len(parts)).encode())
        for part in parts:
            _feed(update, part, seen)

    if value is None or value is Ellipsis or value is NotImplemented or type(value) in _PLAIN:
        say(type(value).__name__, repr(value).encode("utf-8", "surrogatepass"))
        return
    if id(value) in seen:
        say("seen", str(seen[id(value)][0]).encode())
        return
    seen[id(value)] = (len(seen), value)  # held, so that its id is that of nothing else
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        array = np.asarray(value)
        say("array", f"{array.dtype.descr} {array.shape}".encode())
        update(np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else b"")
    elif isinstance(value, np.ndarray):
        feed_all("objects", (value.shape, value.tolist()))
    elif isinstance(value, type | BuiltinFunctionType | np.ufunc):
        say("global", _name(value).encode())
        if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType | type | None):
            _feed(update, value.__self__, seen)
    elif isinstance(value, ModuleType):
        say("module", value.__name__.encode())
    elif isinstance(value, Enum):
        say("enum", f"{_name(type(value))} {value.name}".encode())
    elif isinstance(value, FunctionType):
        say("function", f"{_name(value)} {_digest_of_code(value)}".encode())
        feed_all("holds", (*_defaults(value), *_closure(value)))
    elif isinstance(value, MethodType):
        feed_all("method", (value.__func__, value.__self__))
    elif isinstance(value, _CACHED):
        _feed(update, value.__wrapped__, seen)
    elif isinstance(value, functools.partial):
        feed_all("partial", (value.func, value.args, value.keywords))
    elif type(value) in (list, tuple, deque, bytearray, memoryview):
        feed_all(type(value).__name__, value)
    elif type(value) in (set, frozenset):
        feed_all(type(value).__name__, sorted(map(_digest, value)))
    elif type(value) in (dict, OrderedDict, defaultdict, MappingProxyType):
        if isinstance(value, defaultdict):
            _feed(update, value.default_factory, seen)
        feed_all(type(value).__name__, (part for pair in value.items() for part in pair))
    elif isinstance(value, PurePath | tzinfo | date | time | timedelta):
        say(_name(type(value)), repr(value).encode("utf-8", "surrogatepass"))
    else:
        output, state, *items = _parts(value)
        feed_all(f"object {_name(type(value))}", (output, state, *items))


def _parts(value: Any) -> tuple[tuple[Any, ...], Any, list[Any], list[Any]]:
    """What an object would be pickled as: how it is made, its state, and its items in order and by key."""
    kind = type(value)
    for method in ("__reduce_ex__", "__reduce__"):
        mine = getattr(kind, method)
        if mine is not getattr(object, method) and not isinstance(mine, FunctionType):
            raise _NotComparableError(f"a value of type {kind.__qualname__}")
    try:
        result = value.__reduce_ex__(4)
    except Exception:  # noqa: BLE001 - an object may refuse in any way
        raise _NotComparableError(f"a value of type {kind.__qualname__}") from None
    if isinstance(result, str):
        return (result,), None, [], []
    make, arguments, state, items, pairs = (*result, *(None,) * 5)[:5]
    if isinstance(state, dict):
        state = {name: entry for name, entry in state.items() if not _is_cached(kind, name)}
    return (_name(make), *arguments), state, list(items or ()), list(pairs or ())


def _is_cached(kind: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)


# -- digests of code --------------------------------------------------------------------------------------------------


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    module = getattr(value, "__module__", None)
    return name if module is None else f"{module}.{name}"


def _digest_of_code(run: Callable[..., Any]) -> str | None:
    """Of a function, or of the class of a callable object, without comments and layout; None of a compiled one."""
    if isinstance(run, BuiltinFunctionType | type):
        return None
    result: Any = run if isinstance(run, FunctionType) else type(run)
    parts = _source(result)
    if parts is None:  # nothing to read, or several on one line
        codes = [result] if isinstance(result, FunctionType) else vars(result).values()
        parts = "\n".join(_bytecode(code.__code__) for code in codes if isinstance(code, FunctionType))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest() if parts else None


def _source(found: Any) -> str | None:
    if isinstance(found, FunctionType) and found.__name__ == "<lambda>":
        return None
    with suppress(OSError, TypeError, SyntaxError):
        # of the code itself: that of a wrapper, not that of what it wraps
        code = found.__code__ if isinstance(found, FunctionType) else found
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(code))))
    return None


def _bytecode(code: CodeType) -> str:
    constants = [_bytecode(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, constants))
