"""The ledger: it never lets a unit overspend, never refuses what fits, and no accident leaves it wrong."""

import contextlib
import math
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
import unicodedata
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.ledger import store as ledger_store
from dptext.ledger.ledger import Ledger
from dptext.ledger.store import TEXT, TOLERANCE, Currency, Limits, in_digits, in_digits_at_least, price
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    MetricDP,
    NoGuarantee,
    PureDP,
    Relation,
    Trust,
    Unit,
    approx_from_zcdp,
    for_group,
)
from dptext.privacy.neighbours import WordsChanged
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import PrivacyStatement, new_release_id

SECRET = "Zebulon lied"


@pytest.fixture
def make(tmp_path):
    def create(**limits):
        return Ledger.create(tmp_path / f"{new_release_id()}.ledger", **limits)

    return create


def reserve(ledger, name, statement, keys, by=TEXT, unit=Unit.DOCUMENT, relation=Relation.SUBSTITUTION):
    return ledger.reserve(name, statement, keys, by=by, unit=unit, relation=relation)


def statement(guarantee=None, **changes):
    return PrivacyStatement(
        guarantee=guarantee or PureDP(1.0),
        unit=Unit.DOCUMENT,
        relation=Relation.SUBSTITUTION,
        condition="any two documents",
        trust=Trust.LOCAL,
        mechanism="TEM",
    ).replace(**changes)


# -- what a release costs -----------------------------------------------------------------------------------------


def test_epsilons_add_up_and_the_one_too_many_is_refused_whole(make):
    ledger = make(epsilon=10)
    for name in ("a", "b"):
        reserve(ledger, name, PureDP(5), ["x", "y"]).settle()
    assert (ledger.left("x").spent, ledger.left("x").left) == (10, 0)
    with pytest.raises(RefusedError) as caught:
        reserve(ledger, "c", PureDP(5), [SECRET, "x", "y", "z"])
    assert str(caught.value) == (
        "the ledger refuses: 2 of 4 texts would be overspent (limit: epsilon 10, already spent: at most 10, "
        "this release costs 5, so 0 is left for some); nothing was released"
    )
    assert ledger.left("z").spent == 0
    assert [release.release_id for release in ledger.releases()] == ["a", "b"]
    assert reserve(ledger, "c", PureDP(5), ["z"]).units == 1
    with pytest.raises(RefusedError, match=r"nothing was released .1 pending: .* until it is settled or you void it"):
        reserve(ledger, "d", PureDP(5), ["x"])


def test_decimal_prices_that_fit_exactly_are_not_refused(make):
    ledger = make(epsilon=0.3)
    for name, epsilon in (("a", 0.1), ("b", 0.2)):  # as floats the sum is 0.30000000000000004
        reserve(ledger, name, PureDP(epsilon), ["x"])
    assert ledger.left("x").left == 0
    with pytest.raises(RefusedError, match=r"already spent: at most 0.3, this release costs 0.001"):
        reserve(ledger, "c", PureDP(0.001), ["x"])
    ledger = make(epsilon=1)
    for n in range(10):
        reserve(ledger, f"r{n}", PureDP(0.1), ["x"])
    with pytest.raises(RefusedError):
        reserve(ledger, "more", PureDP(1e-6), ["x"])


def test_the_number_of_releases_is_a_limit_of_its_own(make):
    ledger = make(releases=2)
    for name in ("a", "b"):
        reserve(ledger, name, PureDP(1000), ["x"])
    with pytest.raises(RefusedError, match=r"limit: releases 2, already spent: at most 2, this release costs 1, so 0"):
        reserve(ledger, "c", PureDP(0), ["x", "y"])
    assert ledger.left("x").left is None
    assert ledger.left("x").releases_left == 0


def test_deltas_add_up(make):
    ledger = make(epsilon=10, delta=1e-6)
    reserve(ledger, "a", ApproxDP(1, 6e-7), ["x"])
    reserve(ledger, "b", PureDP(1), ["x"])
    with pytest.raises(RefusedError, match="limit: delta 1e-06, already spent: at most 6e-07, this release costs 5e-0"):
        reserve(ledger, "c", ApproxDP(1, 5e-7), ["x", "y"])
    reserve(ledger, "d", ApproxDP(1, 4e-7), ["x"])
    assert ledger.left("x").delta_left == 0
    assert ledger.left("x").left == 7


def test_a_delta_needs_a_ledger_with_a_delta(make):
    ledger = make(epsilon=10)
    with pytest.raises(RefusedError, match="this release has a delta, and the ledger was made without one"):
        reserve(ledger, "a", ApproxDP(1, 1e-9), ["x"])
    with pytest.raises(RefusedError, match="zCDP has an epsilon only at a delta"):
        reserve(ledger, "a", ZCDP(0.1), ["x"])
    reserve(ledger, "a", ApproxDP(1, 0.0), ["x"])
    reserve(make(releases=2), "a", ApproxDP(1, 1e-3), ["x"])


def test_zcdp_is_limited_by_the_epsilon_of_its_sum(make):
    ledger = make(epsilon=2, delta=1e-6)
    cost = Limits(epsilon=2, delta=1e-6).ceiling(Currency.RHO).cost
    assert approx_from_zcdp(ZCDP(cost), delta=1e-6).epsilon <= 2
    assert approx_from_zcdp(ZCDP(cost * (1 + 1e-9)), delta=1e-6).epsilon > 2
    for n in range(4):
        reserve(ledger, f"r{n}", ZCDP(cost / 4), ["x"])
    with pytest.raises(RefusedError, match=r"limit: rho 0.067"):
        reserve(ledger, "more", ZCDP(cost / 1000), ["x"])


def test_metric_guarantees_add_up_whatever_their_largest_distance(make):
    ledger = make(epsilon=10)
    reserve(ledger, "a", MetricDP(5, "euclidean", 7.0, "GloVe"), ["x"])
    reserve(ledger, "b", MetricDP(5, "euclidean", None, "GloVe"), ["x"])
    with pytest.raises(RefusedError, match="limit: epsilon per unit of euclidean distance 10"):
        reserve(ledger, "c", MetricDP(1, "euclidean", 7.0, "GloVe"), ["x"])


@pytest.mark.parametrize("guarantee", [PureDP(0.7), ApproxDP(0.7, 1e-6), ZCDP(0.1)], ids=str)
def test_a_user_pays_for_the_group_of_his_documents(make, guarantee):
    ledger = make(releases=9)
    got = reserve(ledger, "a", guarantee, ["u", "v", "u", "u"], by="author")
    assert (got.units, got.documents) == (2, 4)
    assert (ledger.left("u").spent, ledger.left("u").delta) == price(for_group(guarantee, 3), 1)
    assert (ledger.left("v").spent, ledger.left("v").delta) == price(guarantee, 1)


def test_a_user_pays_once_where_distances_add_up_or_the_promise_is_for_users(make):
    ledger = make(epsilon=10)
    reserve(ledger, "a", MetricDP(5, "euclidean"), ["u"] * 7, by="author")
    assert ledger.left("u").spent == 5
    ledger = make(epsilon=10)
    reserve(ledger, "a", PureDP(5), ["u"] * 7, by="author", unit=Unit.USER)
    assert ledger.left("u").spent == 5


def test_a_promise_for_few_texts_of_a_person_is_not_charged_for_many(make):
    ledger = make(epsilon=10)
    for_three = statement_for_user(statement(PureDP(1.0)), 3)
    with pytest.raises(RefusedError, match="at most 3 texts in the release, and 1 of them have more"):
        ledger.reserve("a", for_three, ["u"] * 3 + ["v"] * 50, by="author")
    assert ledger.releases() == []
    ledger.reserve("a", for_three, ["u"] * 3 + ["v"] * 2, by="author")
    assert (ledger.left("u").spent, ledger.left("v").spent) == (3.0, 3.0)
    assert ledger.reserve("a", for_three, ["u"] * 3 + ["v"] * 2, by="author").resumed


def test_a_promise_for_texts_that_differ_in_some_words_is_refused(make):
    of_some = statement().replace(condition=statement().condition.and_(WordsChanged(1)))
    with pytest.raises(RefusedError, match="some words only"):
        make(epsilon=10).reserve("a", of_some, ["x"], by=TEXT)


def test_equal_texts_pay_once_a_release(make):
    ledger = make(epsilon=10)
    reserve(ledger, "a", PureDP(4), ["ok"] * 5)
    reserve(ledger, "b", PureDP(4), ["ok"] * 3)
    assert ledger.left("ok").spent == 8


def test_users_with_different_numbers_of_documents_are_refused_by_their_own_price(make):
    ledger = make(epsilon=10)
    reserve(ledger, "a", PureDP(1), ["u"] * 8 + ["v"] * 2, by="author")
    with pytest.raises(RefusedError) as caught:
        reserve(ledger, "b", PureDP(1), ["u"] * 3 + ["v"] * 9 + ["w"], by="author")
    assert "2 of 3 values of 'author' would be overspent" in str(caught.value)
    assert "already spent: at most 8, this release costs at most 9, so 2 is left for some" in str(caught.value)
    reserve(ledger, "b", PureDP(1), ["u"] * 2 + ["v"] * 8 + ["w"], by="author")


# -- what does not add up -----------------------------------------------------------------------------------------


FIRST = {"statement": MetricDP(1, "euclidean", 3.0, "GloVe"), "by": "author"}
OTHERS = {
    "currency": (
        {"statement": PureDP(1)},
        "counts in epsilon per unit of euclidean distance, this release in epsilon,",
    ),
    "rho": ({"statement": ZCDP(1e-3)}, "this release in rho,"),
    "metric": ({"statement": MetricDP(1, "angular", 3.0, "GloVe")}, "this release in epsilon per unit of angular"),
    "space": (
        {"statement": MetricDP(1, "euclidean", 3.0, "fastText")},
        "in the space GloVe, this release in the space",
    ),
    "unit": ({"unit": Unit.USER}, "for the unit document, this release for the unit user"),
    "relation": ({"relation": Relation.ADD_REMOVE}, "under the relation substitution, this release under"),
    "text": ({"by": TEXT}, "by the values of 'author', this release by the texts"),
    "column": ({"by": "id"}, "by the values of 'author', this release by the values of 'id'"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_the_first_release_fixes_what_adds_up(make, case):
    changes, message = OTHERS[case]
    ledger = make(epsilon=10, delta=1e-6)
    first = reserve(ledger, "a", keys=["x"], **FIRST)
    with pytest.raises(RefusedError, match="use another ledger") as caught:
        reserve(ledger, "b", keys=["x"], **{**FIRST, **changes})
    assert message in str(caught.value)
    first.void()
    reserve(ledger, "b", keys=["x"], **{**FIRST, **changes})  # nothing is left of the first


def bad(name, statement, keys=("x",), **changes):
    return pytest.param({"release_id": "a", "statement": statement, "keys": keys, "by": TEXT, **changes}, id=name)


WHO = {"unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION}


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (*bad("nothing", NoGuarantee("a seed"), **WHO).values, RefusedError, "a release without a guarantee"),
        (*bad("infinite", PureDP(math.inf), **WHO).values, RefusedError, "costs infinitely much for 1 documents"),
        (
            *bad("infinite group", PureDP(1e308), keys=["x"] * 20, **{**WHO, "by": "id"}).values,
            RefusedError,
            "infinitely much for 20 documents",
        ),
        (*bad("word", PureDP(1), **{**WHO, "unit": Unit.WORD}).values, RefusedError, "for the unit word"),
        (*bad("example", PureDP(1), **{**WHO, "unit": "example"}).values, RefusedError, "for the unit example"),
        (*bad("seed", statement(seeded=True)).values, RefusedError, "refuses a seeded release"),
        (*bad("no unit", PureDP(1)).values, ParameterError, "has no privacy unit"),
        (*bad("twice", statement(), **WHO).values, ParameterError, "stand in the statement"),
        (*bad("unit", PureDP(1), **{**WHO, "unit": "cat"}).values, ParameterError, "unit must be one of 'word', "),
        (
            *bad("relation", PureDP(1), **{**WHO, "relation": "c"}).values,
            ParameterError,
            "relation must be one of",
        ),
        (*bad("statement", 5.0, **WHO).values, ParameterError, "a PrivacyStatement or a guarantee, got float"),
        (*bad("user by text", PureDP(1), **{**WHO, "unit": Unit.USER}).values, ParameterError, "name the column"),
        (*bad("by", PureDP(1), **{**WHO, "by": ""}).values, ParameterError, "by must be 'text' or the name"),
        (*bad("name", PureDP(1), **{**WHO, "release_id": "a b"}).values, ParameterError, "release_id must be"),
        (*bad("no name", PureDP(1), **{**WHO, "release_id": None}).values, ParameterError, "release_id must be"),
        (*bad("number", PureDP(1), keys=["a", 7], **WHO).values, ParameterError, "row 2: a key must be a string, got"),
        (*bad("null", PureDP(1), keys=[None], **WHO).values, ParameterError, "row 1: a key must be a string, got None"),
    ],
)
def test_what_has_no_price_or_no_sense_is_refused_and_leaves_no_trace(make, arguments, kind, message):
    ledger = make(releases=5)
    with pytest.raises(kind, match=message):
        ledger.reserve(**arguments)
    assert ledger.releases() == []
    assert ledger.summary().units == 0


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "needs a limit"),
        ({"delta": 1e-6}, "needs a limit"),
        ({"delta": 1e-6, "releases": 3}, "a delta limits nothing without an epsilon"),
        ({"epsilon": 0}, "epsilon must be a number above 0 and at most 1e[+]300"),
        ({"epsilon": -1.0}, "epsilon must be a number above 0"),
        ({"epsilon": math.inf}, "epsilon must be a number above 0 and at most 1e[+]300"),
        ({"epsilon": math.nan}, "epsilon must be a number above 0 and at most 1e[+]300"),
        ({"epsilon": 10**400}, "epsilon must be a number above 0 and at most 1e[+]300"),
        ({"epsilon": "3"}, "epsilon must be a number"),
        ({"epsilon": 1, "delta": 1.0}, "delta must be a number above 0 and below 1"),
        ({"epsilon": 1, "delta": 0}, "delta must be a number above 0"),
        ({"releases": 0}, "releases must be an integer from 1 to 2,147,483,647, got 0"),
        ({"releases": 1.5}, "releases must be an integer"),
        ({"releases": True}, "releases must be an integer"),
    ],
)
def test_limits_that_limit_nothing_are_refused_and_no_file_is_made(tmp_path, limits, message):
    with pytest.raises(ParameterError, match=message):
        Ledger.create(tmp_path / "x", **limits)
    assert list(tmp_path.iterdir()) == []


# -- reserve, settle, void ----------------------------------------------------------------------------------------


def test_a_pending_release_counts_until_it_is_voided(make):
    ledger = make(epsilon=5)
    first = reserve(ledger, "a", PureDP(5), ["x", "y"])
    assert ledger.pending() == ["a"]
    with pytest.raises(RefusedError):
        reserve(ledger, "b", PureDP(5), ["y"])
    first.void()
    assert ledger.state("a") is None
    assert ledger.left("x").spent == 0
    reserve(ledger, "b", PureDP(5), ["y"])


def test_a_released_one_cannot_be_voided_nor_reserved_again(make):
    ledger = make(epsilon=50)
    reserve(ledger, "a", PureDP(5), ["x"]).settle()
    ledger.settle("a")  # twice is once
    assert ledger.state("a") == "released"
    assert ledger.pending() == []
    with pytest.raises(RefusedError, match="is out and cannot be voided"):
        ledger.void("a")
    with pytest.raises(RefusedError, match="the release a is out already"):
        reserve(ledger, "a", PureDP(5), ["x"])
    assert ledger.left("x").spent == 5


def test_a_resumed_run_reserves_again_for_nothing_and_only_the_same(make):
    ledger = make(epsilon=5)
    assert not reserve(ledger, "a", PureDP(1), ["x", "y", "x"], by="id").resumed
    for keys in (["x", "y"], ["x", "x", "x", "y"], ["x", "x", "z"], ["x", "x", "y", "z"], []):
        with pytest.raises(RefusedError, match="the release a is reserved for other rows or another guarantee"):
            reserve(ledger, "a", PureDP(1), keys, by="id")
    with pytest.raises(RefusedError, match="reserved for other rows or another guarantee"):
        reserve(ledger, "a", PureDP(2), ["x", "y", "x"], by="id")
    assert reserve(ledger, "a", PureDP(1), ["y", "x", "x"], by="id").resumed
    assert ledger.left("x").spent == 2
    assert len(ledger.releases()) == 1


def test_the_block_settles_and_an_error_leaves_the_release_pending(make):
    ledger = make(epsilon=5)
    with reserve(ledger, "a", PureDP(1), ["x"]):
        pass
    assert ledger.state("a") == "released"
    with pytest.raises(ZeroDivisionError) as caught, reserve(ledger, "b", PureDP(1), ["x"]):
        1 / 0  # noqa: B018
    assert ledger.state("b") == "pending"
    assert caught.value.__notes__[0].endswith(f"dptext ledger void {ledger.path} b")
    with pytest.raises(ZeroDivisionError), reserve(ledger, "c", PureDP(1), ["x"]) as got:
        got.settle()
        1 / 0  # noqa: B018
    assert ledger.state("c") == "released"
    with reserve(ledger, "d", PureDP(1), ["x"]) as got:
        got.void()
    assert ledger.state("d") is None


@pytest.mark.parametrize("call", ["settle", "void"])
def test_an_unknown_release_is_named(make, call):
    with pytest.raises(ParameterError, match="holds no release 'nightly': dptext ledger show lists them"):
        getattr(make(epsilon=1), call)("nightly")


def test_an_error_among_the_keys_passes_and_leaves_no_trace(make):
    ledger = make(epsilon=5)

    def keys():
        yield "x"
        raise DataError("row 2 is broken")

    with pytest.raises(DataError, match="row 2 is broken"):
        reserve(ledger, "a", PureDP(1), keys())
    assert ledger.releases() == []


def test_a_statement_brings_unit_relation_and_mechanism(make):
    ledger = make(epsilon=5)
    ledger.reserve("a", statement(MetricDP(2, "euclidean", 3.0, "GloVe")), ["x", "x"], by=TEXT)
    (release,) = ledger.releases()
    assert (release.mechanism, release.units, release.documents, release.state) == ("TEM", 1, 2, "pending")
    assert release.guarantee == MetricDP(2, "euclidean", 3.0, "GloVe")
    assert release.reserved_at.endswith("+00:00")
    assert (release.terms.unit, release.terms.relation, release.terms.by) == ("document", "substitution", "text")


def test_the_summary(make):
    ledger = make(epsilon=10, releases=5)
    empty = ledger.summary()
    assert (empty.units, empty.median, empty.highest, empty.terms) == (0, None, None, None)
    assert ledger.left("x").left == 10
    reserve(ledger, "a", PureDP(4), [f"t{n}" for n in range(10)]).settle()
    reserve(ledger, "b", PureDP(6), [f"t{n}" for n in range(3)])
    summary = ledger.summary()
    assert (summary.releases, summary.pending, summary.units, summary.exhausted) == (2, 1, 10, 3)
    assert (summary.median.spent, summary.median.left, summary.median.releases_left) == (4, 6, 4)
    assert (summary.highest.spent, summary.highest.left, summary.highest.releases_left) == (10, 0, 3)


def test_no_rows_cost_nothing(make):
    assert reserve(make(epsilon=1), "a", PureDP(5), []).units == 0


# -- who is who ---------------------------------------------------------------------------------------------------


def test_any_string_is_a_key_and_equal_ones_are_equal_in_nfc(make):
    ledger = make(epsilon=3)
    texts = ["", "é", "\ud800", "\x00", "a\nb", "x" * 10**6]
    assert reserve(ledger, "a", PureDP(3), texts).units == len(texts)
    for text in texts:
        assert ledger.left(text).left == 0
    assert ledger.left(unicodedata.normalize("NFD", "é")).left == 0
    assert ledger.left("É").left == 3
    reserve(make(epsilon=1), "a", PureDP(1), ["x"], by="\ud800 'odd'")


def test_the_file_shows_no_text_and_equal_texts_look_different_in_two_ledgers(make):
    units = []
    for _ in range(2):
        ledger = make(epsilon=3)
        reserve(ledger, "a", PureDP(3), [SECRET])
        assert SECRET.encode() not in ledger.path.read_bytes()
        with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
            units += connection.execute("SELECT unit FROM charge").fetchone()
    assert units[0] != units[1]
    assert [len(unit) for unit in units] == [16, 16]


@pytest.mark.skipif(os.name == "nt", reason="no such modes there")
def test_only_the_owner_may_read_it(tmp_path):
    before = os.umask(0)
    try:
        ledger = Ledger.create(tmp_path / "x", epsilon=1)
        reserve(ledger, "a", PureDP(1), ["x"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["x"]


# -- a model ------------------------------------------------------------------------------------------------------


EPSILONS = st.sampled_from(["0.1", "0.2", "0.3", "1", "0.7", "0.05", "2.5", "0.333333"])
RELEASES = st.tuples(EPSILONS, st.lists(st.integers(0, 4), max_size=6), st.sampled_from(["leave", "settle", "void"]))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    limit=st.sampled_from(["1", "0.3", "3.1"]),
    count=st.sampled_from([None, 3]),
    by=st.sampled_from([TEXT, "author"]),
    releases=st.lists(RELEASES, max_size=8),
)
def test_a_release_passes_if_and_only_if_the_exact_sums_fit(limit, count, by, releases):
    spent: dict[int, list[Fraction]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "x", epsilon=float(limit), releases=count)
        for number, (epsilon, units, then) in enumerate(releases):
            times = {unit: 1 if by == TEXT else units.count(unit) for unit in units}
            after = {unit: [*spent.get(unit, []), k * Fraction(epsilon)] for unit, k in times.items()}
            fits = all(sum(entry) <= Fraction(limit) and len(entry) <= (count or 99) for entry in after.values())
            try:
                got = reserve(ledger, f"r{number}", PureDP(float(epsilon)), map(str, units), by=by)
            except RefusedError as refusal:
                assert not fits
                over = [u for u, entry in after.items() if sum(entry) > Fraction(limit) or len(entry) > (count or 99)]
                assert f"{len(over)} of {len(times)} " in str(refusal)
                continue
            assert fits
            if then == "void":
                got.void()
            else:
                spent |= after
                if then == "settle":
                    got.settle()
        for unit in range(5):
            balance = ledger.left(str(unit))
            assert balance.spent == pytest.approx(float(sum(spent.get(unit, []))), abs=1e-12)
            assert balance.releases == len(spent.get(unit, []))
            assert balance.spent <= float(limit) * (1 + TOLERANCE)


@given(st.floats(1e-12, 1e12))
def test_amounts_are_never_understated_beyond_the_tolerance(value):
    assert float(in_digits(value)) >= value * (1 - 2 * TOLERANCE)
    assert float(in_digits_at_least(value)) <= value * (1 + 2 * TOLERANCE)
    assert float(in_digits(value)) == pytest.approx(value, rel=2e-3)
    assert float(in_digits_at_least(value)) == pytest.approx(value, rel=2e-3)


# -- other processes, and sudden deaths ----------------------------------------------------------------------------


def run_script(folder, script):
    """A process without threads that forks: many real processes for one start-up."""
    head = """
        import os, random, signal, sys, time
        from dptext.errors import RefusedError
        from dptext.privacy.guarantee import PureDP
        from dptext.ledger.ledger import Ledger
        from dptext.privacy.guarantee import Relation, Unit

        os.chdir(sys.argv[1])

        def reserve(ledger, name, keys, epsilon=1.0):
            who = {"by": "id", "unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION}
            return ledger.reserve(name, PureDP(epsilon), keys, **who)

        def child(work):
            pid = os.fork()
            if pid == 0:
                try:
                    os._exit(work())
                finally:
                    os._exit(99)
            return pid
    """
    code = textwrap.dedent(head) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, folder], capture_output=True, text=True, timeout=1800
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_eight_processes_exactly_as_many_win_as_fit(tmp_path):
    out = run_script(
        tmp_path,
        """
        for round in range(12):
            fit = 1 + round % 3
            ledger = Ledger.create(f"{round}", epsilon=fit)
            start, go = os.pipe()

            def work(number):
                os.close(go)
                os.read(start, 1)  # until the parent closes its end
                try:
                    # the same rows in another order, and some of each process's own
                    rows = [str(n) for n in range(300)] + [f"{number}-{n}" for n in range(50)]
                    reserve(ledger, f"p{number}", random.sample(rows, len(rows)))
                    return 0
                except RefusedError:
                    return 3

            pids = [child(lambda: work(number)) for number in range(8)]
            os.close(start); os.close(go)
            codes = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)
            assert codes == [0] * fit + [3] * (8 - fit), codes
            assert ledger.summary().units == 300 + 50 * fit
            assert ledger.left("7").spent == fit
        print("done")
        """,
    )
    assert out == "done\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_many_processes_wait_for_each_other_and_none_fails(tmp_path):
    out = run_script(
        tmp_path,
        """
        from dptext.ledger import store as ledger_store

        ledger_store._SECONDS_BETWEEN_SIGNALS = 0.005  # in one go: most statements then wait several times
        Ledger.create("x", epsilon=1000)

        def work(number):
            for n in range(10):
                reserve(Ledger("x"), f"{number}-{n}", map(str, range(2000))).settle()
            return 0

        pids = [child(lambda: work(number)) for number in range(8)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        summary = Ledger("x").summary()
        print(codes, summary.releases, summary.pending, Ledger("x").left("7").spent)
        """,
    )
    assert out == f"{[0] * 8} 80 0 80.0\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_kill_at_any_moment_leaves_a_ledger_that_adds_up(tmp_path):
    """Killed after a number of SQLite's own steps, and after a share of the time that a release takes; neither depends
    on how fast the machine is. (Kills at single operations on files are for tests/faults.)"""
    out = run_script(
        tmp_path,
        """
        import sqlite3
        from dptext.ledger import store as ledger_store

        ledger = Ledger.create("x", epsilon=1e6)
        ledger_store._CACHE_KIB = 64  # small, so that a reservation writes to the file before it commits
        ledger_store._STEPS_BETWEEN_SIGNALS = 2000
        draw = random.Random(7)

        def say(line):
            with open("said", "a") as stream:
                stream.write(line + "\\n")

        def releases(round, after=lambda: None):
            for n in range(3):
                name = f"{round}-{n}"
                got = reserve(ledger, name, (str(draw.randrange(5000)) for _ in range(2000)))
                say(f"{name} reserved")
                if n == 0:
                    got.settle()
                    say(f"{name} released")
                elif n == 1:
                    say(f"{name} voiding")
                    got.void()
                after()
            return 0

        def count_steps(ends):
            steps = 0

            def step():
                nonlocal steps
                steps += 1
                if steps == ends:
                    os.kill(os.getpid(), signal.SIGKILL)
                return 0

            ledger_store._hear_signals = step
            return lambda: steps

        def check():
            found = {each.release_id: each for each in ledger.releases()}
            said = {}
            for line in open("said"):
                name, what = line.split()
                said[name] = what
            for name, what in said.items():
                if what == "released":
                    assert found[name].state == "released"
                elif what == "reserved":
                    assert name in found

        def measured():
            steps = count_steps(ends=0)
            releases("whole")
            print(steps(), flush=True)
            return 0

        os.dup2(os.open("steps", os.O_CREAT | os.O_WRONLY, 0o600), 1)  # of all children
        assert os.waitpid(child(measured), 0)[1] == 0
        whole = int(open("steps").read())
        assert whole > 100, whole  # fine enough for moments in the middle of a statement
        hot = 0
        for round in range(45):
            ends = draw.randrange(1, whole)

            def killed():
                count_steps(ends)
                return releases(round)

            os.waitpid(child(killed), 0)
            hot += os.path.exists("x-journal")
            check()
        for round in range(45, 55):
            ready, tell = os.pipe()

            def going_on():
                for again in range(10_000):
                    releases(f"{round}-{again}", after=lambda: os.write(tell, b"."))

            start = time.monotonic()
            pid = child(going_on)
            for _ in range(1 + round % 3):
                assert os.read(ready, 1) == b"."
            time.sleep((time.monotonic() - start) * random.random() / 2)
            os.kill(pid, signal.SIGKILL)
            assert os.waitpid(pid, 0)[1] == signal.SIGKILL
            os.close(ready); os.close(tell)
            check()
        connection = sqlite3.connect("x")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counted = connection.execute(
            "SELECT r.id, r.units, r.documents, count(c.unit), sum(c.documents) FROM release r "
            "JOIN charge c ON c.release = r.number GROUP BY r.id"
        ).fetchall()
        assert len(counted) == len(ledger.releases()) > 20, len(counted)
        for _, units, documents, charged, sums in counted:
            assert (units, documents) == (charged, sums)
        orphans = "SELECT count(*) FROM charge WHERE release NOT IN (SELECT number FROM release)"
        assert connection.execute(orphans).fetchone() == (0,)
        connection.close()
        for each in ledger.releases():
            if each.state == "pending":
                ledger.void(each.release_id)
        assert reserve(ledger, "after", ["1"]).units == 1
        assert hot >= 1, "no death came in the middle of a transaction"
        """,
    )
    assert out == ""


def test_threads_may_share_a_ledger(make):
    ledger = make(releases=3)
    won = []

    def work(number):
        with contextlib.suppress(RefusedError):
            won.append(reserve(ledger, f"t{number}", PureDP(1), ["x"]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 3


# -- files that fail ----------------------------------------------------------------------------------------------


def test_a_missing_file_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(StorageError) as caught:
        Ledger(tmp_path / "x.ledger")
    assert "there is no ledger" in str(caught.value)
    assert f"dptext ledger create {tmp_path / 'x.ledger'} --epsilon 10" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_never_overwritten(tmp_path):
    (tmp_path / "x").write_text("precious")
    with pytest.raises(StorageError, match="is there already: a ledger is never overwritten"):
        Ledger.create(tmp_path / "x", epsilon=1)
    assert (tmp_path / "x").read_text() == "precious"


@pytest.mark.skipif(os.name == "nt", reason="not file names there")
def test_odd_file_names(tmp_path):
    for name in ("a b?mode=ro#x%41.ledger", "-", "名", os.fsdecode(b"\xff")):
        ledger = Ledger.create(tmp_path / name, epsilon=1)
        assert reserve(ledger, "a", PureDP(1), ["x"]).units == 1
    assert len(os.listdir(tmp_path)) == 4


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StorageError, match=r"cannot write .*: No such file or directory"):
        Ledger.create(tmp_path / "nowhere" / "x", epsilon=1)
    with pytest.raises(StorageError, match="is a folder: name the ledger in it"):
        Ledger(tmp_path)


def another_version(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def without_its_head(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM ledger")
        connection.commit()


def without_its_tables(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE ledger")


def with_mad_limits(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE ledger SET epsilon = -1")
        connection.commit()


def another_database(path):
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE precious (a)")


def with_holes(path):
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_text("name,text\n" * 1000), "is no ledger, or a damaged one"),
        (lambda path: path.write_bytes(b""), "is no ledger: make one with"),
        (another_version, "is a ledger of version 99: use the dptext"),
        (another_database, "is no ledger: make one with"),
        (without_its_head, "is no ledger, or a damaged one"),
        (without_its_tables, "is no ledger, or a damaged one"),
        (with_mad_limits, "is no ledger, or a damaged one"),
        (with_holes, "is no ledger, or a damaged one"),
        (lambda path: os.truncate(path, 5000), "is no ledger, or a damaged one"),
    ],
)
def test_what_is_no_ledger_is_said_in_one_line(make, spoil, message):
    path = make(epsilon=1).path
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(DataError, match=message) as caught:
        Ledger(path).summary()
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_a_release_that_cannot_be_read_is_damage(make):
    ledger = make(epsilon=5)
    reserve(ledger, "a", PureDP(1), ["x"])
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("""UPDATE release SET about = '{"guarantee": 3}'""")
        connection.commit()
    for call in (ledger.releases, ledger.summary, lambda: ledger.left("x")):
        with pytest.raises(DataError, match="damaged"):
            call()


def change(ledger, *statements):
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
        connection.commit()


def readings(ledger):
    """All that look at what was spent, a new reservation first."""
    yield lambda: reserve(ledger, "new", PureDP(1.0), ["x"], by=ledger.terms().by)
    yield from (ledger.releases, ledger.summary, lambda: ledger.left("x"))


@pytest.mark.parametrize("guarantee", [PureDP(1.5), ApproxDP(0.7, 1e-7)], ids=str)
def test_prices_follow_from_the_promises_in_the_file(make, guarantee):
    ledger = make(epsilon=50, delta=1e-3)
    reserve(ledger, "a", guarantee, ["x", "y", "x"], by="id").settle()
    for read in readings(ledger):
        read()
    ledger.void("new")
    before = ledger.left("x").spent
    numbers = [f'"epsilon": {factor * guarantee.epsilon}' for factor in (1, 2)]
    change(ledger, ("UPDATE release SET about = replace(about, ?, ?)", numbers))
    assert ledger.left("x").spent == pytest.approx(2 * before)


@pytest.mark.parametrize(
    "deep",
    ["[" * 100_000, '{"guarantee": ' * 100_000, '{"guarantee": ' + "9" * 6000 + "}"],
    ids=["lists", "objects", "digits"],
)
def test_json_that_nobody_wrote_is_damage_and_one_line(make, deep):
    ledger = make(epsilon=50)
    reserve(ledger, "a", PureDP(1), ["x"])
    change(ledger, ("UPDATE release SET about = ?", (deep,)))
    for read in readings(ledger):
        with pytest.raises(DataError, match="a damaged one") as caught:
            read()
        assert len(str(caught.value)) < 300


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_stuck_process_is_waited_for_and_then_named(make, begin):
    ledger = make(epsilon=5)
    hasty = Ledger(ledger.path, patience=0.0)
    stuck = sqlite3.connect(ledger.path, isolation_level=None)
    stuck.execute(begin)
    try:
        with pytest.raises(StorageError, match=r"another process holds the ledger .*: wait"):
            reserve(hasty, "a", PureDP(1), ["x"])
        waiting = threading.Thread(target=lambda: reserve(ledger, "b", PureDP(1), ["x"]))
        waiting.start()
        waiting.join(1.5)
        assert waiting.is_alive()
        stuck.execute("ROLLBACK")
        waiting.join()
    finally:
        stuck.close()
    assert ledger.state("b") == "pending"


@pytest.mark.slow
def test_every_statement_waits_for_the_locks_of_others(make, monkeypatch):
    """Before each statement another connection takes the file, where it can, and lets go a little later."""
    path = make(epsilon=50).path
    met = 0

    def take():
        nonlocal met
        other = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            other.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:  # the statement runs under a lock of its own
            other.close()
            return contextlib.nullcontext()
        met += 1
        release = threading.Timer(0.02, other.close)
        release.start()
        return contextlib.closing(types.SimpleNamespace(close=release.join))

    class Disturbed(ledger_store.Connection):
        def execute(self, *arguments):
            with take():
                return super().execute(*arguments)

        def executemany(self, *arguments):
            with take():
                return super().executemany(*arguments)

    monkeypatch.setattr(ledger_store, "Connection", Disturbed)
    ledger = Ledger(path)
    for name in ("a", "b"):
        reserve(ledger, name, PureDP(1), ["x", "y", "x"], by="id").settle()
    reserve(ledger, "c", PureDP(1), ["x"], by="id").void()
    assert (ledger.summary().units, ledger.left("x").spent, len(ledger.releases())) == (2, 4, 2)
    assert met > 50


@pytest.fixture
def as_nobody(tmp_path):
    """File permissions do not stop root."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        if root:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(folder, 0o777)


@pytest.mark.skipif(os.name == "nt", reason="no such modes there")
def test_files_and_folders_that_may_not_be_used(as_nobody):
    ledger = Ledger.create(as_nobody / "x", epsilon=5)
    ledger.path.chmod(0o400)
    with pytest.raises(StorageError, match=r"readonly database|unable to open database file"):
        reserve(ledger, "a", PureDP(1), ["x"])
    assert Ledger(ledger.path).releases() == []  # reading is allowed
    ledger.path.chmod(0o000)
    with pytest.raises(StorageError, match="unable to open database file"):
        Ledger(ledger.path)
    ledger.path.chmod(0o600)


@pytest.mark.skipif(os.name == "nt", reason="no such modes there")
def test_a_read_only_folder(tmp_path):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        ledger = Ledger.create(path, epsilon=5)
        root = os.geteuid() == 0
        if root:
            os.chown(path, 65534, 65534)
        os.chmod(folder, 0o755 if root else 0o555)
        if root:
            os.seteuid(65534)
        try:
            with pytest.raises(StorageError, match=r"readonly database|unable to open database file"):
                reserve(ledger, "a", PureDP(1), ["x"])
            with pytest.raises(StorageError, match=r"cannot write .*: Permission denied"):
                Ledger.create(Path(folder) / "y", epsilon=5)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(folder, 0o755)


@pytest.mark.skipif(os.name == "nt", reason="no such limit there")
def test_a_full_disk_changes_nothing(make, monkeypatch):
    import resource

    ledger = make(epsilon=5)
    monkeypatch.setattr(ledger_store, "_CACHE_KIB", 64)
    before = ledger.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))  # no file may grow beyond it
    try:
        with pytest.raises(StorageError, match=r"disk I/O error|is full.*; nothing was changed"):
            reserve(ledger, "a", PureDP(1), map(str, range(50_000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ledger.path.read_bytes() == before
    assert reserve(ledger, "a", PureDP(1), map(str, range(50_000))).units == 50_000


def test_a_half_made_ledger_is_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_store, "_SCHEMA", ("CREATE nonsense",))
    with pytest.raises(DataError):
        Ledger.create(tmp_path / "x", epsilon=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_is_heard_inside_a_long_statement(make):
    ledger = make(epsilon=5)
    endless = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is deaf to it
    try:
        with pytest.raises(KeyboardInterrupt), ledger_store.opened(ledger.path, 1.0) as connection:
            connection.execute(endless).fetchone()
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_message_holds_a_key(make):
    ledger = make(epsilon=1)
    reserve(ledger, "a", PureDP(1), [SECRET])
    for keys in ([SECRET], [SECRET, None], [SECRET, SECRET.encode()]):
        with pytest.raises((RefusedError, ParameterError)) as caught:
            reserve(ledger, "b", PureDP(1), keys)
        error = caught.value
        while error is not None:
            assert SECRET not in str(error)
            error = error.__cause__ or error.__context__
