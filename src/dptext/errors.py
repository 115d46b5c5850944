"""Exceptions and warnings, and imports of optional packages."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing would slow start-up
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class DptextError(Exception):
    """Base class of all errors of dptext. ``exit_code`` is the exit code of the command line."""

    exit_code = 1


class DataError(DptextError, ValueError):
    """Invalid data, such as a malformed row, a missing column or vectors with NaN."""

    exit_code = 1


class ParameterError(DptextError, ValueError):
    """Invalid argument."""

    exit_code = 2


class RefusedError(DptextError, ValueError):
    """Request without a proof (an invalid conversion) or without remaining budget."""

    exit_code = 3


class StorageError(DptextError, OSError):
    """Failure to read or write a file."""

    exit_code = 4

    @classmethod
    def of(cls, verb: str, path: object, error: OSError) -> StorageError:
        """Return the error of the operating system for a path: ``cannot read 'x': No such file or directory``."""
        return cls(f"cannot {verb} {str(path)!r}: {error.strerror or type(error).__name__}")


@contextmanager
def storage_errors(verb: str, path: object) -> Iterator[None]:
    """Replace errors of the operating system about a path by a `StorageError` (`StorageError.of`)."""
    try:
        yield
    except DptextError:
        raise
    except OSError as error:
        raise StorageError.of(verb, path, error) from None


class SourceError(DptextError, RuntimeError):
    """Failure of a text source, such as a server that does not respond or a model that cannot be loaded."""

    exit_code = 4


class MissingExtraError(DptextError, ImportError):
    """Missing optional package; the message contains the command that installs it."""

    exit_code = 2


class ProtectionWarning(UserWarning):
    """The guarantee of a release is too weak to protect on its own."""


def extra(module: str, name: str, purpose: str) -> Any:
    """Import an optional module; ``name`` is the extra of dptext that installs it.

    Raises:
        MissingExtraError: the module is not installed.
    """
    extras([(module, name)], purpose)
    return import_module(module)


def extras(needed: Iterable[tuple[str, str]], purpose: str) -> None:
    """Raise if one of several optional modules (each with its extra) is missing.

    Raises:
        MissingExtraError: a module is missing; the message names all missing packages and one command to install them.
    """
    missing: dict[str, str] = {}
    for module, name in needed:
        try:
            import_module(module)
        except ImportError:
            first = module.partition(".")[0]
            missing["scikit-learn" if first == "sklearn" else first.replace("_", "-")] = name
    if missing:
        packages, names = ", ".join(map(repr, missing)), ",".join(sorted(set(missing.values())))
        noun, them = ("packages", "them") if len(missing) > 1 else ("package", "it")
        raise MissingExtraError(
            f'{purpose} needs the {noun} {packages}; install {them} with: pip install "dptext[{names}]"'
        )


def warn(message: str, category: type[Warning]) -> None:
    """Warn with the location of the first caller outside of this package."""
    import warnings
    from pathlib import Path
    from sys import _getframe

    package = str(Path(__file__).parent)
    frame: Any = _getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
