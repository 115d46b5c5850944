"""Advice: the answers decide, the figures come from public texts, and no value of a row is printed."""

import dataclasses
import json

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, MissingExtraError, ParameterError
from dptext.methods.advise import Fit
from dptext.methods.base import BUNDLED, PROTECTING, PublicTexts
from dptext.methods.data import utterances
from dptext.privacy.wording import Strength
from evaluation.languages import TEXTS as LANGUAGES
from methods.conftest import SECRET, made_up_rows

METHODS = {"synthetic corpus", "text summary", "shared word vectors", "texts of a bank", "private vectors", "words"}
LOCAL = {"purpose": "read", "recipient": "public", "trust": "local"}


@pytest.fixture(scope="module")
def single():
    """One text each of 300 people."""
    return made_up_rows(people=300, texts=1)


@pytest.fixture(scope="module")
def unlabelled():
    """The same with only the column of texts."""
    return [{"note": row["note"]} for row in made_up_rows(people=300, texts=1)]


def fits(advice):
    return {method.name: method.fit for method in advice.methods}


def corpus_of(advice):
    return advice.method("synthetic corpus")


# -- the recommendation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("purpose", "trust", "recommended"),
    [
        ("read", "central", "synthetic corpus"),
        ("read", "local", "texts of a bank"),
        ("classify", "central", "synthetic corpus"),
        ("classify", "local", "texts of a bank"),
        ("devices", "local", "private vectors"),
        ("statistics", "central", "synthetic corpus"),
        ("vectors", "central", None),  # too few people
        ("vectors", "local", None),
    ],
)
def test_purpose_and_trust_decide(advise, single, purpose, trust, recommended):
    advice = advise(single, purpose=purpose, trust=trust, recipient="partner")
    assert (None if advice.recommended is None else advice.recommended.name) == recommended
    assert advice.recommendation.count(". ") == 1, "two sentences"
    order = [method.fit for method in advice.methods]
    assert order == sorted(order, key=list(Fit).index)
    if trust == "local":
        assert fits(advice)["synthetic corpus"] is fits(advice)["shared word vectors"] is Fit.UNSUITABLE


def test_answers_exclude_methods_and_without_answers_none_is_excluded(advise, rows, single):
    advice = advise(rows)
    assert fits(advice) == dict.fromkeys(METHODS, Fit.POSSIBLE)
    assert advice.recommended is None and "No recommendation yet" in advice.recommendation
    for purpose, name in [("read", "private vectors"), ("vectors", "texts of a bank"), ("devices", "synthetic corpus")]:
        assert fits(advise(single, purpose=purpose))[name] is Fit.UNSUITABLE
    # a bound that does not protect excludes a public release
    colleagues, public = (fits(advise(single, purpose="read", recipient=entry)) for entry in ("colleagues", "public"))
    assert (colleagues["words"], public["words"]) == (Fit.POSSIBLE, Fit.UNSUITABLE)
    assert public["texts of a bank"] is not Fit.UNSUITABLE


def test_guarantees_per_text_add_up_for_a_person(advise, rows):
    advice = advise(rows, **LOCAL)
    bank = advice.method("texts of a bank")
    assert (bank.texts, bank.statement.epsilon, bank.person.epsilon) == (5, PROTECTING, 5 * PROTECTING)
    assert bank.fit is Fit.UNSUITABLE and advice.recommended is None
    assert "A person with 5 texts: epsilon 15." in bank.guarantee
    assert corpus_of(advice).person is None  # its unit is the person


def test_too_few_people_are_counted(advise):
    for people, texts, fit, reason in [
        (4, 6, Fit.UNSUITABLE, "Too few people for any epsilon that protects: 4 here"),
        (60, 1, None, "Too few people for epsilon 1: 60 here"),
        (2000, 1, Fit.RECOMMENDED, ""),
    ]:
        method = corpus_of(advise(made_up_rows(people=people, texts=texts), purpose="read", trust="central"))
        assert fit is None or method.fit is fit
        assert not reason or method.reasons[0].startswith(reason)


def test_missing_columns_and_a_classifier_change_the_commands(advise, single, unlabelled):
    corpus = corpus_of(advise(unlabelled, purpose="read", trust="central"))
    assert str(corpus.statement.unit) == "document" and "--user" in " ".join(corpus.reasons)
    assert "--unit document" in corpus.commands[0]
    without_labels = advise(unlabelled, purpose="classify", trust="central")
    assert without_labels.recommended is None and "--label" in " ".join(corpus_of(without_labels).reasons)
    corpus = corpus_of(advise(single, purpose="classify", trust="central", recipient="partner"))
    synthesize, classify = (command.replace("\\\n", " ") for command in corpus.commands[:2])
    place = synthesize.partition("-o ")[2].split()[0]
    assert synthesize.startswith("dptext synthesize ") and classify.startswith("dptext classify NEW.jsonl ")
    assert f"--distribution {place}.distribution " in classify and "--text note" in classify
    assert any("try the release itself first" in reason for reason in corpus.reasons)
    other = corpus_of(advise(single, purpose="read", trust="central"))
    assert not any("classif" in command for command in (*other.commands, *other.reasons))


# -- guarantees and figures ----------------------------------------------------------------------------------------


def test_guarantees_are_those_of_the_real_statements(advise, single):
    advice = advise(single)
    assert str(corpus_of(advice).statement.guarantee) == "(1, 1e-06)-differential privacy"
    assert advice.method("shared word vectors").statement.unit == "user"
    assert advice.method("texts of a bank").statement.mechanism == "BankRewriter"
    assert advice.method("private vectors").statement.guarantee == dptext.PureDP(PROTECTING)
    assert advice.method("words").statement.guarantee.kind == "metric"
    for method in advice.methods:
        protects = Strength.of(method.statement.epsilon) is Strength.PROTECTS
        assert protects == (method.name != "words") != (Strength.TOO_LARGE.value in method.guarantee)


def test_without_word_vectors_the_advice_names_the_command_that_installs_them(advise, single, toy):
    class Bare(type(toy)):
        @property
        def vectors(self):
            raise MissingExtraError('the vectors need the package; install it with: pip install "dptext[glove]"')

    bare = Bare(**{field.name: getattr(toy, field.name) for field in dataclasses.fields(toy)})
    advice = advise(single, public=bare, purpose="read", trust="central", recipient="public")
    install, complete = 'pip install "dptext[glove]"', advise(single)
    unknown = ("words", "shared word vectors")
    assert {method.name for method in advice.methods} == METHODS
    assert all(install in advice.method(name).commands and advice.method(name).statement is None for name in unknown)
    without = {method.name for method in advice.methods if method.commands[0] != install}
    assert without == {
        "synthetic corpus",
        "text summary",
        "texts of a bank",
    }  # the bundled features are enough for these
    for method in advice.methods:
        for name in ("guarantee", "unit", "relation", "trust") if method.name not in unknown else ():
            assert getattr(method.statement, name) == getattr(complete.method(method.name).statement, name)


@pytest.fixture(scope="module")
def labelled(toy):
    """Public texts of words of one of two kinds, with their kinds as labels, and the same with random labels."""
    generator = np.random.default_rng(1)
    words = toy.vectors.words
    kinds = [[word for word in words if bool(toy.vectors[word][0] > 0) is is_first] for is_first in (True, False)]
    labels = ["first", "second"] * 200
    texts = tuple(" ".join(generator.choice(kinds[label == "second"], 6)) for label in labels)
    result = [PublicTexts(texts, "toy texts", labels=tuple(order)) for order in (labels, generator.permutation(labels))]
    for public in result:
        vars(public).update(vectors=toy.vectors, features=toy.features)
    return result


def test_public_labels_give_the_accuracy_of_a_classifier_and_its_baselines(advise, single, labelled):
    pytest.importorskip("sklearn")
    answers = {"purpose": "classify", "trust": "central", "recipient": "colleagues"}
    real, random = (advise(single, public=public, **answers) for public in labelled)
    majority, nearest = real.baselines
    assert majority == 0.5 and 0 < nearest < 0.8
    for name in METHODS - {"shared word vectors", "text summary"}:
        assert 0.6 < min(real.method(name).accuracy) <= max(real.method(name).accuracy) <= 1, name
        assert 0.3 < min(random.method(name).accuracy) < 0.55, name
    low, high = corpus_of(real).accuracy
    page = " ".join(str(real).split())
    assert f"accuracy {low:.0%} to {high:.0%}." in page and f"the most frequent label has {majority:.0%}" in page
    assert corpus_of(real).as_dict()["accuracy"] == (low, high) and real.as_dict()["baselines"] == (majority, nearest)
    assert real.method("shared word vectors").accuracy is None


def test_without_public_labels_the_accuracy_is_unknown_and_bundled_labels_are_not_the_owners(advise, single):
    unknown = "accuracy unknown without public labelled texts (--public FILE --public-label COLUMN)."
    for purpose in (None, "classify"):
        advice = advise(single, purpose=purpose, trust="central")
        assert advice.baselines is None and unknown in " ".join(str(advice).split())
        assert all(method.accuracy is None for method in advice.methods)
    assert "accuracy unknown" not in " ".join(str(advise(single, purpose="read")).split())
    first = dataclasses.replace(advice.methods[0], accuracy=(0.7, 0.8))
    bundled = dataclasses.replace(advice, public=BUNDLED, baselines=(0.5, 0.6), methods=(first,))
    page = " ".join(str(bundled).split())
    assert "70% to 80% on the bundled texts, not on yours." in page and "of your task (--public FILE" in page
    assert PublicTexts.bundled().labels == () and len(set(PublicTexts.bundled(labelled=True).labels)) == 7


def test_labels_of_public_texts_come_from_files_and_tables(tmp_path):
    rows = [{"note": f"public text {number % 15}", "kind": [7, "rain", None][number % 3]} for number in range(30)]
    path = tmp_path / "public.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pandas = pytest.importorskip("pandas")
    for source in (path, [path], pandas.DataFrame(rows)):
        public = PublicTexts.of(source, text="note", label="kind")
        expected = {row["note"]: None if row["kind"] is None else str(row["kind"]) for row in rows}
        assert dict(zip(public.texts, public.labels, strict=True)) == expected
        assert PublicTexts.of(source, text="note").labels == ()
    for source, label, message in [
        (path, "day", "expected a column 'day'"),
        (pandas.DataFrame(rows), "day", "expected a column 'day'"),
        ([row["note"] for row in rows], "kind", "requires public files, or a table"),
        (pandas.DataFrame(rows).assign(kind="one"), "kind", "must have at least two labels"),
    ]:
        with pytest.raises((ParameterError, DataError), match=message):
            PublicTexts.of(source, text="note", label=label)
    with pytest.raises(ParameterError, match="public_label requires public texts"):
        dptext.advise(rows, text="note", public_label="kind")


# -- private values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [{}, LOCAL])
def test_no_value_of_a_row_is_printed_and_no_count_enters_a_command(advise, rows, answers):
    advice = advise(rows, **answers)
    for text in (str(advice), repr(advice), json.dumps(advice.as_dict()), str(advice.methods)):
        assert SECRET not in text and "they spoke" not in text
    for people in (37, 1234) if not answers else ():
        advice = advise(made_up_rows(people=people, texts=1))
        commands = [command for method in advice.methods for command in method.commands]
        assert not any(str(people) in command or f"{people:,}" in command for command in commands)
        assert "-n 5000" in corpus_of(advice).commands[0]


def test_the_page_is_short_and_starts_with_the_recommendation(advise, rows):
    for answers in ({}, {"purpose": "vectors", "recipient": "public"}):
        advice = advise(rows, **answers)
        lines = str(advice).split("\n")
        assert len(lines) <= 66 and max(map(len, lines)) <= 80
        assert " ".join(str(advice).split()).startswith(advice.recommendation)
        assert "For you alone" in str(advice) and "for the owner" in repr(advice)
        assert advice.as_dict()["for_the_owner_only"]
    assert {column.name for column in advice.data.columns if column.reasons} >= {"author", "mail", "day"}
    assert "mail " in str(advice)


def test_a_first_line_that_may_be_a_row_is_refused_without_its_values(advise, tmp_path):
    path = tmp_path / "plain.csv"
    for line in (f"{SECRET} wrote all of this line and it is no name of a column,7", f"{SECRET},Ann"):
        path.write_text(f"{line}\n" + "a text of some words,8\n" * 30)
        with pytest.raises(DataError, match="the first line may be a row") as caught:
            advise(path)
        assert SECRET not in str(caught.value)
    assert advise(path, text=SECRET).data.roles.text == SECRET  # the caller confirms that it is a name


def test_unknown_answers_and_methods_are_refused(advise, rows):
    for name in ("purpose", "recipient", "trust"):
        with pytest.raises(ParameterError, match=f"{name} must be one of"):
            dptext.advise(["one text"], **{name: "whatever"})
    with pytest.raises(KeyError, match="the methods are"):
        advise(rows).method("none")


# -- language and length -------------------------------------------------------------------------------------------


def test_words_and_length_are_compared_with_the_public_texts():
    sentences = [text for text, _ in utterances("train")][:300]
    documents = [". ".join(sentences[start : start + 10]) + "." for start in range(0, 300, 10)]
    english, german = ([{"note": text} for text in texts] for texts in (sentences, LANGUAGES["German"] * 40))
    advice = dptext.advise(english, text="note", public=documents)
    assert advice.nearest_unit == "sentence"
    page = " ".join(str(advice).split())
    assert "--pool-unit sentence, if the length of these is publicly known" in page and "This is little" not in page
    assert "--pool-unit" not in " ".join(method for entry in advice.methods for method in entry.commands)
    assert dptext.advise(english, text="note", public=sentences[::2]).nearest_unit == "document"  # the default
    advice = dptext.advise(german, text="note", public=documents)
    assert advice.data.known["your public texts"].is_low
    assert "This is little: the texts are probably in another language" in " ".join(str(advice).split())
    assert set(dptext.advise(german, text="note").data.known) <= {"the default word vectors"}
