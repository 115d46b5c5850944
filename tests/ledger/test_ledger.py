"""The ledger: it never lets a unit overspend, never refuses what fits, and no accident leaves it wrong."""

import contextlib
import math
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
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
from secrecy import assert_error

SECRET = "Zebulon lied"
WHO = {"unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION}


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


# -- prices -------------------------------------------------------------------------------------------------------


def test_epsilons_add_up_and_a_release_that_does_not_fit_is_refused_whole(make):
    ledger = make(epsilon=10)
    for name in ("a", "b"):
        reserve(ledger, name, PureDP(5), ["x", "y"]).settle()
    assert (ledger.left("x").spent, ledger.left("x").left) == (10, 0)
    assert assert_error(RefusedError, lambda: reserve(ledger, "c", PureDP(5), [SECRET, "x", "y", "z"])) == (
        "the ledger refuses (nothing was released): 2 of 4 texts would be overspent (limit: epsilon 10, already "
        "spent: at most 10, this release costs 5, so 0 is left for some)"
    )
    assert ledger.left("z").spent == 0 and [release.release_id for release in ledger.releases()] == ["a", "b"]
    assert reserve(ledger, "c", PureDP(5), ["z"]).units == 1
    message = "is left for some) (1 pending: a started release stays charged until it is settled or voided"
    assert_error(RefusedError, lambda: reserve(ledger, "d", PureDP(5), ["x"]), message)
    assert reserve(make(epsilon=1), "a", PureDP(5), []).units == 0


def test_decimal_prices_that_fit_exactly_pass_and_a_little_more_does_not(make):
    ledger = make(epsilon=0.3)
    for name, epsilon in (("a", 0.1), ("b", 0.2)):  # as floats the sum is 0.30000000000000004
        reserve(ledger, name, PureDP(epsilon), ["x"])
    assert ledger.left("x").left == 0
    message = "already spent: at most 0.3, this release costs 0.001"
    assert_error(RefusedError, lambda: reserve(ledger, "c", PureDP(0.001), ["x"]), message)
    ledger = make(epsilon=1)
    for n in range(10):
        reserve(ledger, f"r{n}", PureDP(0.1), ["x"])
    assert_error(RefusedError, lambda: reserve(ledger, "more", PureDP(1e-6), ["x"]), "would be overspent")


def test_numbers_of_releases_and_deltas_have_limits_of_their_own(make):
    ledger = make(releases=2)
    for name in ("a", "b"):
        reserve(ledger, name, PureDP(1000), ["x"])
    message = "limit: releases 2, already spent: at most 2, this release costs 1, so 0"
    assert_error(RefusedError, lambda: reserve(ledger, "c", PureDP(0), ["x", "y"]), message)
    assert (ledger.left("x").left, ledger.left("x").releases_left) == (None, 0)
    reserve(make(releases=2), "a", ApproxDP(1, 1e-3), ["x"])
    ledger = make(epsilon=10, delta=1e-6)
    reserve(ledger, "a", ApproxDP(1, 6e-7), ["x"])
    reserve(ledger, "b", PureDP(1), ["x"])
    message = "limit: delta 1e-06, already spent: at most 6e-07, this release costs 5e-0"
    assert_error(RefusedError, lambda: reserve(ledger, "c", ApproxDP(1, 5e-7), ["x", "y"]), message)
    reserve(ledger, "d", ApproxDP(1, 4e-7), ["x"])
    assert (ledger.left("x").delta_left, ledger.left("x").left) == (0, 7)
    without = make(epsilon=10)
    assert_error(RefusedError, lambda: reserve(without, "a", ApproxDP(1, 1e-9), ["x"]), "this release has a delta")
    assert_error(RefusedError, lambda: reserve(without, "a", ZCDP(0.1), ["x"]), "zCDP has an epsilon only at a delta")
    reserve(without, "a", ApproxDP(1, 0.0), ["x"])


def test_zcdp_is_limited_by_the_epsilon_of_its_sum_and_metric_guarantees_by_epsilon_per_distance(make):
    ledger = make(epsilon=2, delta=1e-6)
    cost = Limits(epsilon=2, delta=1e-6).ceiling(Currency.RHO).cost
    assert approx_from_zcdp(ZCDP(cost), delta=1e-6).epsilon <= 2
    assert approx_from_zcdp(ZCDP(cost * (1 + 1e-9)), delta=1e-6).epsilon > 2
    for n in range(4):
        reserve(ledger, f"r{n}", ZCDP(cost / 4), ["x"])
    assert_error(RefusedError, lambda: reserve(ledger, "more", ZCDP(cost / 1000), ["x"]), "limit: rho 0.067")
    ledger = make(epsilon=10)
    for name, distance in (("a", 7.0), ("b", None)):
        reserve(ledger, name, MetricDP(5, "euclidean", distance, "GloVe"), ["x"])
    last = MetricDP(1, "euclidean", 7.0, "GloVe")
    message = "limit: epsilon per unit of euclidean distance 10"
    assert_error(RefusedError, lambda: reserve(ledger, "c", last, ["x"]), message)


@pytest.mark.parametrize("guarantee", [PureDP(0.7), ApproxDP(0.7, 1e-6), ZCDP(0.1)], ids=str)
def test_a_user_is_charged_for_the_group_of_their_documents(make, guarantee):
    ledger = make(releases=9)
    reservation = reserve(ledger, "a", guarantee, ["u", "v", "u", "u"], by="author")
    assert (reservation.units, reservation.documents) == (2, 4)
    assert (ledger.left("u").spent, ledger.left("u").delta) == price(for_group(guarantee, 3), 1)
    assert (ledger.left("v").spent, ledger.left("v").delta) == price(guarantee, 1)
    spent = ledger.left("v").spent
    if isinstance(guarantee, PureDP):  # prices follow from the guarantees in the file
        change(ledger, ("UPDATE release SET about = replace(about, ?, ?)", ('"epsilon": 0.7', '"epsilon": 1.4')))
        assert ledger.left("v").spent == 2 * spent


def test_units_that_are_charged_once_whatever_their_number_of_documents(make):
    for guarantee, keys, by, unit, spent in (
        (MetricDP(5, "euclidean"), ["u"] * 7, "author", Unit.DOCUMENT, 5),  # distances add up
        (PureDP(5), ["u"] * 7, "author", Unit.USER, 5),
        (PureDP(4), ["u"] * 5, TEXT, Unit.DOCUMENT, 4),  # equal texts
    ):
        ledger = make(epsilon=10)
        reserve(ledger, "a", guarantee, keys, by=by, unit=unit)
        assert ledger.left("u").spent == spent


def test_users_are_refused_by_their_own_price_and_by_the_texts_that_a_guarantee_covers(make):
    ledger = make(epsilon=10)
    reserve(ledger, "a", PureDP(1), ["u"] * 8 + ["v"] * 2, by="author")
    keys = ["u"] * 3 + ["v"] * 9 + ["w"]
    message = "already spent: at most 8, this release costs at most 9, so 2 is left for some"
    refused = assert_error(RefusedError, lambda: reserve(ledger, "b", PureDP(1), keys, by="author"), message)
    assert "2 of 3 values of 'author' would be overspent" in refused
    reserve(ledger, "b", PureDP(1), ["u"] * 2 + ["v"] * 8 + ["w"], by="author")
    ledger = make(epsilon=10)
    for_three = statement_for_user(statement(PureDP(1.0)), 3)
    many = ["u"] * 3 + ["v"] * 50
    message = "at most 3 texts in the release, and 1 of them have more"
    assert_error(RefusedError, lambda: ledger.reserve("a", for_three, many, by="author"), message)
    assert ledger.releases() == []
    for resumed in (False, True):
        assert ledger.reserve("a", for_three, ["u"] * 3 + ["v"] * 2, by="author").resumed == resumed
    assert (ledger.left("u").spent, ledger.left("v").spent) == (3.0, 3.0)


# -- refusals -----------------------------------------------------------------------------------------------------


def test_the_first_release_fixes_the_terms(make):
    first = {"statement": MetricDP(1, "euclidean", 3.0, "GloVe"), "by": "author"}
    for changes, message in (
        ({"statement": PureDP(1)}, "in epsilon per unit of euclidean distance, this release in epsilon,"),
        ({"statement": ZCDP(1e-3)}, "this release in rho,"),
        ({"statement": MetricDP(1, "angular", 3.0, "GloVe")}, "this release in epsilon per unit of angular"),
        ({"statement": MetricDP(1, "euclidean", 3.0, "fastText")}, "in the space GloVe, this release in the space"),
        ({"unit": Unit.USER}, "for the unit document, this release for the unit user"),
        ({"relation": Relation.ADD_REMOVE}, "under the relation substitution, this release under"),
        ({"by": TEXT}, "by the values of 'author', this release by the texts"),
        ({"by": "id"}, "by the values of 'author', this release by the values of 'id'"),
    ):
        ledger = make(epsilon=10, delta=1e-6)
        reservation = reserve(ledger, "a", keys=["x"], **first)
        second = {"keys": ["x"], **first, **changes}
        assert_error(RefusedError, lambda k=second: reserve(ledger, "b", **k), message, "Use another ledger")  # noqa: B023
        reservation.void()
        reserve(ledger, "b", **second)  # nothing is left of the first


def test_releases_without_a_price_or_with_wrong_arguments_leave_no_trace(make):
    ledger = make(releases=5)
    some = statement().replace(condition=statement().condition.and_(WordsChanged(1)))
    for kind, changes, message in (
        (RefusedError, {"statement": NoGuarantee("a seed")}, "a release without a guarantee"),
        (RefusedError, {"statement": PureDP(math.inf)}, "an infinite cost for 1 documents"),
        (
            RefusedError,
            {"statement": PureDP(1e308), "keys": ["x"] * 20, "by": "id"},
            "an infinite cost for 20 documents",
        ),
        (RefusedError, {"unit": Unit.WORD}, "for the unit word"),
        (
            RefusedError,
            {"statement": statement(seeded=True), "unit": None, "relation": None},
            "refuses a seeded release",
        ),
        (RefusedError, {"statement": some, "unit": None, "relation": None}, "some words only"),
        (ParameterError, {"unit": None}, "has no privacy unit"),
        (ParameterError, {"statement": statement()}, "the statement has a unit, a relation"),
        (ParameterError, {"unit": "cat"}, "unit must be one of 'word', "),
        (ParameterError, {"relation": "c"}, "relation must be one of"),
        (ParameterError, {"statement": 5.0}, "a PrivacyStatement or a guarantee, got float"),
        (ParameterError, {"unit": Unit.USER}, "Pass the column"),
        (ParameterError, {"by": ""}, "by must be 'text' or the name"),
        (ParameterError, {"release_id": "a b"}, "release_id must have 1 to 100"),
        (ParameterError, {"release_id": None}, "release_id must have 1 to 100"),
        (ParameterError, {"keys": ["a", 7]}, "row 2: a key must be a string, got int"),
        (ParameterError, {"keys": [SECRET, None]}, "row 2: a key must be a string, got None"),
    ):
        usual = {"release_id": "a", "statement": PureDP(1), "keys": ["x"], "by": TEXT, **WHO}
        message = assert_error(kind, lambda k={**usual, **changes}: ledger.reserve(**k), message)
        assert SECRET not in message
    assert ledger.releases() == [] and ledger.summary().units == 0
    for call in (ledger.settle, ledger.void):
        assert_error(ParameterError, lambda call=call: call("nightly"), "has no release 'nightly'")


def test_limits_that_limit_nothing_are_refused_and_no_file_is_made(tmp_path):
    for limits, message in (
        ({}, "needs a limit"),
        ({"delta": 1e-6}, "needs a limit"),
        ({"delta": 1e-6, "releases": 3}, "a delta without an epsilon is not a limit"),
        *(({"epsilon": value}, "epsilon must be a number above 0") for value in (0, -1.0, math.inf, math.nan, "3")),
        ({"epsilon": 10**400}, "epsilon must be a number above 0 and at most 1e+300"),
        *(({"epsilon": 1, "delta": value}, "delta must be a number above 0") for value in (0, 1.0)),
        *(({"releases": value}, "releases must be an integer") for value in (0, 1.5, True)),
    ):
        assert_error(ParameterError, lambda k=limits: Ledger.create(tmp_path / "x", **k), message)
    assert list(tmp_path.iterdir()) == []


# -- reserve, settle, void ----------------------------------------------------------------------------------------


def test_a_pending_release_counts_until_it_is_voided_and_a_settled_one_for_ever(make):
    ledger = make(epsilon=5)
    first = reserve(ledger, "a", PureDP(5), ["x", "y"])
    assert ledger.pending() == ["a"]
    assert_error(RefusedError, lambda: reserve(ledger, "b", PureDP(5), ["y"]), "would be overspent")
    first.void()
    assert (ledger.state("a"), ledger.left("x").spent) == (None, 0)
    reserve(ledger, "b", PureDP(5), ["y"]).settle()
    ledger.settle("b")  # twice is once
    assert (ledger.state("b"), ledger.pending()) == ("released", [])
    assert_error(RefusedError, lambda: ledger.void("b"), "was published and cannot be voided: others")
    assert_error(RefusedError, lambda: reserve(ledger, "b", PureDP(5), ["y"]), "the release b is already published")
    assert ledger.left("y").spent == 5


def test_a_resumed_run_reserves_the_same_release_again_and_no_other(make):
    ledger = make(epsilon=5)
    assert not reserve(ledger, "a", PureDP(1), ["x", "y", "x"], by="id").resumed
    for keys in (["x", "y"], ["x", "x", "x", "y"], ["x", "x", "z"], ["x", "x", "y", "z"], []):
        call = lambda keys=keys: reserve(ledger, "a", PureDP(1), keys, by="id")  # noqa: E731
        assert_error(RefusedError, call, "the release a is reserved for other rows or another guarantee")
    other = "reserved for other rows or another guarantee"
    assert_error(RefusedError, lambda: reserve(ledger, "a", PureDP(2), ["x", "y", "x"], by="id"), other)
    assert reserve(ledger, "a", PureDP(1), ["y", "x", "x"], by="id").resumed
    assert ledger.left("x").spent == 2 and len(ledger.releases()) == 1


def test_the_block_settles_and_an_error_leaves_the_release_pending(make):
    ledger = make(epsilon=5)
    with reserve(ledger, "a", PureDP(1), ["x"]):
        pass
    with pytest.raises(ZeroDivisionError) as caught, reserve(ledger, "b", PureDP(1), ["x"]):
        1 / 0  # noqa: B018
    assert caught.value.__notes__[0].endswith(f"dptext ledger void {ledger.path} b")
    with pytest.raises(ZeroDivisionError), reserve(ledger, "c", PureDP(1), ["x"]) as reservation:
        reservation.settle()
        1 / 0  # noqa: B018
    with reserve(ledger, "d", PureDP(1), ["x"]) as reservation:
        reservation.void()
    assert [ledger.state(name) for name in "abcd"] == ["released", "pending", "released", None]

    def keys():
        yield "x"
        raise DataError("row 2 is broken")

    assert_error(DataError, lambda: reserve(ledger, "e", PureDP(1), keys()), "row 2 is broken")
    assert ledger.state("e") is None


def test_releases_and_the_summary_say_what_was_charged(make):
    ledger = make(epsilon=5)
    ledger.reserve("a", statement(MetricDP(2, "euclidean", 3.0, "GloVe")), ["x", "x"], by=TEXT)
    (release,) = ledger.releases()
    assert (release.mechanism, release.units, release.documents, release.state) == ("TEM", 1, 2, "pending")
    assert release.guarantee == MetricDP(2, "euclidean", 3.0, "GloVe") and release.reserved_at.endswith("+00:00")
    assert (release.terms.unit, release.terms.relation, release.terms.by) == ("document", "substitution", "text")
    ledger = make(epsilon=10, releases=5)
    empty = ledger.summary()
    assert (empty.units, empty.median, empty.highest, empty.terms, ledger.left("x").left) == (0, None, None, None, 10)
    reserve(ledger, "a", PureDP(4), [f"t{n}" for n in range(10)]).settle()
    reserve(ledger, "b", PureDP(6), [f"t{n}" for n in range(3)])
    summary = ledger.summary()
    assert (summary.releases, summary.pending, summary.units, summary.exhausted) == (2, 1, 10, 3)
    assert (summary.median.spent, summary.median.left, summary.median.releases_left) == (4, 6, 4)
    assert (summary.highest.spent, summary.highest.left, summary.highest.releases_left) == (10, 0, 3)


def test_keys_are_compared_in_nfc_and_only_their_keyed_hash_is_kept_for_the_owner(make, tmp_path):
    ledger = make(epsilon=3)
    texts = ["", "é", "\ud800", "\x00", "a\nb", "x" * 10**6, SECRET]
    assert reserve(ledger, "a", PureDP(3), texts).units == len(texts)
    assert all(ledger.left(text).left == 0 for text in [*texts, unicodedata.normalize("NFD", "é")])
    assert ledger.left("É").left == 3
    refused = assert_error(RefusedError, lambda: reserve(ledger, "b", PureDP(3), [SECRET]), "would be overspent")
    assert SECRET not in refused and SECRET.encode() not in ledger.path.read_bytes()
    other = make(epsilon=1)
    before = os.umask(0)
    reserve(other, "a", PureDP(1), [SECRET], by="\ud800 'odd'")
    os.umask(before)
    assert stat.S_IMODE(other.path.stat().st_mode) == 0o600
    units = []
    for path in (ledger.path, other.path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            units.append({unit for (unit,) in connection.execute("SELECT unit FROM charge")})
    assert not units[0] & units[1] and {len(unit) for unit in units[0]} == {16}


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
def test_of_eight_processes_exactly_as_many_win_as_fit_and_all_wait_for_each_other(tmp_path):
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

        Ledger.create("x", epsilon=1000)

        def wait_and_charge(number):
            for n in range(5):
                reserve(Ledger("x"), f"{number}-{n}", map(str, range(2000))).settle()
            return 0

        pids = [child(lambda: wait_and_charge(number)) for number in range(8)]
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 8
        summary = Ledger("x").summary()
        assert (summary.releases, summary.pending, Ledger("x").left("7").spent) == (40, 0, 40.0)
        print("done")
        """,
    )
    assert out == "done\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_kill_at_any_moment_leaves_a_ledger_that_adds_up(tmp_path):
    """Killed after a number of SQLite's own steps. (Kills at single operations on files are for tests/faults.)"""
    out = run_script(
        tmp_path,
        """
        import sqlite3
        from dptext.ledger import store as ledger_store

        ledger = Ledger.create("x", epsilon=1e6)
        ledger_store._CACHE_KIB = 64  # small, so that a reservation writes to the file before it commits
        ledger_store._STEPS_BETWEEN_SIGNALS = 100
        draw, journals = random.Random(7), 0

        def say(line):
            with open("said", "a") as stream:
                stream.write(line + "\\n")

        def releases(number, ends):
            steps = 0

            def step():
                nonlocal steps
                steps += 1
                if steps == ends:
                    os.kill(os.getpid(), signal.SIGKILL)
                return 0

            ledger_store._hear_signals = step
            for n in range(3):
                name = f"{number}-{n}"
                reservation = reserve(ledger, name, (str(draw.randrange(5000)) for _ in range(2000)))
                say(f"{name} reserved")
                if n == 0:
                    reservation.settle()
                    say(f"{name} released")
                elif n == 1:
                    say(f"{name} voiding")
                    reservation.void()
            with open("steps", "w") as stream:
                stream.write(str(steps))
            return 0

        assert os.waitpid(child(lambda: releases("whole", 0)), 0)[1] == 0
        whole = int(open("steps").read())
        assert whole > 1000, whole  # fine enough for moments in the middle of a statement
        for number in range(45):
            os.waitpid(child(lambda ends=draw.randrange(1, whole): releases(number, ends)), 0)
            journals += os.path.exists("x-journal")
            states = {release.release_id: release.state for release in ledger.releases()}
            for name, word in dict(line.split() for line in open("said")).items():
                allowed = {"reserved": ("pending", "released"), "released": ("released",)}
                assert word == "voiding" or states[name] in allowed[word]
        connection = sqlite3.connect("x")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counted = connection.execute(
            "SELECT r.units, r.documents, count(c.unit), sum(c.documents) FROM release r "
            "JOIN charge c ON c.release = r.number GROUP BY r.id"
        ).fetchall()
        assert len(counted) == len(ledger.releases()) > 5, len(counted)
        assert all((units, documents) == (charged, total) for units, documents, charged, total in counted)
        orphans = "SELECT count(*) FROM charge WHERE release NOT IN (SELECT number FROM release)"
        assert connection.execute(orphans).fetchone() == (0,)
        connection.close()
        for name in ledger.pending():
            ledger.void(name)
        assert reserve(ledger, "after", ["1"]).units == 1
        assert journals >= 1, "no death came in the middle of a transaction"
        """,
    )
    assert out == ""


# -- files that fail ----------------------------------------------------------------------------------------------


def test_files_that_are_missing_or_exist_are_named_with_a_remedy(tmp_path, monkeypatch):
    path = tmp_path / "x.ledger"
    assert_error(StorageError, lambda: Ledger(path), f"dptext ledger create {path} --epsilon 10")
    assert list(tmp_path.iterdir()) == []
    path.write_text("precious")
    message = "already exists, and ledgers are never"
    assert_error(StorageError, lambda: Ledger.create(path, epsilon=1), message)
    assert path.read_text() == "precious"
    nowhere = tmp_path / "nowhere" / "x"
    assert_error(StorageError, lambda: Ledger.create(nowhere, epsilon=1), "cannot write", "No such file or directory")
    assert_error(StorageError, lambda: Ledger(tmp_path), "is a folder. Pass the ledger file in it")
    for name in ("a b?mode=ro#x%41.ledger", "-", "名", os.fsdecode(b"\xff")):
        assert reserve(Ledger.create(tmp_path / name, epsilon=1), "a", PureDP(1), ["x"]).units == 1
    monkeypatch.setattr(ledger_store, "_SCHEMA", ("CREATE nonsense",))
    assert_error(DataError, lambda: Ledger.create(tmp_path / "half", epsilon=1), "half")
    assert not (tmp_path / "half").exists()


def change(ledger, *statements):
    with contextlib.closing(sqlite3.connect(getattr(ledger, "path", ledger))) as connection:
        for sql in statements:
            connection.execute(*sql) if isinstance(sql, tuple) else connection.execute(sql)
        connection.commit()


def punch_holes(path):
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


def another_database(path):
    path.unlink()
    change(path, "CREATE TABLE precious (a)")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_text("name,text\n" * 1000), "is not a ledger, or is damaged"),
        (lambda path: path.write_bytes(b""), "is not a ledger. Create one: dptext"),
        (lambda path: change(path, "PRAGMA user_version = 99"), "is a ledger of version 99. Use the dptext"),
        (another_database, "is not a ledger. Create one: dptext"),
        (lambda path: change(path, "UPDATE ledger SET epsilon = -1"), "is not a ledger, or is damaged"),
        (punch_holes, "is not a ledger, or is damaged"),
        (lambda path: os.truncate(path, 5000), "is not a ledger, or is damaged"),
    ],
)
def test_a_damaged_file_is_named_in_one_line_and_left_as_it_is(make, spoil, message):
    path = make(epsilon=1).path
    spoil(path)
    before = path.read_bytes()
    assert_error(DataError, lambda: Ledger(path).summary(), message)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "about", ['{"guarantee": 3}', "[" * 100_000, '{"guarantee": ' * 100_000, '{"guarantee": ' + "9" * 6000 + "}"]
)
def test_a_release_that_cannot_be_read_is_damage_for_every_reader(make, about):
    ledger = make(epsilon=50)
    reserve(ledger, "a", PureDP(1), ["x"])
    change(ledger, ("UPDATE release SET about = ?", (about,)))
    second = lambda: reserve(ledger, "new", PureDP(1.0), ["x"])  # noqa: E731
    for read in (second, ledger.releases, ledger.summary, lambda: ledger.left("x")):
        assert len(assert_error(DataError, read, "is damaged")) < 300


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_stuck_process_is_waited_for_and_then_named(make, begin):
    ledger = make(epsilon=5)
    hasty = Ledger(ledger.path, patience=0.0)
    stuck = sqlite3.connect(ledger.path, isolation_level=None)
    stuck.execute(begin)
    try:
        with pytest.raises(StorageError, match=r"another process has locked the ledger .* Wait"):
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
