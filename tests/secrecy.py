"""What every error of the readers and writers is held to: one line, the place named, the content never."""

import traceback

import pytest

MARKER = "qsecretq"
"""Stands in every broken row; no message may hold it."""


def assert_silent(error):
    """One line, and nothing of the data: not in the message, not in the traceback, not in a chained error."""
    message = str(error)
    assert len(message.splitlines()) == 1
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    # errors of decoders carry their input
    assert not any(MARKER in repr(value) for value in (vars(error.__context__) if error.__context__ else {}).values())
    assert MARKER not in repr(getattr(error.__context__, "object", ""))
    assert MARKER not in message + repr(error) + "".join(traceback.format_exception(error))
    return message


def assert_error(kind, act, *parts):
    """The error names each part on one line, quotes no row, and drags no other error along."""
    with pytest.raises(kind) as caught:
        act()
    message = assert_silent(caught.value)
    for part in parts:
        assert part in message
    return message
