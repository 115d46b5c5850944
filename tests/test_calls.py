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


# -- a call that does not fit -------------------------------------------------------------------------------------

VECTORS = dptext.load_vectors((["tea", "cup"], [[0.0, 1.0], [1.0, 0.0]]))


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: dptext.TEM(VECTORS, 5.0), "TEM takes epsilon by name: TEM(vectors, epsilon=5.0)"),
        (lambda: dptext.TEM(VECTORS, 5.0, "secret"), "epsilon, metric by name: TEM(vectors, epsilon=5.0, metric=...)"),
        (lambda: dptext.TEM(VECTORS), "TEM needs epsilon: TEM(vectors, epsilon=...); dptext.advise and"),
        (lambda: dptext.TEM(VECTORS, epsilom=5.0), "TEM has no argument epsilom: did you mean 'epsilon'?"),
        (lambda: dptext.PrivUnit(8.0), "PrivUnit takes epsilon by name: PrivUnit(epsilon=8.0)"),
        (lambda: dptext.privatize(["a"], "tem", 5), "epsilon by name: privatize(texts, mechanism, epsilon=5)"),
        (
            lambda: dptext.TEM(VECTORS, epsilon=5.0).sample(["tea"], 1),
            "sample takes seed by name: sample(words, seed=1",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_answered_with_one_that_does(call, answer):
    with pytest.raises(TypeError, match=re.escape(answer)) as caught:
        call()
    assert isinstance(caught.value, ParameterError)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(dptext.__all__))
def test_every_public_name_answers_a_positional_call(name):
    public = getattr(dptext, name)
    try:
        parameters = inspect.signature(public).parameters.values()
    except ValueError:
        return
    by_name = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    if not by_name or any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return
    by_place = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    with pytest.raises(ParameterError, match=rf"^{name} takes \w+ by name: {name}\(.*=0\.125\)$"):
        public(*[None] * len(by_place), 0.125)


def test_an_error_within_a_call_that_fits_stays_as_it_is():
    def wrong(_: object) -> float:
        return len(5)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len") as caught:
        dptext.privatize_bags(wrong(None), dptext.TEM(VECTORS, epsilon=5.0))
    assert not isinstance(caught.value, ParameterError)


def test_what_answers_is_still_itself():
    for each in (dptext.TEM, dptext.privatize, dptext.WordPrivatizer, dptext.PrivUnit(epsilon=2.0)):
        assert pickle.loads(pickle.dumps(each)) == each
    assert list(inspect.signature(dptext.TEM).parameters)[:2] == ["vectors", "epsilon"]
    assert "epsilon" in inspect.signature(dptext.privatize).parameters
    assert dptext.privatize.__doc__.startswith("Replace every text")
    assert dptext.WordPrivatizer(epsilon=2.0).get_params()["epsilon"] == 2.0
    assert isinstance(dptext.TEM(VECTORS, epsilon=2.0), dptext.TEM)


def test_a_name_by_its_place_is_answered_with_what_takes_a_name():
    mechanism = dptext.TEM(VECTORS, epsilon=5.0)
    with pytest.raises(
        ParameterError, match=r"^privatize takes text by name: privatize\(texts, mechanism, text=...\)$"
    ):
        dptext.privatize(["a"], mechanism, "review")
