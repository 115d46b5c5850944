"""Reports on texts of a bank, and the rewriter that follows from their statement."""

import dataclasses
import json

import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.methods.bank import rewriter_from_statement
from dptext.methods.files import check_document_guarantee
from dptext.privacy.guarantee import rate_at_most
from repeated import same_draws
from sentences.banks import bank, documents

pytest.importorskip("sklearn")
binomtest = pytest.importorskip("scipy.stats").binomtest

SECRET = "Zebulon"
ROWS = 160
slow = pytest.mark.slow  # audits, attacks and models of a whole release


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """160 texts about four things, released as texts of a bank in five ways."""
    folder = tmp_path_factory.mktemp("report")
    bank().save(folder / "bank")
    texts, about = documents(ROWS)
    rows = [{"text": f"{text} {SECRET}.", "about": thing} for text, thing in zip(texts, about, strict=True)]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, options in {
        "whole": {"unit": "document", "epsilon": 6.0},
        "three": {"unit": "document", "max_sentences": 3, "epsilon": 9.0},
        "sentences": {"epsilon": 4.0},
        "open": {"unit": "document", "epsilon": 25.0, "size": 1},
        "closed": {"unit": "document", "epsilon": 1e-4},
    }.items():
        rewriter = dptext.BankRewriter(bank(), **options)
        with same_draws():
            files = dptext.TextFiles(folder / "in.jsonl", keep=("about",))
            dptext.privatize_file(files, folder / f"{name}.jsonl", rewriter)
    return folder


def report(folder, name, **more):
    options = {"bank": folder / "bank", "seed": 1, "samples": 1000, "attackers": ("linear",)}
    return dptext.report(folder / f"{name}.jsonl", **options | more)


@pytest.fixture(scope="module")
def everything(folder):
    return report(folder, "whole", original=folder / "in.jsonl", label="about", attribute="about")


def linkage_of(result):
    return next(entry for entry in result.owner_attacks if entry.attack == "linkage (likelihood)")


@slow
def test_a_report_with_the_originals_has_every_number_and_marks_those_for_the_owner(everything):
    assert not everything.refuted and [check.passed for check in everything.checks] == [True] * 4
    assert {attack.attack for attack in everything.owner_attacks} == {"linkage (shared words)", "linkage (likelihood)"}
    for attacks in (everything.attacks, everything.controls):
        assert {attack.attack for attack in attacks} == {"attribute inference of 'about' (linear)"}
    assert [(entry.name, entry.owner_only, entry.is_useful) for entry in everything.utility] == [
        ("trained on private rows, tested on original rows", True, True),
        ("trained on private rows, tested on private rows", False, True),
        ("trained on original rows, tested on original rows", True, True),
        ("trained on texts of the bank at random, tested on original rows", True, False),
        ("trained on texts of the bank at random, tested on private rows", False, False),
    ]
    page = " ".join(everything.html().split())
    for text in (
        "Each text was replaced by a text of the public bank &#39;four things&#39;",
        "Names, numbers and claims come from the bank&#39;s authors",
        "A model trained on texts of the bank at random is right for",
        "for the audited pairs of texts",
        "This page is for the owner of the data",
        "the attack works",
    ):
        assert text in page


@slow
def test_linkage_agrees_with_its_expected_rate_and_with_the_bounds(everything, folder):
    score = linkage_of(everything)
    texts = [json.loads(line)["text"] for line in (folder / "in.jsonl").read_text().splitlines()]
    rewriter = dptext.BankRewriter(bank(), epsilon=6.0, unit="document")
    # rows are linked independently, each with its own chance: the binomial law of their mean is wider
    linked = round(score.score.value * ROWS)
    assert binomtest(linked, ROWS, rewriter.relinking(ROWS, texts)).pvalue > 1e-6
    assert binomtest(linked, ROWS, rewriter.relinking(ROWS), alternative="greater").pvalue > 1e-6
    assert "under any mechanism of this epsilon" in score.detail
    # without protection linkage succeeds; without information it is at chance (1 of 160; 12 have chance below 1e-6)
    weak, strong = (linkage_of(report(folder, name, original=folder / "in.jsonl")) for name in ("open", "closed"))
    assert weak.succeeded and weak.score.value > 0.4
    assert strong.score.value <= 12 / ROWS


@slow
def test_the_card_and_a_report_on_the_release_alone_are_for_everybody(everything, folder):
    card, page = everything.card(), everything.html()
    assert "texts of the bank, word for word, with the names, numbers and claims of their authors" in card
    for word in ("linkage", "original rows"):
        assert word not in card
    alone = report(folder, "whole", label="about", attribute="about")
    assert not alone.has_owner_numbers and not alone.controls
    assert alone.utility == everything.shared().utility
    assert 'class="owner"' not in alone.html()
    # no text of the data, original or private
    assert SECRET not in page + card
    private = [json.loads(line)["text"] for line in (folder / "whole.jsonl").read_text().splitlines()]
    assert not any(entry in page + card for entry in private)


@slow
@pytest.mark.parametrize("name", ["three", "sentences"])
def test_linkage_of_several_sentences_stays_below_the_bound_of_their_number(folder, name):
    result = report(folder, name, original=folder / "in.jsonl")
    rewriter = dptext.BankRewriter(bank(), epsilon=3.0 if name == "three" else 4.0)
    maximum = rewriter.relinking(ROWS, parts=3 if name == "three" else 4)
    assert maximum <= rate_at_most(result.statement.epsilon, ROWS)
    assert not result.refuted and linkage_of(result).score.low <= maximum


@slow
def test_draws_of_other_originals_are_refuted(folder, tmp_path):
    lines = (folder / "in.jsonl").read_text().splitlines()
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(lines[1:] + lines[:1]) + "\n")
    result = report(folder, "whole", original=other)
    assert result.refuted and "the stated share of outputs" in result.checks[-1].name
    assert "%" not in result.checks[-1].detail
    other.write_text("\n".join([json.dumps({"text": "One. Two. Three. Four. Five."}), *lines[1:]]) + "\n")
    with pytest.raises(DataError, match=r"sentences.jsonl, row 1: the private text does not have as many"):
        report(folder, "sentences", original=other)
    for options, error, message in [
        ({"bank": None}, DataError, "pass its folder with --bank"),
        ({"vectors": "x.txt"}, ParameterError, "omit --vectors"),
        ({"distribution": "x"}, ParameterError, "omit --distribution"),
        ({"label": "nothing"}, DataError, "there is no column 'nothing'"),
    ]:
        with pytest.raises(error, match=message):
            report(folder, "whole", **options)


def test_a_rewriter_is_built_again_from_its_statement(tmp_path):
    bank().save(tmp_path / "bank")
    for options in (
        {},
        {"max_sentences": 2},
        {"unit": "document"},
        {"unit": "document", "max_sentences": 3, "size": 7},
    ):
        rewriter = dptext.BankRewriter(bank(), epsilon=5.0, **options)
        statement = dptext.privatize(["Tea. Milk.", "The law."], rewriter).statement
        for source in (bank(), tmp_path / "bank"):
            repeated = rewriter_from_statement(dptext.PrivacyStatement.from_json(statement.to_json()), source)
            assert repeated.parameters() == rewriter.parameters()
            assert repeated.document_statement(2).guarantee == statement.guarantee


def test_a_false_statement_or_another_bank_is_refused(tmp_path):
    statement = dptext.BankRewriter(bank(), epsilon=5.0).statement
    other = dptext.TextBank(["tea", "milk", "law"], encoder="words", cache=False)
    for source, error, message in [
        (None, DataError, "pass its folder with --bank"),
        (other, ParameterError, "is not the bank of the statement"),
        (tmp_path / "none", (DataError, StorageError), "none"),
    ]:
        with pytest.raises(error, match=message):
            rewriter_from_statement(statement, source)
    for change, message in [
        ({"size": len(bank())}, "cannot exist: size must be"),
        ({"size": "7"}, "cannot exist: size must be"),
        ({"epsilon": -1.0}, "cannot exist: epsilon must be"),
        ({"unit_of_epsilon": "user"}, "cannot exist: unit must be"),
    ]:
        with pytest.raises(DataError, match=message):
            rewriter_from_statement(dataclasses.replace(statement, parameters=statement.parameters | change), bank())
    for missing in ("epsilon", "unit_of_epsilon", "bank_sha256"):
        rest = {name: value for name, value in statement.parameters.items() if name != missing}
        message = "does not describe texts of a bank" if missing == "bank_sha256" else "cannot exist"
        with pytest.raises(DataError, match=message):
            rewriter_from_statement(dataclasses.replace(statement, parameters=rest), bank())
    # the usual value takes the place of a missing one, and the statement differs from it
    rest = {name: value for name, value in statement.parameters.items() if name != "size"}
    short = dataclasses.replace(statement, parameters=rest)
    check = check_document_guarantee(short, rewriter_from_statement(short, bank()), 1, apart_from=())
    assert check.passed is False and " size," in check.detail
