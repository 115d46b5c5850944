"""Statements, promises, pages, help and signatures are what they were."""

import difflib

import pytest

import dptext
from golden.made import FILES, HERE

LONG = {"commands.txt", "pages.txt"}  # sixty commands, some of which train and attack
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in FILES]


@pytest.mark.filterwarnings("ignore:delta")
@pytest.mark.parametrize("name", NAMES)
def test_what_people_read_is_what_it_was(name):
    kept, output = ((text.splitlines()) for text in ((HERE / name).read_text("utf-8"), FILES[name]()))
    changes = list(difflib.unified_diff(kept, output, "kept", "made", lineterm="", n=1))
    assert not changes, "\n".join(
        [*changes[:60], "meant so? cd tests && python -m golden, and say it in the changelog"]
    )


@pytest.mark.filterwarnings("ignore:delta")
@pytest.mark.parametrize(
    ("name", "method", "before", "after"),
    [("explanations.txt", "explain", "every output", "each output"), ("statements.txt", "to_json", "9.0", "9.5")],
)
def test_a_changed_word_or_number_is_seen(name, method, before, after, monkeypatch):
    """Also of a mechanism whose sentences stand in the file further up, where another one has them first."""
    write = getattr(dptext.PrivacyStatement, method)

    def edited(statement):
        text = write(statement)
        return text.replace(before, after) if statement.mechanism == "Madlib" else text

    kept = FILES[name]()
    monkeypatch.setattr(dptext.PrivacyStatement, method, edited)
    assert FILES[name]() != kept
