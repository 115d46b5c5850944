"""The page and the card: every number has its sentence, no private number is shared, and no name becomes markup."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dptext import ApproxDP, MetricDP, PrivacyStatement, PureDP
from dptext.attacks.base import AttackScore
from dptext.audits.goodness import DrawTest
from dptext.audits.verdict import Outcome, Verdict
from dptext.intervals import Estimate
from dptext.methods.corpus import Corpus
from dptext.methods.examination import Measurement
from dptext.methods.files import Check
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.neighbours import Condition, OneGroup, SameLayout, Stated
from dptext.privacy.wording import strength_in_brief
from dptext.reports.page import Report
from dptext.reports.summary import DECISIONS, Decision, Level, Success, answers, recommendation
from dptext.text.identifiers import Column

NASTY = '<script>alert("x")</script>&'
SIGNS = {True: "good", None: "plain", False: "bad"}


def statement_of(guarantee, **more):
    return PrivacyStatement(
        guarantee=guarantee,
        unit="document",
        relation="substitution",
        condition="any two texts",
        trust="local",
        mechanism="TEM",
        exposed=("the column 'intent', unchanged", NASTY),
        **more,
    )


def verdict_of(outcome, loss, strongest=9.0, draws=None):
    fields = {"claim": PureDP(4.0), "method": "sampled", "allowed": 4.0, "witness": "x against x'"}
    return Verdict(outcome=outcome, loss=loss, strongest=strongest, coverage="one pair", draws=draws, **fields)


def estimate(low, high, of="rows", count=100):
    return Estimate((low + high) / 2, low, high, count, of)


def attack_of(low, high, baseline=0.5, attack="linkage", measure="top-1", of="rows"):
    score = estimate(low, high, of)
    return AttackScore(attack=attack, measure=measure, score=score, baseline=baseline, baseline_name="chance")


def task_of(low, high, **more):
    fields = {"name": "intent", "measure": "accuracy", "baseline": 0.5, "baseline_name": "majority class"}
    return Measurement(score=estimate(low, high), **fields | more)


def column_of(name, reason):
    return Column(name=name, rows=9, present=9, distinct=9, kind="text", reasons=(reason,))


def report_of(guarantee=None, *, title="x", **more):
    return Report(title=title, statement=statement_of(guarantee or PureDP(4.0)), **more)


def answer_of(report, topic):
    [result] = [entry for section in answers(report).values() for entry in section if entry.topic == topic]
    return result


AGREE = DrawTest(agree=True, draws=1000, inputs=2, error=1e-6, witness="")
EXACT = verdict_of(Outcome.EXACT, 3.9, draws=AGREE)
STATED = verdict_of(Outcome.EXACT, 3.9)
SAMPLED = verdict_of(Outcome.CONSISTENT, 2.0)
POWERLESS = verdict_of(Outcome.CONSISTENT, 2.0, strongest=3.0)
REFUTED = verdict_of(Outcome.REFUTED, 6.0)


class Reader(HTMLParser):
    """Collects tags and sources; raises if a tag is not closed in its order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.sources = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in {"meta", "img", "br", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# -- markup --------------------------------------------------------------------------------------------------------


def test_the_page_is_complete_loads_nothing_and_escapes_everything():
    report = report_of(
        title=NASTY,
        verdicts=[SAMPLED],
        attacks=[attack_of(0.4, 0.6)],
        utility=[task_of(0.6, 0.7, detail=NASTY), task_of(0.4, 0.7)],
        notes=[NASTY],
    )
    reader = Reader(report.html())
    assert not {"script", "link", "img"} & set(reader.seen) and reader.sources == []
    assert reader.seen.count("svg") == 3  # a bar for each number with a chance level
    assert NASTY not in report.html()
    assert re.findall(r"<h2>(.*?)</h2>", report_of().html()) == ["Recommendation", "Guarantee", "Details"]


def test_no_name_becomes_markup_on_the_card():
    utility = [task_of(0.6, 0.7, name="a|b\n# <i>")]
    card = report_of(title=NASTY, checks=[Check("the file", True, NASTY)], utility=utility).card()
    assert not re.search(r"(?<!\\)<", card)
    assert card.startswith("# \\<script\\>")
    assert "| a\\|b # \\<i\\> |" in card
    card = report_of(attacks=[attack_of(0.4, 0.6)]).card()
    assert "| linkage | top-1 | 0.500 [0.400, 0.600] | 0.500 (chance) |" in card


# -- numbers for the owner only ------------------------------------------------------------------------------------


def test_numbers_of_the_owner_are_marked_and_not_on_the_card():
    report = report_of(
        owner_attacks=[attack_of(0.4, 0.6)],
        utility=[task_of(0.6, 0.7), task_of(0.61, 0.71, owner_only=True)],
    )
    assert report.has_owner_numbers
    assert report.html().count('<span class="owner">') == 6  # an attack, a model, two answers, two levels
    card = report.card()
    assert "0.650" in card
    for word in ("linkage", "0.660"):
        assert word not in card
    check = Check("the noise has the stated distribution", True, "1.003 times", owner_only=True)
    report = report_of(verdicts=[STATED], checks=[check])
    assert report.has_owner_numbers and "agrees with it" in report.html()
    assert "agrees with it" not in report.card() and check.name not in report.card()
    failed = report_of(verdicts=[STATED], checks=[replace(check, passed=False)])
    assert failed.refuted and f"NO: {check.name}" in failed.card() and "1.003" not in failed.card()


def test_no_number_of_the_owner_changes_the_card():
    note = "More was measured with the original texts; those numbers are the owner's and not on this card.\n\n"
    cards = {
        report_of(PureDP(20.0), **more).card().replace(note, "")
        for more in (
            {},
            {"owner_attacks": [attack_of(0.97, 0.99, 0.001)]},
            {"owner_attacks": [attack_of(0.0, 0.01, 0.001)], "utility": [task_of(0.4, 0.5, owner_only=True)]},
        )
    }
    assert len(cards) == 1


# -- the guarantee -------------------------------------------------------------------------------------------------


def test_the_strength_is_in_words_and_never_rounded_down():
    for guarantee, page, card in [
        (PureDP(2.0), "the right one with probability at most 88.08%", "at most 7.4 times as large"),
        (PureDP(20.0), "A bound of this size does not protect on its own.", "times as large for one"),
        (ApproxDP(2.0, 1e-5), "at most 88.08% (epsilon 2, delta 1e-05)", "for the other, plus 1e-05 (epsilon 2)"),
        (MetricDP(2.0, "euclidean", 9.0), "the exact choice among words of similar", "2 nats per unit of distance"),
        (NoGuarantee("it is a copy"), "The privacy loss is unbounded", "none (epsilon inf)"),
    ]:
        assert page in report_of(guarantee).html()
        assert card in report_of(guarantee).card()
    for epsilon in (0.1, 1.0, 2.0, 8.0, 9.9):
        match = re.search(r"probability at most ([0-9.]+)%", report_of(PureDP(epsilon)).html())
        assert 1 / (1 + math.exp(-epsilon)) <= float(match[1]) / 100 < 1.0001 / (1 + math.exp(-epsilon))
    words, good = strength_in_brief(statement_of(ApproxDP(1.0, 0.3)))
    assert good is False and "does not protect on its own" in words and "delta 0.3" in words
    assert strength_in_brief(statement_of(ApproxDP(1.0, 1e-6)))[1] is None


def test_non_neighbours_are_not_called_protected():
    """Words of two groups are distinguished with certainty, and so are layouts: the sentence must not say "any two"."""
    condition = Condition(requirements=(Stated("any two texts"), SameLayout(), OneGroup("2 groups")))
    page = Report(title="x", statement=statement_of(PureDP(2.0)).replace(condition=condition)).html()
    strength = re.search(r"How strong is the guarantee\?.*?guesses the right one", page, re.DOTALL)[0]
    assert "any two texts are equally likely" not in strength
    assert "words of one group of the public partition" in strength


def test_seeds_and_failed_checks_void_the_guarantee():
    seeded = Report(title="x", statement=statement_of(PureDP(1.0), seeded=True), verdicts=[EXACT])
    assert "against an adversary who knows or guesses the seed" in seeded.html()
    assert "A seed was used" in seeded.card()
    answer = answer_of(seeded, "held")
    assert answer.good is False and "A seed was used" in answer.words
    failed = report_of(checks=[Check("the data is the data of the statement", False, "DIFFERS")], verdicts=[EXACT])
    assert failed.refuted and "NO: the guarantee was refuted" in failed.html()
    assert "- NO: the data is the data of the statement" in failed.card()
    assert "NOT ABOUT THIS FILE" in failed.html()
    for text in (failed.html(), failed.card()):
        assert "Holds, computed exactly" not in text and "does not hold for this file" in text
    assert not report_of(checks=[Check("the data", None, "there is none")]).refuted


def test_an_audit_claims_no_more_than_its_outcome():
    for verdict, words in [
        (REFUTED, "REFUTED: the privacy loss is at least 6 nats"),
        (EXACT, "Holds, computed exactly"),
        (STATED, "CONSISTENT: the stated noise is sufficient for the guarantee. The file cannot"),
        (SAMPLED, "Not refuted: the privacy loss is at least 2 nats"),
        (POWERLESS, "Not tested: these samples can show a privacy loss of 3 nats"),
    ]:
        assert words in report_of(verdicts=[verdict]).html()
        assert words in report_of(verdicts=[verdict]).card()
    for guarantee, verdicts, words, good in [
        (PureDP(2.0), [EXACT], "computed exactly and holds, for the audited pairs of words, and it is strong", True),
        (PureDP(2.0), [STATED], "cannot show that this noise was really drawn. If it was drawn, the guarantee", None),
        (PureDP(20.0), [STATED], "If it was drawn, the guarantee is too weak to protect on its own.", False),
        (PureDP(2.0), [SAMPLED], "tested and not refuted (evidence, not a proof), and it is strong", True),
        (PureDP(2.0), [POWERLESS], "The test could not have refuted the guarantee, which has a proof, and", None),
        (PureDP(2.0), [], "was not tested here. It has a proof, and it is strong", None),
        (PureDP(8.0), [EXACT], "words, and it says little on its own.", None),
        (PureDP(20.0), [EXACT], "words, and it is too weak to protect on its own.", False),
        (MetricDP(2.0, "euclidean"), [EXACT], "and it is too weak to protect on its own.", False),
        (NoGuarantee("it is a copy"), [], "There is no guarantee that could hold", False),
        (PureDP(2.0), [REFUTED], "NO: the guarantee was refuted.", False),
    ]:
        result = answer_of(report_of(guarantee, verdicts=verdicts), "held")
        assert words in result.words and result.good is good, words


# -- attacks and utility -------------------------------------------------------------------------------------------


def test_rows_answers_and_signs_of_attacks_follow_their_grade():
    for low, high, baseline, row, answer, good in [
        (0.24, 0.30, 0.27, "no better than chance", "no better than chance (chance level: 27)", True),
        (0.26, 0.36, 0.27, "chance explains it, but the rows are too few", "(chance level: 27, upper end of", None),
        (0.29, 0.33, 0.27, "a little better than chance", "a little better than chance (chance level: 27)", None),
        (0.45, 0.55, 0.27, "better than chance", "links 50 of 100 private texts to the right original: better", False),
        (0.75, 0.85, 0.27, "much better than chance", "links 80 of 100 private texts", False),
        (0.972, 0.986, 0.001, "nearly always right", "links 98 of 100 private texts to the right original: nea", False),
    ]:
        report = report_of(attacks=[attack_of(low, high, baseline)])
        result, page = answer_of(report, "linkage"), report.html()
        assert answer in result.words and result.good is good
        assert f'<td class="{SIGNS[good]}">{row}' in page
        assert f'<dd class="{SIGNS[good]}">{result.words}' in page


def test_rows_answers_and_signs_of_models_follow_their_grade():
    for low, high, row, good in [
        (0.45, 0.54, "no better than the baseline", False),
        (0.45, 0.70, "not shown to be better than the baseline", None),
        (0.51, 0.54, "a little better than the baseline", None),
        (0.60, 0.70, "better than the baseline", True),
        (0.97, 0.99, "nearly always right", True),
    ]:
        report = report_of(utility=[task_of(low, high)])
        result = answer_of(report, "use")
        assert result.words.startswith(f"A model trained on private rows is {row.replace('the baseline', 'chance')}: ")
        assert result.good is good
        assert f'<td class="{SIGNS[good]}">{row}' in report.html()
        assert task_of(low, high).is_useful == (low > 0.5)
    # a measured gain decides in place of the score
    assert task_of(0.45, 0.7, gain=estimate(0.05, 0.15)).is_useful
    assert not task_of(0.55, 0.7, gain=estimate(-0.05, 0.15)).is_useful


def test_a_better_number_is_not_hidden_behind_a_share_of_right_answers():
    name = "attribute inference of 'age (years)' (linear)"
    accuracy = attack_of(0.92, 0.98, 0.95, name, "accuracy", "people")
    for low, high, good in ((0.4, 0.6, None), (0.8, 0.9, False)):
        report = report_of(attacks=[accuracy, attack_of(low, high, 0.5, name, "macro-F1", "people")])
        result = answer_of(report, "attribute inference of 'age (years)'")
        assert (result.question, result.good) == ("Does it reveal 'age (years)'?", good)
    assert "macro-F1 0.85, chance level 0.50" in result.words


def test_membership_is_judged_next_to_the_success_that_a_protecting_guarantee_allows():
    for guarantee, low, high, good, words in [
        (PureDP(1.0), 0.504, 0.602, None, "better than chance, within what the guarantee allows"),
        (PureDP(1.0), 0.60, 0.70, False, "right for 65 of 100 pairs: better than chance (chance level: 50)."),
        (PureDP(1.0), 0.48, 0.54, True, "right for 51 of 100 pairs: no better than chance (chance level: 50)."),
        (PureDP(1.0), 0.40, 0.60, None, "too few to exclude more (chance level: 50, upper end of the interval: 60)."),
        (PureDP(20.0), 0.504, 0.602, False, "right for 55 of 100 pairs: better than chance (chance level: 50)."),
    ]:
        measured = attack_of(low, high, 0.5, "membership (guesses the others)", "AUC", "people")
        report = report_of(guarantee, owner_attacks=[measured], limits={"AUC": 0.566})
        result = answer_of(report, "membership")
        assert words in result.words and result.good is good
        assert (recommendation(report).decision is Decision.HAND_ON) == (good is not False)


def test_selection_helps_only_beyond_the_interval_of_its_lead():
    for low, high, words, good in [
        (0.05, 0.15, "Selection helps: a model trained on a random sample of the pool", True),
        (0.0002, 0.017, "Selection did not help", None),  # printed as 0.0
        (-0.02, 0.06, "Selection did not help: a model trained on a random sample", None),
        (-0.09, -0.02, "labelled by the release, is right more often (", None),
    ]:
        value = (low + high) / 2

        def model(name, value, **fields):
            return task_of(value - 0.02, value + 0.02, name=name, owner_only=True, **fields)

        lead = Estimate(value, low, high, 100, "people")
        models = [
            model("trained on the corpus", 0.795),
            model("the release alone: its linear model, no text", 0.78, is_rival=True),
            model("random texts of the pool, labelled by the release", 0.795 - value, is_rival=True, lead=lead),
        ]
        report = report_of(utility=models, corpus=Corpus(texts=60, pool=500))
        result = answer_of(report, "selection")
        assert words in result.words and result.good is good
        assert f"{100 * low:.1f} to {100 * high:.1f})" in result.words
        assert f", the most frequent label {100 * models[0].baseline:.0f}; difference" in result.words
        assert result.words in report.html()
        assert "andom sample of the pool" not in report.card()


# -- the recommendation --------------------------------------------------------------------------------------------


def test_columns_that_look_like_identifiers_are_named_first():
    column = column_of(NASTY, "nearly every row has another value")
    report = report_of(identifying=[column], utility=[task_of(0.6, 0.7)])
    first = answers(report)["guarantee"][0]
    assert first.good is False and "nearly every row has another value" in first.words
    for text in (report.html(), report.card()):
        assert text.index("nearly every row") < text.index("How were the texts changed?")
    assert NASTY not in report.html()
    assert "Do not share this release with the column" in report.html()
    assert "do not match the column" in report.card().lower()


def test_the_recommendation_is_first_and_names_its_reason():
    at_chance = [attack_of(0.0, 0.02, 0.001)]
    reveals = [attack_of(0.8, 0.9, attack="attribute inference of 'age' (linear)")]
    for epsilon, more, decision, words, card_words in [
        (2.0, {}, Decision.HAND_ON, "You may publish this release: ", "no other release about the same documents"),
        (8.0, {}, Decision.TO_SOME, "not with the public", "Do not pass it on"),
        (20.0, {"owner_attacks": at_chance}, Decision.TO_SOME, "whom you would trust with", ""),
        (2.0, {"attacks": reveals}, Decision.TO_SOME, "It reveals 'age': anybody who receives it", "It reveals 'age'"),
    ]:
        report = report_of(PureDP(epsilon), **more)
        result, page, card = recommendation(report), report.html(), report.card()
        assert result.decision is decision
        assert result.good is {Decision.HAND_ON: True, Decision.TO_SOME: None, Decision.NOT: False}[decision]
        assert words in result.words and result.words.count(". ") <= 3
        assert page.index("<h2>Recommendation</h2>") < page.index("<h2>Guarantee</h2>")
        assert card_words in " ".join(card.split())
        assert card.index("**Attack success:**") < card.index("## Guarantee")


def test_every_cell_of_the_recommendation_has_its_decision_and_sentence():
    """Nothing is to be published without a guarantee that protects, or if an attack clearly succeeds."""
    guarantees = {
        Level.PROTECTS: PureDP(2.0),
        Level.WEAK: PureDP(8.0),
        Level.TOO_LARGE: PureDP(20.0),
        Level.NONE: NoGuarantee("it is a copy"),
    }
    attacks = {
        Success.NOT_TESTED: [],
        Success.CHANCE: [attack_of(0.45, 0.52)],
        Success.LITTLE: [attack_of(0.45, 0.7)],
        Success.CLEAR: [attack_of(0.7, 0.8)],
        Success.NEARLY_ALL: [attack_of(0.97, 0.99)],
    }
    sentences = set()
    for level, success in ((level, success) for level in Level for success in Success):
        report = report_of(guarantees[level], attacks=attacks[success])
        result, received = recommendation(report), recommendation(report, to_recipient=True)
        assert (result.level, result.success, result.decision) == (level, success, DECISIONS[level][success])
        sentences.add(result.sentences[0])
        may_publish = level is Level.PROTECTS and success <= Success.LITTLE
        for entry in (result, received):
            assert (entry.decision is Decision.HAND_ON) == may_publish
            assert bool(re.search("You may|publish|pass it on with", entry.words)) == may_publish
            assert not re.search(r"[a-z]\(|\s[.,;]|[,;.](?=[A-Za-z])", entry.words.replace("--", ""))
        assert received.decision >= result.decision
        if success >= Success.CLEAR:
            assert "private texts can be linked to their originals" in result.sentences[0]
        for more in (
            {"checks": [Check("the data", False, "DIFFERS")]},
            {"statement": replace(report.statement, seeded=True)},
        ):
            assert recommendation(replace(report, **more)).decision is Decision.NOT
            assert recommendation(replace(report, **more), to_recipient=True).decision is Decision.NOT
        kept = replace(report, identifying=[column_of("name", "unique")])
        assert recommendation(kept).decision is Decision.NOT
        assert recommendation(kept, to_recipient=True).decision is not Decision.HAND_ON
        assert not re.search("You may|publish", recommendation(kept).words)
    assert len(sentences) == len(Level) * len(Success)


@pytest.mark.parametrize(("licence", "words"), [(None, "(none is stated)"), ("CC0-1.0", "(stated: CC0-1.0)")])
def test_publication_has_conditions(licence, words):
    """Without a comparison of draws, not even these make it good news."""
    known = {"pool": "posts", "pool_sha256": "0" * 64} | ({} if licence is None else {"pool_licence": licence})
    statement = replace(statement_of(PureDP(1.0), parameters=known, software="dptext 9"), unit="user")
    for verdict, good in ((EXACT, True), (STATED, None)):
        report = Report(title="x", statement=statement, verdicts=[verdict])
        result = recommendation(report)
        assert (result.decision, result.good) == (Decision.HAND_ON, good)
        for text in (report.html(), report.card()):
            assert "This holds if there is no other release about the same users" in text
            assert "each person has exactly one user id" in text
            assert f"the licence of the public pool allows it {words}" in text
            assert ("the software drew the stated noise (dptext 9)" in text) == (good is None)


def test_a_guarantee_for_some_only_or_with_a_large_delta_is_not_published():
    """Words of another group, and people left out by delta, are protected by no epsilon."""
    for guarantee, requirements, may_publish in [
        (PureDP(1.0), (OneGroup("words of one kind"),), False),
        (ApproxDP(1.0, 0.3), (), False),
        (PureDP(1.0), (), True),
    ]:
        statement = replace(statement_of(guarantee), condition=Condition(requirements=requirements))
        report = Report(title="x", statement=statement, verdicts=[EXACT])
        for to_recipient in (False, True):
            decision = recommendation(report, to_recipient=to_recipient).decision
            assert (decision is Decision.HAND_ON) == may_publish
