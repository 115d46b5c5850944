"""A report on texts of a bank: what is asked of them, whose numbers these are, and no text of anybody."""

import json
import re

import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.privacy.guarantee import rate_at_most
from repeated import same_draws
from sentences.banks import bank, documents

pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow  # audits, attacks and models of a whole release
pytest.importorskip("sklearn")
binomtest = pytest.importorskip("scipy.stats").binomtest

SECRET = "Zebulon"
ROWS = 160


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """160 texts about four things, as texts of a bank in three ways; a column that stays at home."""
    folder = tmp_path_factory.mktemp("report")
    bank().save(folder / "bank")
    texts, about = documents(ROWS)
    rows = [
        {"text": f"{text} {SECRET}.", "about": thing, "side": ("left", "right")[number % 2]}
        for number, (text, thing) in enumerate(zip(texts, about, strict=True))
    ]
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
            dptext.privatize_file(folder / "in.jsonl", folder / f"{name}.jsonl", rewriter, keep=("about",))
    return folder


def made(folder, name, **asked):
    fields = {"bank": folder / "bank", "seed": 1, "samples": 1000, "attackers": ("linear",)}
    return dptext.report(folder / f"{name}.jsonl", **fields | asked)


@pytest.fixture(scope="module")
def everything(folder):
    return made(folder, "whole", original=folder / "in.jsonl", label="about", attribute="about")


def first(report, attack, among="owner_attacks"):
    return next(entry for entry in getattr(report, among) if entry.attack == attack)


def test_a_page_with_the_originals_holds_all_of_it_and_marks_what_is_the_owners(everything):
    assert not everything.refuted
    assert [check.passed for check in everything.checks] == [True] * 4
    assert {attack.attack for attack in everything.owner_attacks} == {"linkage (shared words)", "linkage (likelihood)"}
    assert {attack.attack for attack in everything.attacks} == {"attribute inference of 'about' (linear)"}
    assert {control.attack for control in everything.controls} == {"attribute inference of 'about' (linear)"}
    assert [entry.name for entry in everything.utility] == [
        "trained on private rows, tested on original rows",
        "trained on private rows, tested on private rows",
        "trained on original rows, tested on original rows",
        "trained on texts of the bank at random, tested on original rows",
        "trained on texts of the bank at random, tested on private rows",
        "similarity of the output to its original",
    ]
    assert [entry.owner_only for entry in everything.utility] == [True, False, True, True, False, True]
    assert [entry.is_useful for entry in everything.utility] == [True, True, True, False, False, True]
    assert [entry.people for entry in everything.relinking] == [10, 100, 1_000, 10_000]
    assert re.findall(r"<h2>(.*?)</h2>", everything.html()) == [
        "Recommendation",
        "Guarantee",
        "Attacks",
        "Utility",
        "Details",
    ]
    page = " ".join(everything.html().split())
    for text in (
        "Each text was replaced by a text of the public bank &#39;four things&#39;",
        "Names, numbers and claims come from the bank&#39;s authors",
        "A model trained on texts of the bank at random is right for",
        "An adversary who holds the original texts links",
        "for the audited pairs of texts",
        "This page is for the owner of the data",
    ):
        assert text in page
    assert "New words are in bold" not in page
    assert "the attack works" in page


def test_relinking_stands_beside_what_was_expected_and_what_is_proved(everything, folder):
    score = first(everything, "linkage (likelihood)")
    [expected] = [attack for attack in everything.owner_attacks if attack.measure == "share linked, expected"]
    texts = [json.loads(line)["text"] for line in (folder / "in.jsonl").read_text().splitlines()]
    rewriter = dptext.BankRewriter(bank(), epsilon=6.0, unit="document")
    assert expected.score.value == rewriter.relinking(ROWS, texts)
    # rows are linked independently, each with a chance of its own: the binomial law of their mean spreads wider
    linked = round(score.score.value * ROWS)
    assert binomtest(linked, ROWS, expected.score.value).pvalue > 1e-6
    assert binomtest(linked, ROWS, rewriter.relinking(ROWS), alternative="greater").pvalue > 1e-6
    assert "at most" in score.detail
    for entry in everything.relinking:
        assert entry.maximum == rewriter.relinking(entry.people)
        assert entry.pure == rate_at_most(6.0, entry.people)
        assert 1 / entry.people < entry.maximum <= entry.pure


@pytest.mark.slow
def test_relinking_succeeds_where_nothing_protects_and_is_at_chance_where_nothing_comes_out(folder):
    chances = {}
    for name in ("open", "closed"):
        score = first(made(folder, name, original=folder / "in.jsonl"), "linkage (likelihood)")
        chances[name] = score
    assert chances["open"].score.value > 0.4
    assert chances["open"].succeeded
    # 1 of 160 by chance: more than 12 of them in less than one case of 10^6
    assert chances["closed"].score.value <= 12 / ROWS


@pytest.mark.slow
def test_the_card_and_a_page_of_the_release_alone_are_for_everybody(everything, folder):
    card = everything.card()
    assert "Linking a text to one of many people" in card
    assert "texts of the bank, word for word, with the names, numbers and claims of their authors" in card
    for word in ("linkage", "original rows", "output to its original", "share linked"):
        assert word not in card
    alone = made(folder, "whole", label="about", attribute="about")
    assert not alone.has_owner_numbers
    assert alone.utility == everything.shared().utility
    assert [entry.name for entry in alone.utility] == [
        "trained on private rows, tested on private rows",
        "trained on texts of the bank at random, tested on private rows",
    ]
    assert not alone.controls
    assert 'class="owner"' not in alone.html()
    assert "for the owner of the data" not in alone.html()


def test_no_text_of_the_data_is_on_page_or_card(everything, folder):
    page, card = everything.html(), everything.card()
    assert SECRET not in page + card
    private = [json.loads(line)["text"] for line in (folder / "whole.jsonl").read_text().splitlines()]
    # what is drawn afresh is of the bank, as the release is, and may be the same text
    samples = ((page, "<h3>Before and after", "</table>"), (card, "### Before and after", "|\n\n"))
    for visible, first, last in samples:
        start = visible.index(first)
        stop = visible.index(last, start)
        assert not any(text in visible[:start] + visible[stop:] for text in private)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parts"), [("three", 3), ("sentences", 4)])
def test_several_sentences_of_a_document_count_together(folder, name, parts):
    report = made(folder, name, original=folder / "in.jsonl")
    assert {entry.parts for entry in report.relinking} == {parts}
    rewriter = dptext.BankRewriter(bank(), epsilon=3.0 if name == "three" else 4.0)
    for entry in report.relinking:
        assert entry.maximum == pytest.approx(rewriter.relinking(entry.people, parts=parts))
        assert entry.maximum <= entry.pure == rate_at_most(report.statement.epsilon, entry.people)
    attacks = {attack.attack for attack in report.owner_attacks}
    assert ("linkage (number of sentences alone)" in attacks) == (name == "sentences")
    assert f"({parts} sentences, as many as the longest text has)" in " ".join(report.html().split())
    measured = [attack for attack in report.owner_attacks if attack.attack == "linkage (likelihood)"]
    assert abs(measured[0].score.value - measured[-1].score.value) < 0.2
    assert measured[-1].measure == "share linked, expected"


@pytest.mark.slow
def test_draws_that_are_not_those_of_the_statement_are_refuted_with_the_originals(folder, tmp_path):
    """Rows in another order, or a release that always has the nearest text."""
    lines = (folder / "in.jsonl").read_text().splitlines()
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(lines[1:] + lines[:1]) + "\n")
    report = made(folder, "whole", original=other)
    assert report.refuted
    assert "the stated share of outputs" in report.checks[-1].name
    assert not made(folder, "whole").refuted
    assert "%" not in report.checks[-1].detail


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"bank": None}, DataError, "pass its folder with --bank"),
        ({"vectors": "x.txt"}, ParameterError, "leave --vectors out"),
        ({"distribution": "x"}, ParameterError, "leave --distribution out"),
        ({"label": "nothing"}, DataError, "expected a column 'nothing'"),
    ],
)
def test_what_cannot_be_is_said(folder, asked, error, says):
    with pytest.raises(error, match=says):
        made(folder, "whole", **asked)


def test_a_private_text_that_was_not_made_from_its_original_is_named_by_its_row(folder, tmp_path):
    lines = (folder / "in.jsonl").read_text().splitlines()
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join([json.dumps({"text": "One. Two. Three. Four. Five."}), *lines[1:]]) + "\n")
    with pytest.raises(DataError, match=r"sentences.jsonl, row 1: the private text is not made of as many"):
        made(folder, "sentences", original=other)
