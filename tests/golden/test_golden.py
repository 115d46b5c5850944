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
    kept, made = ((text.splitlines()) for text in ((HERE / name).read_text("utf-8"), FILES[name]()))
    changes = list(difflib.unified_diff(kept, made, "kept", "made", lineterm="", n=1))
    assert not changes, "\n".join(
        [*changes[:60], "meant so? cd tests && python -m golden, and say it in the changelog"]
    )


def test_a_changed_word_or_number_is_seen(monkeypatch):
    """Also where a file does not write a sentence out, because it was written out further up."""
    explain = dptext.PrivacyStatement.explain

    def edited(statement):
        text = explain(statement)
        return text.replace("Every output", "Each output") if statement.mechanism == "Madlib" else text

    monkeypatch.setattr(dptext.PrivacyStatement, "explain", edited)
    assert FILES["explanations.txt"]() != (HERE / "explanations.txt").read_text("utf-8")
    monkeypatch.setattr(dptext.TEM, "parameters", lambda self: {"epsilon": 9.5})
    assert FILES["statements.txt"]() != (HERE / "statements.txt").read_text("utf-8")
