"""The page says what the numbers say, holds everything inside it, and lets nothing foreign become markup."""

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
from dptext.methods.checks import Check
from dptext.methods.results import (
    Corpus,
    GroupGap,
    KeptColumn,
    Measurement,
    Sample,
)
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.neighbours import Condition, OneGroup, SameLayout, Stated
from dptext.privacy.wording import strength_in_brief
from dptext.reports.page import Report
from dptext.reports.summary import DECISIONS, Decision, Level, Success, answers, recommendation

NASTY = '<script>alert("x")</script>&'


def _statement(guarantee, **more):
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


def _verdict(outcome, loss, strongest=9.0, draws=None):
    return Verdict(
        outcome=outcome,
        claim=PureDP(4.0),
        method="sampled",
        loss=loss,
        allowed=4.0,
        strongest=strongest,
        witness="x against x'",
        coverage="one pair",
        draws=draws,
    )


def _gap(low, high, **more):
    return GroupGap(sentence="far apart", gap=Estimate((low + high) / 2, low, high, 100, "people"), **more)


def _attack(low, high, baseline=0.5, attack="linkage"):
    return AttackScore(
        attack=attack,
        measure="top-1",
        score=Estimate((low + high) / 2, low, high, 100, "rows"),
        baseline=baseline,
        baseline_name="chance",
    )


def _task(low, high, **more):
    return Measurement(
        name="intent",
        measure="accuracy",
        score=Estimate((low + high) / 2, low, high, 100, "rows"),
        baseline=0.5,
        baseline_name="majority class",
        **more,
    )


def _report(**more):
    return Report(title=NASTY, statement=_statement(PureDP(4.0)), **more)


def _answer(report, topic):
    [result] = [entry for section in answers(report).values() for entry in section if entry.topic == topic]
    return result


AGREE = DrawTest(agree=True, draws=1000, inputs=2, error=1e-6, witness="")
_VOID = {"meta", "img", "br", "link"}


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.sources = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def _read(page):
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_the_page_is_whole_loads_nothing_and_escapes_everything():
    report = _report(
        verdicts=[_verdict(Outcome.CONSISTENT, 1.0)],
        attacks=[_attack(0.4, 0.6)],
        utility=[_task(0.6, 0.7, detail=NASTY)],
        fairness=[_task(0.4, 0.7)],
        samples=[Sample(NASTY, NASTY)],
        command=NASTY,
        notes=[NASTY],
    )
    reader = _read(report.html())
    assert "script" not in reader.seen
    assert "link" not in reader.seen
    assert reader.sources == []
    assert reader.seen.count("svg") == 3  # a bar for each number with a chance level
    assert NASTY not in report.html()


def test_sections_without_content_are_not_there():
    headings = re.findall(r"<h2>(.*?)</h2>", _report().html())
    assert headings == ["Recommendation", "Guarantee", "Details"]


def test_the_strength_is_said_in_words():
    for guarantee, page, card in [
        (PureDP(2.0), "the right one with probability at most 88.08%", "at most 7.4 times as large"),
        (
            PureDP(20.0),
            "which of them was the input (epsilon 20). A bound of this size does not protect on its own.",
            "times as large for one",
        ),
        (ApproxDP(2.0, 1e-5), "at most 88.08% (epsilon 2, delta 1e-05)", "for the other, plus 1e-05 (epsilon 2)"),
        (
            MetricDP(2.0, "euclidean", 9.0),
            "the exact choice among words of similar meaning",
            "2 nats per unit of distance",
        ),
        (NoGuarantee("it is a copy"), "The privacy loss is unbounded", "none (epsilon inf)"),
    ]:
        report = Report(title="x", statement=_statement(guarantee))
        assert page in report.html()
        assert card in report.card()


def test_how_sure_an_attacker_can_be_is_never_rounded_down():
    for epsilon in (0.1, 1.0, 2.0, 8.0, 9.9):
        match = re.search(
            r"probability at most ([0-9.]+)%", Report(title="x", statement=_statement(PureDP(epsilon))).html()
        )
        assert 1 / (1 + math.exp(-epsilon)) <= float(match[1]) / 100 < 1.0001 / (1 + math.exp(-epsilon))


def test_a_seed_is_warned_of():
    report = Report(title="x", statement=_statement(PureDP(1.0), seeded=True))
    assert "A seed was used" in report.html()
    assert "against an adversary who knows or guesses the seed" in report.html()
    assert "A seed was used" in report.card()


def test_a_failed_check_refutes_and_is_said_first():
    report = _report(checks=[Check("the data is the data of the statement", False, "its SHA-256 DIFFERS")])
    assert report.refuted
    assert "NO: the guarantee was refuted" in report.html()
    assert "- NO: the data is the data of the statement" in report.card()
    assert not _report(checks=[Check("the data", None, "there is none")]).refuted


def test_what_the_owner_alone_should_see_is_marked_and_not_on_the_card():
    report = _report(
        owner_attacks=[_attack(0.4, 0.6)],
        utility=[_task(0.6, 0.7), _task(0.61, 0.71, owner_only=True)],
        gaps=[_gap(0.2, 0.3, is_for_release=False, owner_only=True)],
        unchanged=(7, 60),
        command="dptext report x",
    )
    assert report.has_owner_numbers
    assert report.html().count('<span class="owner">') == 9  # an attack, a model, a gap, four answers, two levels
    card = report.card()
    assert "came out unchanged" not in card
    assert "linkage" not in card
    assert "0.650" in card
    assert "0.660" not in card
    assert "far apart" not in card
    assert "dptext report" not in card
    assert "dptext report x" in report.html()


def test_groups_are_judged_by_models_of_the_release():
    for low, high, release_statement, says, good in [
        (0.2, 0.3, True, "No. A model trained on private rows serves some groups worse", False),
        (0.02, 0.08, True, "Nearly. A model trained on private rows serves some groups a little worse", None),
        (-0.02, 0.3, True, "but the rows are too few to exclude one", None),
        (-0.02, 0.05, True, "No difference between groups was shown for a model trained on private rows.", True),
        (0.2, 0.3, False, "For a model trained on original rows, a difference was shown.", True),
    ]:
        gaps = [_gap(low, high, is_for_release=release_statement)] + ([] if release_statement else [_gap(-0.02, 0.05)])
        answer = _answer(_report(gaps=gaps), "groups")
        assert says in answer.words
        assert answer.good is good


def test_a_gain_decides_where_it_was_measured():
    better = Estimate(0.1, 0.05, 0.15, 100, "rows")
    assert _task(0.45, 0.7, gain=better).is_useful
    assert not _task(0.55, 0.7, gain=Estimate(0.1, -0.05, 0.15, 100, "rows")).is_useful


def test_names_of_groups_do_not_become_markdown():
    card = _report(fairness=[Measurement(**{**vars(_task(0.6, 0.7)), "name": "a|b\n# <i>"})]).card()
    assert "| a\\|b # \\<i\\> |" in card


def test_no_name_becomes_markup_on_the_card():
    gap = GroupGap(sentence=f"the largest gap is 3 points ({NASTY!r} above 'b')", gap=_gap(0.1, 0.2).gap)
    card = _report(gaps=[gap], checks=[Check("the file", True, NASTY)]).card()
    assert not re.search(r"(?<!\\)<", card)
    assert card.startswith("# \\<script\\>")


def test_who_is_told_apart_is_not_hidden_behind_a_share_of_right_answers():
    def score(attack, measure, low, high, baseline):
        estimate = Estimate((low + high) / 2, low, high, 100, "people")
        return AttackScore(attack=attack, measure=measure, score=estimate, baseline=baseline, baseline_name="blind")

    of_age = [score("attribute inference of 'age (years)' (linear)", "accuracy", 0.92, 0.98, 0.95)]
    quiet = _report(attacks=[*of_age, score(of_age[0].attack, "macro-F1", 0.4, 0.6, 0.5)])
    loud = _report(attacks=[*of_age, score(of_age[0].attack, "macro-F1", 0.8, 0.9, 0.5)])
    results = [_answer(report, "attribute inference of 'age (years)'") for report in (quiet, loud)]
    assert {entry.question for entry in results} == {"Does it reveal 'age (years)'?"}
    assert [entry.good for entry in results] == [None, False]
    assert "macro-F1 0.85, chance level 0.50" in results[1].words


def test_a_verdict_is_no_more_than_it_is():
    for verdict, says in [
        (_verdict(Outcome.REFUTED, 6.0), "REFUTED: 6 nats"),
        (_verdict(Outcome.EXACT, 3.9, draws=AGREE), "Holds, computed exactly"),
        (_verdict(Outcome.EXACT, 3.9), "CONSISTENT: the stated noise is sufficient for the guarantee. The file cannot"),
        (_verdict(Outcome.CONSISTENT, 2.0), "Not refuted: 2 nats"),
        (_verdict(Outcome.CONSISTENT, 2.0, strongest=3.0), "Not tested: these samples can show 3 nats"),
    ]:
        assert says in _report(verdicts=[verdict]).html()
        assert says in _report(verdicts=[verdict]).card()


def test_what_is_said_of_an_attack_is_its_grade():
    """In the row, in the answer, and in both signs."""
    for low, high, baseline, row, answer, good in [
        (0.24, 0.30, 0.27, "no better than chance", "no better than chance (chance level: 27)", True),
        (
            0.26,
            0.36,
            0.27,
            "chance explains it, but the rows are too few",
            "too few to exclude more (chance level: 27, upper end of the interval: 36)",
            None,
        ),
        (0.29, 0.33, 0.27, "a little better than chance", "a little better than chance (chance level: 27)", None),
        (0.45, 0.55, 0.27, "better than chance", "links 50 of 100 private texts to the right original: better", False),
        (0.75, 0.85, 0.27, "much better than chance", "links 80 of 100 private texts", False),
        (0.972, 0.986, 0.001, "nearly always right", "links 98 of 100 private texts to the right original: nea", False),
    ]:
        report = _report(attacks=[_attack(low, high, baseline)])
        result = _answer(report, "linkage")
        assert answer in result.words
        assert result.good is good
        sign = {True: "good", None: "plain", False: "bad"}[good]
        page = report.html()
        assert f'<td class="{sign}">{row}' in page
        assert f'<dd class="{sign}">{result.words}' in page


def test_what_is_said_of_use_is_its_grade():
    for low, high, row, good in [
        (0.45, 0.54, "no better than the baseline", False),
        (0.45, 0.70, "not shown to be better than the baseline", None),
        (0.51, 0.54, "a little better than the baseline", None),
        (0.60, 0.70, "better than the baseline", True),
        (0.97, 0.99, "nearly always right", True),
    ]:
        report = _report(utility=[_task(low, high)])
        result = _answer(report, "use")
        words = row.replace("the baseline", "chance")
        assert result.words.startswith(f"A model trained on private rows is {words}: ")
        assert result.good is good
        sign = {True: "good", None: "plain", False: "bad"}[good]
        assert f'<td class="{sign}">{row}' in report.html()


EXACT, STATED, SAMPLED, BLIND = (
    _verdict(Outcome.EXACT, 3.9, draws=AGREE),
    _verdict(Outcome.EXACT, 3.9),
    _verdict(Outcome.CONSISTENT, 2.0),
    _verdict(Outcome.CONSISTENT, 2.0, strongest=3.0),
)


def test_whether_a_promise_holds_and_whether_it_protects_are_one_sentence():
    for guarantee, verdicts, words, good in [
        (PureDP(2.0), [EXACT], "The guarantee was computed exactly and holds, for the audited pairs of words", True),
        (PureDP(2.0), [EXACT], ", and it is strong enough to protect each document on its own.", True),
        (
            PureDP(2.0),
            [STATED],
            "cannot show that this noise was really drawn. If it was drawn, the guarantee is",
            None,
        ),
        (PureDP(20.0), [STATED], "If it was drawn, the guarantee is too weak to protect on its own.", False),
        (PureDP(2.0), [SAMPLED], "tested and not refuted, which is evidence and no proof, and it is strong", True),
        (PureDP(2.0), [BLIND], "The test could not have refuted the guarantee, which has a proof, and", None),
        (PureDP(2.0), [], "was not tested here. It has a proof, and it is strong", None),
        (PureDP(8.0), [EXACT], "words, and it says little on its own.", None),
        (PureDP(20.0), [EXACT], "words, and it is too weak to protect on its own.", False),
        (PureDP(20.0), [SAMPLED], "and no proof, and it is too weak to protect on its own.", False),
        (MetricDP(2.0, "euclidean"), [EXACT], "and it is too weak to protect on its own.", False),
        (NoGuarantee("it is a copy"), [], "There is no guarantee that could hold", False),
        (PureDP(2.0), [_verdict(Outcome.REFUTED, 6.0)], "NO: the guarantee was refuted.", False),
    ]:
        report = Report(title="x", statement=_statement(guarantee), verdicts=verdicts)
        result = _answer(report, "held")
        assert words in result.words
        assert result.good is good
        assert "Is the promise true?" not in report.html()


def test_who_is_in_it_is_judged_beside_what_a_promise_that_protects_allows():
    for guarantee, low, high, good, says in [
        (PureDP(1.0), 0.504, 0.602, None, "better than chance, within what the guarantee allows"),
        (
            PureDP(1.0),
            0.60,
            0.70,
            False,
            "right for 65 of 100 pairs: better than chance (chance level: 50).",
        ),  # more than the noise allows
        (PureDP(1.0), 0.48, 0.54, True, "right for 51 of 100 pairs: no better than chance (chance level: 50)."),
        (PureDP(1.0), 0.40, 0.60, None, "too few to exclude more (chance level: 50, upper end of the interval: 60)."),
        (
            PureDP(20.0),
            0.504,
            0.602,
            False,
            "right for 55 of 100 pairs: better than chance (chance level: 50).",
        ),  # and the promise does not protect
    ]:
        measured = AttackScore(
            attack="membership (guesses the others)",
            measure="AUC",
            score=Estimate((low + high) / 2, low, high, 900, "people"),
            baseline=0.5,
            baseline_name="chance",
        )
        report = Report(title="x", statement=_statement(guarantee), owner_attacks=[measured], limits={"AUC": 0.566})
        result = _answer(report, "membership")
        assert says in result.words
        assert result.good is good
        decision = recommendation(report).decision
        assert (decision is Decision.HAND_ON) == (good is not False)


def test_a_promise_that_a_seed_voids_is_no_good_news():
    report = Report(title="x", statement=_statement(PureDP(1.0), seeded=True), verdicts=[EXACT])
    result = _answer(report, "held")
    assert result.good is False
    assert "A seed was used" in result.words


def test_texts_that_came_out_unchanged_are_bad_news_where_no_promise_protects():
    for epsilon, unchanged, good, says in [
        (20.0, 0, True, "None of the 60 texts that were compared"),
        (20.0, 284, False, "284 of the 2,000 texts that were compared came out word for word"),
        (8.0, 1, False, "apart from capital letters, numbers and addresses."),
        (2.0, 3, None, "The guarantee limits how well a reader of the release can tell which ones."),
    ]:
        report = Report(
            title="x", statement=_statement(PureDP(epsilon)), unchanged=(unchanged, 2000 if unchanged else 60)
        )
        result = _answer(report, "unchanged")
        assert (result.good, result.owner_only) == (good, True)
        assert says in result.words
        assert "came out unchanged" not in report.card()


def test_columns_that_look_like_identifiers_stand_first_on_page_and_card():
    column = KeptColumn(name=NASTY, reasons=("nearly every row has another value",))
    report = _report(identifying=[column], utility=[_task(0.6, 0.7)])
    first = answers(report)["guarantee"][0]
    assert first.good is False
    assert "nearly every row has another value" in first.words
    page, card = report.html(), report.card()
    assert page.index("nearly every row") < page.index("How were the texts changed?")
    assert card.index("nearly every row") < card.index("How were the texts changed?")
    assert NASTY not in page
    assert "Do not share this release with the column" in page
    assert "do not match the column" in card.lower()
    assert not any(answer.topic == "identifying" for answer in answers(_report())["guarantee"])


def test_the_recommendation_is_first_and_follows():
    for guarantee, more, decision, says, to_others in [
        (
            PureDP(2.0),
            {},
            Decision.HAND_ON,
            "You may publish this release: ",
            "there is no other release about the same documents",
        ),
        (PureDP(8.0), {}, Decision.TO_SOME, "not with the public", "Do not pass it on"),
        (
            PureDP(8.0),
            {"owner_attacks": [_attack(0.002, 0.02, 0.001)]},
            Decision.TO_SOME,
            "that no attack clearly succeeded proves nothing",
            "Do not pass it on",
        ),
        (
            PureDP(8.0),
            {"owner_attacks": [_attack(0.4, 0.5, 0.001)]},
            Decision.TO_SOME,
            "and private texts can be linked to their originals",
            "Do not pass it on",
        ),
        (
            PureDP(20.0),
            {"owner_attacks": [_attack(0.97, 0.99, 0.001)]},
            Decision.NOT,
            "Do not share this release with anybody who may not see the original texts",
            "Treat this release like the texts that it was made from",
        ),
        (PureDP(20.0), {}, Decision.NOT, "no attack was tried", "Treat this release like"),
        (
            PureDP(20.0),
            {"owner_attacks": [_attack(0.0, 0.02, 0.001)], "unchanged": (3, 90)},
            Decision.NOT,
            "some texts came out unchanged",
            "Treat this release like",
        ),
        (
            PureDP(20.0),
            {"owner_attacks": [_attack(0.0, 0.02, 0.001)], "unchanged": (0, 90)},
            Decision.TO_SOME,
            "whom you would trust with the original texts",
            "Treat this release like",
        ),
        (
            PureDP(2.0),
            {"attacks": [_attack(0.8, 0.9, attack="attribute inference of 'age' (linear)")]},
            Decision.TO_SOME,
            "It reveals 'age': anybody who receives it must be allowed to know that",
            "It reveals 'age'",
        ),
        (
            PureDP(2.0),
            {"checks": [Check("the data", False, "DIFFERS")]},
            Decision.NOT,
            "Do not share this release: its guarantee was refuted.",
            "Do not rely on this release",
        ),
    ]:
        report = Report(title="x", statement=_statement(guarantee), **more)
        result = recommendation(report)
        assert result.decision is decision
        assert result.good is {Decision.HAND_ON: True, Decision.TO_SOME: None, Decision.NOT: False}[decision]
        assert says in result.words
        assert result.words.count(". ") <= 3
        page, card = report.html(), report.card()
        assert page.count("<h2>Recommendation</h2>") == 1
        assert page.index("<h2>Recommendation</h2>") < page.index("<h2>Guarantee</h2>")
        assert to_others in " ".join(card.split())
        assert card.index("**Attack success:**") < card.index("## Guarantee")


@pytest.mark.parametrize(("licence", "says"), [(None, "(none is stated)"), ("CC0-1.0", "(stated: CC0-1.0)")])
def test_a_release_is_for_anybody_under_conditions_only(licence, says):
    """Without a draw that was compared, not even these make it good news."""
    known = {"pool": "posts", "pool_sha256": "0" * 64} | ({} if licence is None else {"pool_licence": licence})
    statement = replace(_statement(PureDP(1.0), parameters=known, software="dptext 9"), unit="user")
    for verdict, good in ((EXACT, True), (STATED, None)):
        report = Report(title="x", statement=statement, verdicts=[verdict])
        result = recommendation(report)
        assert (result.decision, result.good) == (Decision.HAND_ON, good)
        for text in (report.html(), report.card()):
            assert "This holds if there is no other release about the same users" in text
            assert "each person has exactly one user id" in text
            assert f"the licence of the public pool allows it {says}" in text
            assert ("the software drew the stated noise (dptext 9)" in text) == (good is None)
            assert not re.search("(?i)anybody: the|whatever else", text)


def test_a_check_that_used_original_texts_is_on_no_card_unless_it_failed():
    check = Check("the noise has the stated distribution", True, "1.003 times", owner_only=True)
    report = _report(verdicts=[STATED], checks=[check])
    assert report.has_owner_numbers
    assert "agrees with it" in report.html()
    assert "agrees with it" not in report.card()
    assert check.name not in report.card()
    failed = _report(verdicts=[STATED], checks=[replace(check, passed=False)])
    assert failed.refuted
    assert f"NO: {check.name}" in failed.card()
    assert "1.003" not in failed.card()


@pytest.mark.parametrize(
    ("guarantee", "requirements"),
    [(PureDP(1.0), (OneGroup("words of one kind"),)), (ApproxDP(1.0, 0.3), ())],
)
def test_a_promise_to_some_only_or_with_a_large_delta_is_not_for_anybody(guarantee, requirements):
    """Words of another group, and those whom delta leaves out, are protected by no epsilon."""
    statement = replace(_statement(guarantee), condition=Condition(requirements=requirements))
    report = Report(title="x", statement=statement, verdicts=[EXACT])
    assert recommendation(report).decision is not Decision.HAND_ON
    assert recommendation(report, to_recipient=True).decision is not Decision.HAND_ON
    whole = replace(_statement(PureDP(1.0)), condition=Condition())
    assert recommendation(Report(title="x", statement=whole)).decision is Decision.HAND_ON


def test_a_large_delta_does_not_protect_in_words():
    words, good = strength_in_brief(_statement(ApproxDP(1.0, 0.3)))
    assert good is False
    assert "does not protect on its own" in words
    assert "delta 0.3" in words
    assert strength_in_brief(_statement(ApproxDP(1.0, 1e-6)))[1] is None


def test_no_number_of_the_owner_decides_what_a_card_says():
    """The same card, whatever the originals showed."""
    cards = [
        Report(title="x", statement=_statement(PureDP(20.0)), **more).card().replace(_MORE, "")
        for more in (
            {},
            {"owner_attacks": [_attack(0.97, 0.99, 0.001)], "unchanged": (50, 60)},
            {"owner_attacks": [_attack(0.0, 0.01, 0.001)], "utility": [_task(0.4, 0.5, owner_only=True)]},
        )
    ]
    assert len(set(cards)) == 1


_MORE = "More was measured with the original texts; those numbers are the owner's and not on this card.\n\n"


def test_a_verdict_beside_a_failed_check_is_not_of_this_file():
    failed = _report(checks=[Check("the guarantee follows", False, "epsilon differs")], verdicts=[EXACT])
    for visible in (failed.html(), failed.card()):
        assert "Holds, computed exactly" not in visible
        assert "KEPT" not in visible
        assert "does not hold for this file" in visible
    assert "NOT ABOUT THIS FILE" in failed.html()


def test_use_counts_only_beyond_the_baseline():
    assert _task(0.6, 0.7).is_useful
    assert not _task(0.45, 0.7).is_useful


def test_the_card_is_markdown_with_tables():
    card = _report(
        attacks=[_attack(0.4, 0.6)],
        utility=[_task(0.6, 0.7)],
    ).card()
    assert "| linkage | top-1 | 0.500 [0.400, 0.600] | 0.500 (chance) |" in card


def test_who_is_not_a_neighbour_is_not_said_to_be_protected():
    """Words of two groups are told apart with certainty, and so are layouts: the sentence must not say "any two"."""
    limited = _statement(PureDP(2.0)).replace(
        condition=Condition(requirements=(Stated("any two texts"), SameLayout(), OneGroup("2 groups")))
    )
    page = Report(title="x", statement=limited).html()
    strength = re.search(r"How strong is the guarantee\?.*?guesses the right one", page, re.DOTALL)[0]
    assert "any two texts are equally likely" not in strength
    assert "words of one group of the public partition" in strength


GUARANTEES = {
    Level.PROTECTS: PureDP(2.0),
    Level.WEAK: PureDP(8.0),
    Level.TOO_LARGE: PureDP(20.0),
    Level.NONE: NoGuarantee("it is a copy"),
}
ATTACKS = {
    Success.NOT_TESTED: [],
    Success.CHANCE: [_attack(0.45, 0.52)],
    Success.LITTLE: [_attack(0.45, 0.7)],
    Success.CLEAR: [_attack(0.7, 0.8)],
    Success.NEARLY_ALL: [_attack(0.97, 0.99)],
}


def test_every_cell_of_the_recommendation_has_its_decision_and_sentence():
    """Nothing is to be published without a guarantee that protects, or where an attack clearly succeeds."""
    sentences = set()
    for level, guarantee in GUARANTEES.items():
        for success, attacks in ATTACKS.items():
            report = Report(title="x", statement=_statement(guarantee), attacks=attacks)
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
            kept = replace(report, identifying=[KeptColumn(name="name", reasons=("unique",))])
            assert recommendation(kept).decision is Decision.NOT
            assert recommendation(kept, to_recipient=True).decision is not Decision.HAND_ON
            assert not re.search("You may|publish", recommendation(kept).words)
    assert len(sentences) == len(Level) * len(Success)


def test_the_page_says_when_selection_adds_nothing():
    for low, high, says, good in [
        (0.05, 0.15, "Selecting texts helps: a model trained on random texts of the pool", True),
        (0.0002, 0.017, "Selecting texts adds nothing that this test shows", None),  # printed as 0.0
        (-0.02, 0.06, "Selecting texts adds nothing that this test shows: a model trained on random texts", None),
        (-0.09, -0.02, "labelled by the release, is right more often (", None),
    ]:
        value = (low + high) / 2

        def model(what, value, lead=None, texts=None):
            text = replace(_task(value - 0.02, value + 0.02), name=what, owner_only=True, is_rival=lead is not None)
            return replace(text, lead=lead and Estimate(*lead, 100, "people"), texts=texts)

        models = [
            model("trained on the corpus", 0.795, texts=60),
            model("the release alone: its linear model, no text", 0.78, (0.015, -0.01, 0.03)),
            model("random texts of the pool, labelled by the release", 0.795 - value, (value, low, high), 60),
        ]
        report = _report(utility=models, corpus=Corpus(texts=60, pool=500))
        result = _answer(report, "selection")
        assert says in result.words
        assert result.good is good
        assert f"{100 * low:.1f} to {100 * high:.1f})" in result.words
        assert ("the release as a classifier (right for 78 of 100)" in result.words) == (good is None)
        assert result.words in report.html()
        assert "andom texts of the pool" not in report.card()
