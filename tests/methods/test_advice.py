"""Which way is advised: each answer changes the table as it should, and nothing of the rows is in it but counts."""

import dataclasses
import json

import pytest

import dptext
from dptext.errors import DataError, MissingExtraError, ParameterError
from dptext.methods.advise import Fit
from dptext.methods.base import PROTECTING
from dptext.methods.data import QUESTIONS
from dptext.privacy.wording import Strength
from methods.conftest import SECRET, made_up_rows

METHODS = {"synthetic corpus", "shared word vectors", "texts of a bank", "private vectors", "words"}


@pytest.fixture(scope="module")
def single():
    """One text each of 300 people."""
    return made_up_rows(people=300, each=1)


@pytest.fixture(scope="module")
def unlabelled():
    """The same without a column but the text."""
    return [{"note": row["note"]} for row in made_up_rows(people=300, each=1)]


def fits(found):
    return {method.name: method.fit for method in found.methods}


def test_without_answers_no_method_is_excluded_and_none_is_recommended(advise, rows):
    advice = advise(rows)
    assert fits(advice) == dict.fromkeys(METHODS, Fit.POSSIBLE)
    assert advice.recommended is None
    assert "No recommendation yet" in advice.recommendation


@pytest.mark.parametrize(
    ("purpose", "trust", "recommended"),
    [
        ("read", "central", "synthetic corpus"),
        ("read", "local", "texts of a bank"),
        ("classify", "central", "synthetic corpus"),
        ("classify", "local", "texts of a bank"),
        ("devices", "local", "private vectors"),
        ("devices", "central", "private vectors"),
        ("statistics", "central", "synthetic corpus"),
        ("vectors", "central", None),  # too few people
        ("vectors", "local", None),
    ],
)
def test_purpose_and_trust_decide(advise, single, purpose, trust, recommended):
    advice = advise(single, purpose=purpose, trust=trust, recipient="partner")
    assert (None if advice.recommended is None else advice.recommended.name) == recommended
    assert advice.recommendation.count(". ") == 1, "two sentences"
    if trust == "local":
        assert fits(advice)["synthetic corpus"] is fits(advice)["shared word vectors"] is Fit.UNSUITABLE
    assert [method.fit for method in advice.methods] == sorted(
        (method.fit for method in advice.methods), key=list(Fit).index
    )


def test_a_purpose_rules_out_what_does_not_serve_it(advise, single):
    assert fits(advise(single, purpose="read"))["private vectors"] is Fit.UNSUITABLE
    assert fits(advise(single, purpose="vectors"))["texts of a bank"] is Fit.UNSUITABLE
    assert fits(advise(single, purpose="devices"))["synthetic corpus"] is Fit.UNSUITABLE


def test_for_anybody_to_have_a_bound_that_does_not_protect_is_ruled_out(advise, single):
    kept, shared = (fits(advise(single, purpose="read", recipient=entry)) for entry in ("colleagues", "public"))
    assert kept["words"] is Fit.POSSIBLE
    assert shared["words"] is Fit.UNSUITABLE
    assert shared["texts of a bank"] is not Fit.UNSUITABLE


def test_a_person_with_many_texts_pays_for_each_under_a_local_promise(advise, rows):
    advice = advise(rows, purpose="read", recipient="public", trust="local")
    bank = advice.method("texts of a bank")
    assert (bank.texts, bank.statement.epsilon, bank.person.epsilon) == (5, PROTECTING, 5 * PROTECTING)
    assert bank.fit is Fit.UNSUITABLE
    assert "A person with 5 texts: epsilon 15." in bank.guarantee
    assert advice.recommended is None
    assert advice.method("synthetic corpus").person is None  # its unit is the person


def test_too_few_people_is_said_with_a_number_that_would_do(advise):
    few = advise(made_up_rows(people=4, each=6), purpose="read", trust="central").method("synthetic corpus")
    assert few.fit is Fit.UNSUITABLE
    assert few.reasons[0].startswith("Too few people for any epsilon that protects: 4 here")
    assert advise(made_up_rows(people=1, each=1), purpose="read", trust="central").recommended.name != few.name
    several = advise(made_up_rows(people=60, each=1), purpose="read", trust="central").method("synthetic corpus")
    assert several.reasons[0].startswith("Too few people for epsilon 1: 60 here")
    many = advise(made_up_rows(people=2000, each=1), purpose="read", trust="central").method("synthetic corpus")
    assert many.fit is Fit.RECOMMENDED


def test_without_a_column_of_people_single_texts_are_protected(advise, unlabelled):
    advice = advise(unlabelled, purpose="read", trust="central")
    assert str(advice.method("synthetic corpus").statement.unit) == "document"
    assert "--unit document" in advice.method("synthetic corpus").assessment.commands[0]
    assert "--user" in " ".join(advice.method("synthetic corpus").reasons)


def test_for_a_classifier_the_release_itself_comes_first(advise, single):
    way = advise(single, purpose="classify", trust="central", recipient="partner").method("synthetic corpus")
    output, labelled = way.assessment.commands[-2:]
    assert output.startswith("dptext synthesize ")
    assert labelled.startswith("dptext classify NEW.jsonl --distribution ")
    place = output.partition("-o ")[2].split()[0]
    assert f"--distribution {place}.distribution " in labelled.replace("\\\n", " ")
    assert "--text note" in labelled
    assert any("try the release itself first" in reason for reason in way.reasons)
    for purpose in (None, "read"):
        other = advise(single, purpose=purpose, trust="central").method("synthetic corpus")
        assert not any("classif" in command for command in (*other.assessment.commands, *other.reasons))


def test_a_classifier_needs_labels(advise, unlabelled):
    advice = advise(unlabelled, purpose="classify", trust="central")
    assert advice.recommended is None
    assert "--label" in " ".join(advice.method("synthetic corpus").reasons)


def test_each_way_that_can_protect_has_an_epsilon_that_does_and_the_other_says_that_it_does_not(advise, single):
    for way in advise(single).methods:
        strength = Strength.of(way.statement.epsilon)
        assert (strength is Strength.PROTECTS) == (way.name != "words")
        assert (Strength.TOO_LARGE.value in way.guarantee) == (way.name == "words")


def test_promises_are_those_of_the_real_statements(advise, single):
    advice = advise(single)
    assert str(advice.method("synthetic corpus").statement.guarantee) == "(1, 1e-06)-differential privacy"
    assert advice.method("shared word vectors").statement.unit == "user"
    assert advice.method("texts of a bank").statement.mechanism == "BankRewriter"
    assert advice.method("private vectors").statement.guarantee == dptext.PureDP(PROTECTING)
    assert advice.method("words").statement.guarantee.kind == "metric"


def test_a_package_that_is_missing_is_said_with_its_line_and_the_advice_stands(advise, single, toy):
    class Bare(type(toy)):
        @property
        def vectors(self):
            raise MissingExtraError('the vectors need the package; install it with: pip install "dptext[glove]"')

    bare = Bare(**{field.name: getattr(toy, field.name) for field in dataclasses.fields(toy)})
    advice = advise(single, public=bare, purpose="read", trust="central", recipient="public")
    assert len(advice.methods) == len(METHODS)
    assert 'pip install "dptext[glove]"' in advice.method("words").assessment.commands
    assert advice.method("words").statement is None
    without = {way.name for way in advice.methods if way.assessment.commands[0] != 'pip install "dptext[glove]"'}
    assert without == {"synthetic corpus", "texts of a bank"}  # the vectors in the package are enough for these
    for way in advice.methods:
        if way.name != "words":
            with_all = advise(single).method(way.name).statement
            assert (way.statement.guarantee, way.statement.unit) == (with_all.guarantee, with_all.unit)
            assert (way.statement.relation, way.statement.trust) == (with_all.relation, with_all.trust)


def test_the_number_of_people_enters_no_command(advise):
    for people in (37, 1234):
        advice = advise(made_up_rows(people=people, each=1))
        assert not any(
            str(people) in line or f"{people:,}" in line for way in advice.methods for line in way.assessment.commands
        )
        assert "-n 5000" in advice.method("synthetic corpus").assessment.commands[0]


@pytest.mark.parametrize("answers", [{}, {"purpose": "read", "recipient": "public", "trust": "local"}])
def test_no_value_of_the_rows_is_anywhere(advise, rows, answers):
    advice = advise(rows, **answers)
    for dump in (str(advice), repr(advice), advice._repr_html_(), json.dumps(advice.as_dict()), str(advice.methods)):
        assert SECRET not in dump
        assert "nobody spoke" not in dump


def test_columns_that_may_identify_are_named(advise, rows):
    advice = advise(rows)
    assert {column.name for column in advice.columns if column.reasons} >= {"author", "mail", "day"}
    assert "mail " in str(advice)
    assert "<code>mail</code>" in advice._repr_html_()


def test_the_page_is_eighty_columns_wide_and_says_whose_it_is(advise, rows):
    for answers in ({}, {"purpose": "vectors", "recipient": "public"}):
        page = str(advise(rows, **answers))
        assert max(map(len, page.split("\n"))) <= 80
        assert len(page.split("\n")) <= 60
        assert " ".join(page.split()).startswith(advise(rows, **answers).recommendation)
        assert "For you alone" in page
    assert "for the owner" in repr(advise(rows))
    assert advise(rows).as_dict()["for_the_owner_only"]


def test_a_file_without_a_line_of_names_does_not_show_a_row_as_names(advise, tmp_path):
    path = tmp_path / "plain.csv"
    for line in (f"{SECRET} wrote all of this line and it is no name of a column,7", f"{SECRET},Ann"):
        path.write_text(f"{line}\n" + "a text of some words,8\n" * 30)
        with pytest.raises(DataError, match="the first line may be a row") as caught:
            advise(path)
        assert SECRET not in str(caught.value)
    assert advise(path, text=SECRET).data.roles.text == SECRET  # who names it knows that it is a name


def test_previews_are_of_public_texts_five_of_each_and_the_same_again(advise, rows, toy):
    first, second = advise(rows), advise(rows)
    for name in ("texts of a bank", "words"):
        pairs = first.method(name).assessment.preview.pairs
        assert [before for before, _ in pairs] == list(toy.previewed)
        assert pairs == second.method(name).assessment.preview.pairs
    output = first.method("synthetic corpus").assessment.preview.pairs
    assert len(output) == 5
    assert {text for _, text in output} <= set(toy.texts)


def test_html_is_escaped(advise):
    rows = [{"<b>x</b>": f"some words of a text that is long enough to be one {n}"} for n in range(60)]
    assert "<b>x</b>" not in advise(rows)._repr_html_()


def test_answers_that_there_are_not():
    for question in QUESTIONS:
        with pytest.raises(ParameterError, match=f"{question.name} must be one of"):
            dptext.advise(["one text"], **{question.name: "whatever"})


def test_a_way_that_there_is_not(advise, rows):
    with pytest.raises(KeyError, match="the methods are"):
        advise(rows).method("none")
