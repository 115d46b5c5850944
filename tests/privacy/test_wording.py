"""Statements in words: every guarantee with its unit, its relation and its limits, in lines that fit a page."""

import html.parser
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, NoGuarantee, PureDP, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import odds, percent_right
from statements import statement

ONE_OF_EACH_KIND = [
    PureDP(1.5),
    PureDP(math.inf),
    ApproxDP(2.5, 1e-6),
    ZCDP(0.25),
    MetricDP(4.5, "euclidean", 8.0),
    MetricDP(4.5, "euclidean"),
    NoGuarantee("the noise is one-sided"),
]


def one_line(statement):
    """The explanation as words, not lines: the width decides where a line ends."""
    return " ".join(statement.explain().split())


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
                "a loss of 7.25 nats: 01 and 10.",
            ],
        ),
        ({"claim_is": "open"}, ["prints epsilon = 2. This is not proved: bits differ.", "epsilon = 8 (two codes)"]),
        ({"claim_is": "true", "reason": None}, ["prints epsilon = 2. This is true here.", "epsilon = 8 (two codes)"]),
        ({"claim_is": "else"}, ["It differs from the proved value"]),
    ],
)
def test_a_printed_epsilon_is_called_what_it_is(changes, says):
    about = ABOUT | changes
    output = statement(guarantee=PureDP(8.0), claimed_epsilon=2.0, parameters={"beta": 0.5, **about})
    text = one_line(output)
    for say in says:
        assert say in text
    assert "TEM (beta = 0.5)" in text  # the rest is explained above
    assert one_line(PrivacyStatement.from_json(output.to_json())) == text
    without = one_line(statement(parameters={"beta": 0.5, **about}))
    assert "witness = 01 and 10" in without


def test_where_nothing_bounds_the_loss_the_printed_epsilon_is_false():
    about = ABOUT | {"witness_loss": "infinity"}
    text = one_line(statement(guarantee=NoGuarantee("one draw"), claimed_epsilon=2.0, parameters=about))
    assert "This is false: bits differ. The loss is unbounded." in text
    assert "an unbounded loss: 01 and 10." in text


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
    text = one_line(statement(guarantee=guarantee, trust=trust))
    assert "There is no protection. The intended privacy unit" in text
    assert "need not be trusted" not in text
    assert "the guarantee covers" not in text


@pytest.mark.parametrize("epsilon", [1.00004, 0.123449, 35.4999, 12345.6])
def test_an_epsilon_is_never_rounded_down_in_a_sentence(epsilon):
    for guarantee in (PureDP(epsilon), ApproxDP(epsilon, 1e-6), MetricDP(1.0, "euclidean", epsilon)):
        match = re.search(r"\(epsilon ([^),]+)", one_line(statement(guarantee=guarantee)))
        assert epsilon <= float(match[1]) <= 1.001 * epsilon
    match = re.search(r"at most e\^\((\S+) d\)", one_line(statement(guarantee=MetricDP(epsilon, "euclidean"))))
    assert epsilon <= float(match[1]) <= 1.001 * epsilon
    delta = epsilon / 1e6
    match = re.search(r", delta (\S+)\)\. If", one_line(statement(guarantee=ApproxDP(1.0, delta))))
    assert delta <= float(match[1]) <= 1.1 * delta


def test_the_first_line_does_not_promise_more_than_is_proved():
    for guarantee in (PureDP(1.00004), ApproxDP(1.00004, 1.0004e-6), ZCDP(1.00004), MetricDP(1.00004, "l1", 1.00004)):
        text = str(guarantee).replace("l1", "")
        numbers = [float(number) for number in re.findall(r"\d[\d.]*(?:e-\d+)?", text)]
        assert all(number >= 1.00004 or 1.0004e-6 <= number < 1.1e-6 for number in numbers)
        assert numbers


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 3.5, 10.0, 10.5, 4000.0, math.inf])
def test_a_large_epsilon_is_called_no_protection(epsilon):
    text = one_line(statement(guarantee=PureDP(epsilon)))
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
    assert f"{percent_right(10.0):g}" == "99.996"  # 99.995% is not 100%
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


def test_one_guess_under_a_pure_promise_is_put_into_words():
    text = one_line(statement(guarantee=PureDP(8.0), unit=Unit.DOCUMENT, condition=Condition()))
    assert "considers two documents equally likely names the right one with a probability of at most 99.97%" in text
    assert "an adversary with 300 equally likely candidates names the right one with probability at most 91%" in text
    # randomised response over 300 texts attains it
    inside = math.exp(8) / (math.exp(8) + 299)
    assert 0.9 < inside <= 0.91
    assert "with this mechanism" not in text
    known = one_line(statement(guarantee=PureDP(8.0), parameters={"relinking_among_300": 0.3101}))
    assert (
        "any two of them neighbours, names the right one with probability at most 91%, and with this mechanism" in known
    )
    assert "at most 32% (chance level 0.34%)." in known


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
    assert "For one guess" not in one_line(statement(**changes))


def test_what_a_mechanism_says_of_a_guess_goes_with_its_guarantee():
    output = statement(guarantee=PureDP(35.0), parameters={"relinking_among_300": 0.2, "size": 3})
    assert "with this mechanism at most 20%" in one_line(output)
    assert dict(output.replace(guarantee=PureDP(36.0)).parameters) == {"size": 3}
