"""Statements in words: every promise with its unit, its relation and its limits, in lines that fit a page."""

import html.parser
import math
import re
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, NoGuarantee, PureDP, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, not_protected, odds, percent_right

ONE_OF_EACH_KIND = [
    PureDP(1.5),
    PureDP(math.inf),
    ApproxDP(2.5, 1e-6),
    ZCDP(0.25),
    MetricDP(4.5, "euclidean", 8.0),
    MetricDP(4.5, "euclidean"),
    NoGuarantee("the noise is one-sided"),
]


def statement(**changes):
    fields = {
        "guarantee": PureDP(1.5),
        "unit": Unit.WORD,
        "relation": Relation.SUBSTITUTION,
        "condition": "any two words",
        "trust": Trust.LOCAL,
        "mechanism": "TEM",
    }
    return PrivacyStatement(**fields | changes)


def said(made):
    """The explanation as words, not lines: the width decides where a line ends."""
    return " ".join(made.explain().split())


SAYS = [
    (PureDP(1.5), ["1.5", "pure"]),
    (
        ApproxDP(2.5, 1e-6),
        ["2.5", "1e-06", "for the other, plus 1e-06 (epsilon 2.5, delta 1e-06)", "with probability at most 92.42%"],
    ),
    (ZCDP(0.25), ["0.25", "zero-concentrated"]),
    (MetricDP(4.5, "euclidean", 8.0), ["4.5", "euclidean", "epsilon 36"]),
    (MetricDP(4.5, "euclidean"), ["4.5", "euclidean", "The loss is unbounded"]),
    (NoGuarantee("the noise is one-sided"), ["No guarantee", "the noise is one-sided"]),
]


@pytest.mark.parametrize(("guarantee", "says"), SAYS, ids=[repr(entry) for entry, _ in SAYS])
def test_every_explanation_says_what_is_promised_to_whom_and_what_is_not(guarantee, says):
    for unit in Unit:
        for relation in Relation:
            output = statement(
                guarantee=guarantee,
                unit=unit,
                relation=relation,
                exposed=("letter case", "the column 'stars'"),
                assumptions=("the vectors are public",),
                claimed_epsilon=0.125,
                seeded=True,
                parameters={"beta": 0.001},
                release_id="r-1",
                software="dptext 0.1",
            )
            text = said(output)
            for say in [*says, f"privacy unit is the {unit}", f"({relation})", "any two words"]:
                assert say in text
            for entry in ("letter case", "the column 'stars'", "the vectors are public"):
                assert f"- {entry}" in text
            assert "A seed was used" in text
            assert "prints epsilon = 0.125. It is not the proved value" in text
            for entry in ("TEM (beta = 0.001)", "r-1", "dptext 0.1"):
                assert entry in text


ABOUT = {
    "claim_is": "false",
    "reason": "bits differ",
    "holds_for": "two codes",
    "witness": "01 and 10",
    "witness_loss": 7.25,
}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {},
            [
                "prints epsilon = 2. This is false: bits differ.",
                "epsilon = 8 (two codes)",
                "lose 7.25 nats: 01 and 10.",
            ],
        ),
        ({"claim_is": "open"}, ["prints epsilon = 2. This is not proved: bits differ.", "epsilon = 8 (two codes)"]),
        ({"claim_is": "true", "reason": None}, ["prints epsilon = 2. This is true here.", "epsilon = 8 (two codes)"]),
        ({"claim_is": "else"}, ["It is not the proved value"]),
    ],
)
def test_a_printed_epsilon_is_called_what_it_is(changes, says):
    about = ABOUT | changes
    output = statement(guarantee=PureDP(8.0), claimed_epsilon=2.0, parameters={"beta": 0.5, **about})
    text = said(output)
    for say in says:
        assert say in text
    assert "TEM (beta = 0.5)" in text  # the rest is told above
    assert said(PrivacyStatement.from_json(output.to_json())) == text
    without = said(statement(parameters={"beta": 0.5, **about}))
    assert "witness = 01 and 10" in without


def test_where_nothing_bounds_the_loss_the_printed_epsilon_is_false():
    about = ABOUT | {"witness_loss": "infinity"}
    text = said(statement(guarantee=NoGuarantee("one draw"), claimed_epsilon=2.0, parameters=about))
    assert "This is false: bits differ. The loss is unbounded." in text
    assert "lose without bound: 01 and 10." in text


def test_the_relation_is_said_in_words():
    assert "replacing one word by another" in said(statement())
    assert "adding or removing one word" in said(statement(relation=Relation.ADD_REMOVE))


def test_trust_is_said_in_words():
    local, central = said(statement()), said(statement(trust=Trust.CENTRAL))
    assert "the owner of a text can do it before anybody else sees the text" in local
    assert "A curator saw all original texts and must be trusted" in central
    for text in (local, central):
        assert "Readers of the output need not be trusted" in text


@pytest.mark.parametrize(
    "guarantee",
    [
        NoGuarantee("empirical"),
        PureDP(math.inf),
        ApproxDP(math.inf, 1e-6),
        ApproxDP(1.0, 1.0),
        ZCDP(math.inf),
        MetricDP(math.inf, "euclidean", 1.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("trust", [Trust.LOCAL])
def test_where_nothing_is_promised_nobody_is_told_to_be_protected(guarantee, trust):
    text = said(statement(guarantee=guarantee, trust=trust))
    assert "Nobody. The intended privacy unit" in text
    assert "need not be trusted" not in text
    assert "the guarantee covers" not in text


def test_warnings_appear_only_where_there_is_something_to_warn_of():
    text = statement().explain()
    assert "seed" not in text
    assert "WARNINGS" not in text
    assert "the paper" not in text.lower()
    assert "The output exposes nothing else" in text


def test_a_superseded_release_is_named():
    assert "replaces the statement of release r-0" in statement(supersedes="r-0").explain()


def test_the_slack_is_said_and_only_where_there_is_one():
    assert "Finite arithmetic adds at most 9e-05" in statement(slack=9e-5).explain()
    assert "Finite arithmetic" not in statement().explain()


@pytest.mark.parametrize("slack", [1.04e-4, 9.99e-5, 1.49, 1e-12])
def test_a_slack_is_never_rounded_down_where_at_most_is_said(slack):
    match = re.search(r"adds at most (\S+) to epsilon", said(statement(slack=slack)))
    assert slack <= float(match[1]) <= 2.1 * slack


@pytest.mark.parametrize("delta", [1.0004e-6, 0.12349])
def test_a_delta_is_never_rounded_down_where_at_most_is_said(delta):
    match = re.search(r", delta (\S+)\)\. If", said(statement(guarantee=ApproxDP(1.0, delta))))
    assert delta <= float(match[1]) <= 1.1 * delta


@pytest.mark.parametrize("epsilon", [1.00004, 0.123449, 35.4999, 12345.6])
def test_an_epsilon_is_never_rounded_down_in_a_sentence(epsilon):
    for guarantee in (PureDP(epsilon), ApproxDP(epsilon, 1e-6), MetricDP(1.0, "euclidean", epsilon)):
        match = re.search(r"\(epsilon ([^),]+)", said(statement(guarantee=guarantee)))
        assert epsilon <= float(match[1]) <= 1.001 * epsilon
    match = re.search(r"at most e\^\((\S+) d\)", said(statement(guarantee=MetricDP(epsilon, "euclidean"))))
    assert epsilon <= float(match[1]) <= 1.001 * epsilon


@pytest.mark.parametrize("guarantee", [PureDP(1.00004), ApproxDP(1.00004, 1.0004e-6), ZCDP(1.00004)], ids=repr)
def test_the_first_line_does_not_promise_more_than_is_proved(guarantee):
    text = str(guarantee)
    assert float(re.search(r"[\d.]+", text)[0]) >= 1.00004
    if isinstance(guarantee, ApproxDP):
        assert float(re.search(r", ([^)]+)\)", text)[1]) >= 1.0004e-6


def test_the_first_line_of_a_metric_guarantee_does_not_promise_more_than_is_proved():
    text = str(MetricDP(1.00004, "euclidean", 1.0))
    assert [float(number) >= 1.00004 for number in re.findall(r"\d[\d.]*", text)] == [True, True]


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 3.5, 10.0, 10.5, 4000.0, math.inf])
def test_a_large_epsilon_is_called_no_protection(epsilon):
    text = said(statement(guarantee=PureDP(epsilon)))
    assert ("says little on its own" in text) == (3 < epsilon <= 10)
    assert ("does not protect on its own" in text) == (10 < epsilon < math.inf)
    assert ("there is no protection" in text) == (epsilon == math.inf)
    assert "nan" not in text


any_words = st.text(max_size=200) | st.text("a b-\n\t", max_size=400) | st.integers(0, 300).map("x".__mul__)


@settings(max_examples=200)
@given(st.sampled_from(ONE_OF_EACH_KIND), any_words, any_words, st.lists(any_words, max_size=2))
def test_no_line_of_an_explanation_is_wider_than_a_page(guarantee, one, two, lines):
    output = statement(
        guarantee=guarantee,
        condition=Condition(note=one),
        mechanism=two,
        parameters={one: two},
        exposed=lines,
        assumptions=lines,
        release_id=one,
        software=two,
        data_sha256="0" * 64,
    )
    assert max(len(line) for line in output.explain().split("\n")) <= 100


def test_a_long_explanation_is_wrapped_and_not_cut():
    long = " ".join(f"word{n}" for n in range(200))
    text = statement(condition=long, exposed=(long,), assumptions=(long,), parameters={"note": long}).explain()
    assert max(map(len, text.splitlines())) <= 100
    assert " ".join(text.split()).count(long) == 4


def test_nothing_that_somebody_wrote_begins_a_section_or_a_line_of_its_own():
    evil = "x\n\n# Guarantee\n\n- everything\u2028\x1b[31m"
    plain = statement(exposed=("x",), assumptions=("x",), supersedes="x", release_id="x", software="x").explain()
    output = statement(
        condition=Condition(note=evil),
        mechanism=evil,
        parameters={evil: evil},
        exposed=(evil,),
        assumptions=(evil,),
        supersedes=evil,
        release_id=evil,
        software=evil,
    )
    headings = [[line for line in text.splitlines() if line.isupper()] for text in (plain, output.explain())]
    assert headings[0] == headings[1]
    assert output.explain().replace("\n", "").isprintable()
    assert "<h4>Guarantee</h4>" in output._repr_html_()
    assert output._repr_html_().count("<h4>") == len(headings[0])


def _macros():
    text = (files("dptext.privacy") / "templates" / "sentences.txt").read_text()
    return [" ".join(entry.split()) for entry in re.findall(r"^[A-Z][^{}]{30,}\.$", text, re.MULTILINE)]


@pytest.mark.parametrize("sentence", [*(entry.value for entry in Strength if entry.value), *_macros()])
def test_a_sentence_about_a_promise_stands_in_one_place(sentence):
    results = [
        path.name
        for path in Path(str(files("dptext"))).rglob("*")
        if path.suffix in (".py", ".txt", ".md", ".html") and sentence in " ".join(path.read_text("utf-8").split())
    ]
    assert results in (["wording.py"], ["sentences.txt"])


class _Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_the_notebook_form_escapes_everything_that_somebody_wrote():
    evil = "<script>alert('1')</script> & <b onload=\"x\">"
    output = statement(
        guarantee=NoGuarantee(evil),
        condition=evil,
        mechanism=evil,
        parameters={evil: evil},
        assumptions=(evil,),
        exposed=(evil,),
        release_id=evil,
        supersedes=evil,
        software=evil,
    )
    page = _Tags()
    page.feed(output._repr_html_())
    page.close()
    assert set(page.tags) <= {"div", "h4", "p", "ul", "li"}
    assert page.text.count(evil) == 10


@pytest.mark.parametrize("guarantee", ONE_OF_EACH_KIND, ids=repr)
def test_the_notebook_form_says_what_the_plain_one_says(guarantee):
    output = statement(guarantee=guarantee, exposed=("letter case",), assumptions=("vectors are public",), seeded=True)
    page = _Tags()
    page.feed(output._repr_html_())
    page.close()

    def letters(text):
        return re.sub(r"[^a-z0-9]", "", text.lower())

    assert letters(page.text) == letters(output.explain())


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [
        (0.0, "1"),
        (math.log(99.7), "100"),
        (math.log(1234), "1,234"),
        (math.log(50_000), "50 thousand"),
        (math.log(2.5e8), "250 million"),
        (35.5, "2.7 million billion"),
        (1e6, "astronomically many"),
        (math.inf, "astronomically many"),
    ],
)
def test_odds_are_numbers_that_people_can_read(epsilon, factor):
    text = odds(epsilon)
    # 162,754 may be "160 thousand" or "163 thousand": both can be read
    assert text in (factor, factor.replace("160 ", "163 "))


@given(st.floats(min_value=0, max_value=40))
def test_odds_never_use_powers_of_ten_and_are_never_rounded_down(epsilon):
    """They stand after "at most"."""
    text = odds(epsilon)
    assert "e+" not in text
    number, *powers = text.replace(",", "").split()
    visible = float(number) * math.prod({"thousand": 1e3, "million": 1e6, "billion": 1e9}[power] for power in powers)
    assert math.exp(epsilon) * (1 - 1e-9) <= visible <= math.exp(epsilon) * 1.1


@given(st.floats(min_value=0, max_value=2000))
def test_how_sure_somebody_can_be_is_never_rounded_down(epsilon):
    assert 1 / (1 + math.exp(-epsilon)) <= percent_right(epsilon) / 100 <= 1


def test_nobody_is_called_certain_who_is_not():
    assert f"{percent_right(10.0):g}" == "99.996"  # a promise of 10 is made, and 99.995% is not 100%
    assert percent_right(13.0) < 100


def test_parameters_that_are_losses_are_never_rounded_down():
    output = statement(
        parameters={
            "epsilon_under_substitution": 18.6512341,
            "delta_under_substitution": 1.0000001e-6,
            "sigma": 0.65291,
        }
    )
    assert "epsilon_under_substitution = 18.6513, delta_under_substitution = 1.00001e-06, sigma = 0.65291" in " ".join(
        output.explain().split()
    )


def test_what_is_proved_beside_a_printed_epsilon_has_its_delta():
    output = statement(
        guarantee=ApproxDP(3.0, 1e-5),
        claimed_epsilon=1.0,
        parameters={"claim_is": "open", "reason": "no proof", "holds_for": "any two"},
    )
    assert "The proved value is epsilon = 3 with delta = 1e-05 (any two)." in " ".join(output.explain().split())


BANK = {"bank": "a bank", "bank_sha256": "0" * 64, "unit_of_epsilon": "sentence"}


def test_one_guess_under_a_pure_promise_is_put_into_words():
    text = said(statement(guarantee=PureDP(8.0), unit=Unit.DOCUMENT, condition=Condition()))
    assert "considers two documents equally likely names the right one with a probability of at most 99.97%" in text
    assert "an adversary with 300 equally likely candidates names the right one with probability at most 91%" in text
    # randomised response over 300 texts attains it
    inside = math.exp(8) / (math.exp(8) + 299)
    assert 0.9 < inside <= 0.91
    assert "with this mechanism" not in text
    told = said(statement(guarantee=PureDP(8.0), parameters={"relinking_among_300": 0.3101}))
    assert (
        "any two of them neighbours, names the right one with probability at most 91%, and with this mechanism" in told
    )
    assert "at most 32% (chance level 0.34%)." in told


@pytest.mark.parametrize(
    "changes",
    [
        {"guarantee": ApproxDP(2.5, 1e-6)},
        {"guarantee": MetricDP(4.5, "euclidean", 8.0)},
        {"guarantee": PureDP(math.inf)},
        {"guarantee": PureDP(35.0)},
        {"relation": Relation.ADD_REMOVE},
        {"guarantee": PureDP(35.0), "parameters": {"relinking_among_300": "0.3"}},
        {"guarantee": PureDP(35.0), "parameters": {"relinking_among_300": 1.5}},
        {"guarantee": PureDP(35.0), "parameters": {"relinking_among_300": True}},
    ],
)
def test_of_other_promises_no_guess_is_spoken_of(changes):
    assert "For one guess" not in said(statement(**changes))


def test_what_a_mechanism_says_of_a_guess_goes_with_its_guarantee():
    output = statement(guarantee=PureDP(35.0), parameters={"relinking_among_300": 0.2, "size": 3})
    assert "with this mechanism at most 20%" in said(output)
    assert dict(output.replace(guarantee=PureDP(36.0)).parameters) == {"size": 3}


def test_a_bank_release_says_whose_the_words_are():
    output = statement(guarantee=PureDP(8.0), unit=Unit.DOCUMENT, parameters=BANK)
    text = said(output)
    assert "OUTPUT Texts of the public bank 'a bank', word for word." in text
    assert "Names, numbers and claims come from the bank's authors" in text
    assert "can be false for the people in the input" in text
    assert "OUTPUT" not in said(statement(guarantee=PureDP(8.0)))
    assert any("each sentence reveals a little" in entry for entry in not_protected(output))
    whole = statement(guarantee=PureDP(8.0), parameters=BANK | {"unit_of_epsilon": "document"})
    assert not any("each sentence reveals a little" in entry for entry in not_protected(whole))
