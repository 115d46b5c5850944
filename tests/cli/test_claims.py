"""``dptext explain --claim`` and ``--format``, and ``dptext ledger charge`` with a claim."""

import json
from pathlib import Path

import pytest
import yaml

import dptext
from cli.conftest import plain, write_rows
from dptext.ledger.ledger import Ledger
from dptext.privacy.claims import read_claim

pytest.importorskip("dp_accounting")
VOTES = "epsilon=1,delta=1e-6,num_iterations=5,vote_normalization_level=client,labels_per_client=4"
OPACUS = {"history": [[1.1, 0.01, 500]], "mechanism": "rdp", "delta": 1e-5}


def test_a_claim_is_explained(run, work):
    code, out, err = run("explain", "--claim", f"dpsda:{VOTES}")
    assert (code, err) == (0, "")
    assert "DPSDA states epsilon = 1. The recomputed epsilon is larger: 2.123." in plain(out)
    assert "THE DATA" not in out
    data = json.loads(run("explain", "--claim", f"dpsda:{VOTES}", "--json")[1])
    assert (data["data_agrees"], data["statement"]["claimed_epsilon"]) == (None, 1)


def test_a_claim_in_a_file_is_read(run, work):
    Path("settings.json").write_text(json.dumps(OPACUS))
    statement = dptext.PrivacyStatement.from_json(
        run("explain", "--claim", "opacus:settings.json", "--format", "statement")[1]
    )
    assert statement.guarantee == read_claim("opacus", OPACUS).guarantee
    for text in ("[1]", "{", '{"delta": 1, "delta": 2}', "\xff", "[" * 100_000):
        Path("settings.json").write_text(text, encoding="latin-1")
        code, _, err = run("explain", "--claim", "opacus:settings.json")
        assert (code, err) == (1, "dptext: settings.json must be a JSON object of settings\n")
    assert run("explain", "--claim", "opacus:none.json")[0] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "explain needs a FILE or a --claim, and not both"),
        (("x.json", "--claim", f"dpsda:{VOTES}"), "explain needs a FILE or a --claim, and not both"),
        (("--claim", "dpsda"), "--claim expects NAME=VALUE, each name once, got ''"),
        (("--claim", "dpsda:delta=1,delta=2"), "--claim expects NAME=VALUE, each name once, got 'delta=2'"),
        (("--claim", "dpsda:eps=1"), "a claim of dpsda has no eps: --claim takes delta, epsilon, "),
        (("--claim", "keras:eps=1"), "the tool of --claim must be one of 'opacus'"),
        (("--claim", "dpsda:x.json"), "cannot read"),
    ],
)
def test_wrong_claims_are_refused(run, work, arguments, message):
    code, out, err = run("explain", *arguments)
    assert (code in (2, 4), out, message in err) == (True, "", True), err


def test_a_release_has_a_card_and_a_registry_entry(run, work):
    Path("claim.json").write_text(run("explain", "--claim", f"dpsda:{VOTES}", "--format", "statement")[1])
    card = run("explain", "claim.json", "--format", "dataset-card")[1]
    assert yaml.safe_load(card.split("---\n")[1])["differential_privacy"]["epsilon"] == pytest.approx(2.123, abs=1e-3)
    entry = yaml.safe_load(run("explain", "claim.json", "--format", "registry")[1])
    assert entry["deployment"]["privacy_loss"]["privacy_unit"] == "user"
    Path("README.md").write_text(card)  # next to its statement
    assert "DPSDA states epsilon = 1." in plain(run("explain", "README.md")[1])


def test_a_claim_is_charged_to_every_user_of_the_data(run, work):
    write_rows("in.jsonl", 6, people=3)
    Path("claim.json").write_text(run("explain", "--claim", f"dpsda:{VOTES}", "--format", "statement")[1])
    book = Ledger.create("book.db", epsilon=3, delta=1e-5)
    charge = ("ledger", "charge", "book.db", "claim.json", "in.jsonl")
    code, out, err = run(*charge, "--user", "author")
    assert (code, out, "(2.123, 1e-06)-differential privacy, to all rows." in err) == (0, "", True)
    assert [round(book.left(user).spent, 3) for user in ("a0", "a1", "a2", "a3")] == [2.123] * 3 + [0.0]
    assert [release.state for release in book.releases()] == ["released"]
    assert book.releases()[0].mechanism == "Private Evolution (as claimed by DPSDA)"
    code, _, err = run(*charge, "--user", "author")  # the same statement
    assert (code, "already settled this release" in err) == (3, True)
    Path("claim.json").write_text(run("explain", "--claim", f"dpsda:{VOTES}", "--format", "statement")[1])
    code, _, err = run(*charge, "--user", "author")  # another run with these settings
    assert (code, "3 of 3 values of 'author' would be overspent" in err) == (3, True)
    assert len(book.releases()) == 1
    assert run(*charge)[0] == 2  # users are charged by a column


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            "dpsda:epsilon=1,delta=1e-6,num_iterations=5,vote_normalization_level=client",
            "a release without a guarantee",
        ),
        (
            "jax_privacy:noise_multiplier=2,iterations=9,sampling_prob=0.1,delta=1e-6,seed=1",
            "Omit the seed",
        ),
    ],
)
def test_a_claim_without_a_guarantee_is_not_charged(run, work, claim, message):
    write_rows("in.jsonl", 6)
    Path("claim.json").write_text(run("explain", "--claim", claim, "--format", "statement")[1])
    Ledger.create("book.db", epsilon=100, delta=1e-3)
    code, _, err = run("ledger", "charge", "book.db", "claim.json", "in.jsonl", "--user", "author")
    assert (code, "the ledger refuses" in err) == (3, True)
    assert message.lower() in err.lower() or "seeded" in err
    assert Ledger("book.db").releases() == []


def test_documents_are_charged_by_their_text_or_their_author(run, work):
    write_rows("in.jsonl", 6, people=2)
    settings = "noise_multiplier=20,sample_rate=0.01,steps=100,delta=1e-7"
    Path("claim.json").write_text(run("explain", "--claim", f"opacus:{settings}", "--format", "statement")[1])
    for options, units in ((), 6), (("--user", "author"), 2):
        name = f"{units}.db"
        book = Ledger.create(name, epsilon=3, delta=1e-5)
        assert run("ledger", "charge", name, "claim.json", "in.jsonl", *options)[0] == 0
        assert (book.releases()[0].units, book.releases()[0].documents) == (units, 6)
    assert Ledger("2.db").left("a0").spent > 2.9 * Ledger("6.db").summary().median.spent
