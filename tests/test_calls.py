"""How a public function is called."""

import inspect
import pickle
import re
from dataclasses import dataclass

import pytest

import dptext
from dptext.calls import renamed
from dptext.errors import ParameterError


@renamed(ledger_key="user", old="new")
def charge(amount, *, user=None, new=0):
    """Of a test."""
    return amount, user, new


@renamed(person="user")
@dataclass(frozen=True)
class Asked:
    user: str | None = None


def test_an_argument_is_taken_under_its_old_name_with_a_warning():
    with pytest.warns(DeprecationWarning, match=re.escape("charge takes user, which was ledger_key")) as said:
        assert charge(1, ledger_key="who") == (1, "who", 0)
    assert said[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="Asked takes user, which was person"):
        assert Asked(person="who") == Asked("who")
    assert charge(1, user="who", new=2) == (1, "who", 2)


def test_an_argument_is_given_under_one_name():
    with pytest.raises(ParameterError, match="was given user and ledger_key, which are one argument"):
        charge(1, user="who", ledger_key="who")


def test_a_function_with_old_names_is_still_itself():
    assert str(inspect.signature(charge)) == "(amount, *, user=None, new=0)"
    assert (charge.__doc__, charge.__name__) == ("Of a test.", "charge")
    assert pickle.loads(pickle.dumps(charge)) is charge
    assert pickle.loads(pickle.dumps(Asked("who"))) == Asked("who")
    assert charge.__globals__ is globals()  # by which doctest finds what a module defines


@pytest.mark.parametrize(
    ("call", "old"),
    [
        (lambda: dptext.privatize_file("no.jsonl", "out.jsonl", None, ledger_key="who"), "ledger_key"),
        (lambda: dptext.encode_file("no.jsonl", "out.parquet", None, ledger_key="who"), "ledger_key"),
        (lambda: dptext.report("no.jsonl", person="who"), "person"),
    ],
)
def test_what_named_the_person_otherwise_says_so(call, old, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        pytest.warns(DeprecationWarning, match=f"takes user, which was {old}"),
        pytest.raises((OSError, ValueError, AttributeError)),
    ):
        call()
