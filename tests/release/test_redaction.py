"""Tests of redaction before a mechanism: removed parts, guarantees, and secrets in statements."""

import json
import math
import pickle
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import dptext
from dptext.errors import MissingExtraError, ParameterError, RefusedError, StorageError
from dptext.privacy.guarantee import MetricDP, PureDP, Unit
from dptext.privacy.neighbours import AfterRedaction, Condition, OneGroup, SameLayout, WordsChanged
from dptext.privacy.restating import after_redaction, apply_word_dropout, statement_for_user
from dptext.processes import save_shared
from dptext.release.job import Job
from dptext.release.mechanism import mark, show_marks, unmarked
from dptext.release.redaction import LISTED, Redaction, Terms, placeholders_of, read_terms
from dptext.text.tokens import letters_between
from dptext.words.replacing import Aligner, layout_of_private, layout_of_release
from secrecy import assert_error

WORDS = ("tea", "cup", "tax", "law")
VECTORS = dptext.load_vectors((WORDS, [[0.0, 1.0], [1.0, 1.0], [4.0, 0.0], [5.0, 0.0]]))
TEM = dptext.TEM(VECTORS, epsilon=2.0, threshold=3.0)
TEXT = "Dr. Ann Lee drinks tea: call 212-555-0187, or ann@x.org (on 3 May)."
SECRET = "zanzibarian"


@dataclass
class Result:
    start: int
    end: int
    entity_type: str
    score: float = 0.9


class Finder:
    """What Presidio's ``AnalyzerEngine`` offers, for one word."""

    def __init__(self, word="tea", entity="DRINK_2"):
        self.word, self.entity = word, entity

    def get_supported_entities(self, language):
        assert language in ("en", "de")
        return [self.entity]

    def analyze(self, *, text, language, entities):
        if "broken" in text:
            raise ValueError(text)
        start = text.find(self.word)
        return [Result(start, start + len(self.word), self.entity)] if start >= 0 else []


# -- recognition ---------------------------------------------------------------------------------------------------


def test_recognised_parts_and_listed_terms_become_placeholders():
    assert dptext.Redacted(TEM).redact(TEXT) == "Dr. Ann Lee drinks tea: call <phone>, or <email> (on <date>)."
    assert dptext.Redacted(TEM, kinds=["email"]).redact(TEXT) == TEXT.replace("ann@x.org", "<email>")
    redaction = Redaction(kinds=["email"], words=["or ann"])
    assert redaction.applied(TEXT) == "Dr. Ann Lee drinks tea: call 212-555-0187, <email> (on 3 May)."
    for term, text, expected in [
        ("Ann Lee", "ANN  LEE, ann-lee and Ann\nLee", "<listed>, <listed> and <listed>"),
        ("ann", "Anna, ann's, Joann, ann_b", "Anna, <listed>'s, Joann, <listed>_b"),
        ("straße 5", "STRASSE 5", "<listed>"),
        ("O’Neil", "o'neil", "<listed>"),
        ("caf\u00e9", "Cafe\u0301", "<listed>"),
        ("王小明", "我叫王小明吗", "我叫<listed>吗"),
        ("a b", "a ... . b", "a ... . b"),
    ]:
        assert Redaction(kinds=[], words=[term]).applied(text) == expected
    results = [entry[:2] for entry in Terms(["ann", "ann lee", "lee smith"]).find("ann lee smith, lee smith")]
    assert results == [(0, 7), (15, 24)], "the longest term at each position"
    terms = Terms(f"{first} {second}" for first in range(300) for second in range(300))
    assert len(list(terms.find("299 299, 300 1, 7 7 " * 2000))) == 4000, "in linear time"


def test_marks_that_attach_to_a_redacted_part_go_with_it():
    """An accent or joiner after a mark would form one word with its last character."""
    redacted = dptext.Redacted(dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5))
    for attached in ["\u0301", "\u200d", "\u20e3", "\u2060", "\u00ad\u0301", "\uff9e", "\u200dtea"]:
        text = f"tea a@b.co{attached} tax"
        assert redacted.redact(text).startswith("tea <email>" + attached.removeprefix("\u200d") * ("tea" in attached))
        for private in dptext.privatize([text] * 5, redacted).texts:
            assert "<email>" in private and not set(private) & set("\x1c\x1d\x1e\x1f")


def test_arguments_and_lists_that_make_no_sense_are_refused_without_showing_terms(tmp_path, monkeypatch):
    file = tmp_path / "list.txt"
    file.write_text("\ufeffAnn Lee\r\n\n王小明\n", encoding="utf-8")
    assert read_terms(file) == ["Ann Lee", "王小明"]
    for content, message in (
        (b"", "contains no term"),
        (b"\xff\xfe", "UTF-8"),
    ):
        file.write_bytes(content)
        assert SECRET not in assert_error(ParameterError, lambda: read_terms(file), message)
    assert_error(StorageError, lambda: read_terms(tmp_path / "missing"), "missing")
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    for arguments, message in (
        *(({"words": words}, "words") for words in ["Ann", [7], [SECRET, "!"], [" "], [" ".join("a" * 40)]]),
        *(({"analyzer": wrong}, "analyze") for wrong in (object(), Finder(word=7), "spacy")),
        ({"analyzer": Finder(), "language": "fr"}, "language"),
        ({"entities": ["PERSON"]}, "entities"),
        ({"kinds": []}, "nothing is redacted: name kinds ("),
    ):
        assert SECRET not in assert_error(ParameterError, lambda a=arguments: dptext.Redacted(TEM, **a), message)
    assert_error(
        ParameterError, lambda: dptext.Redacted(dptext.Redacted(TEM)), "the mechanism already redacts: pass all kinds"
    )
    assert_error(ParameterError, lambda: dptext.Redacted("tem"), "mechanism")
    assert_error(MissingExtraError, lambda: dptext.Redacted(TEM, analyzer="presidio"), "presidio")


def test_an_analyzer_is_used_together_with_the_patterns(tmp_path):
    redacted = dptext.Redacted(TEM, analyzer=Finder(), kinds=["email"])
    assert redacted.redact("tea for ann@x.org") == "<drink__> for <email>"
    parameters = redacted.statement.parameters
    assert parameters["redacted_entities"] == "DRINK_2"
    assert "Finder" in parameters["redacted_by"] and "language en" in parameters["redacted_by"]
    assert "no names" not in redacted.summary_before_release()
    assert "patterns recognise no names" in " ".join(dptext.Redacted(TEM).summary_before_release().split())
    repeated = pickle.loads(pickle.dumps(dptext.Redacted(TEM, analyzer=Finder(), words=["cup"])))
    assert repeated.redact("tea cup") == "<drink__> <listed>"
    redacted.redaction._given.lock = lambda: None
    assert_error(ParameterError, lambda: save_shared(redacted, tmp_path), "cannot be sent to other processes")


@pytest.mark.parametrize(
    ("entity", "private"),
    [(("PERSON", 4), "<name> tax"), (("tea by Ann 7", 4), "<other> tax"), (SystemExit(2), "<unread>")],
)
def test_an_analyzer_neither_names_a_placeholder_after_a_text_nor_ends_a_release(entity, private, caplog):
    class Analyzer:
        def analyze(self, *, text, language, entities):
            if SECRET not in text:
                return []
            if isinstance(entity, SystemExit):
                raise entity
            return [SimpleNamespace(start=0, end=entity[1], entity_type=entity[0])]

    redacted = dptext.Redacted(dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5), kinds=(), analyzer=Analyzer())
    text = redacted.redact(f"tea\N{NO-BREAK SPACE}tax {SECRET}").removesuffix(f" {SECRET}")
    assert text.replace(">tax", "> tax") == private
    assert set(letters_between(private)) - {"tax"} <= placeholders_of(redacted.statement)
    assert SECRET not in caplog.text


# -- through a mechanism --------------------------------------------------------------------------------------------


def test_placeholders_stay_all_else_is_replaced_and_no_text_holds_a_mark():
    exact = dptext.TEM(VECTORS, epsilon=900.0, threshold=0.05)
    (private,) = dptext.privatize([TEXT], dptext.Redacted(exact)).texts
    assert private == "<unk>. <unk> <unk> <unk> tea: <unk> <phone>, <unk> <email> (<unk> <date>)."
    text = f"tea{mark('name')}é {mark('phone')}cup"
    assert show_marks(text) == "tea<name>é <phone>cup"
    assert dptext.Redacted(TEM).redact(text).replace(" ", "") == "teaécup"
    assert show_marks(unmarked(text)) == unmarked(text)
    with pytest.raises(ParameterError):
        mark("a b")
    typed = "tea \x1f\x1c\x1c\x1c\x1f tax"
    spread = dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5)
    [plain], [redacted] = (dptext.privatize([typed], one).texts for one in (spread, dptext.Redacted(spread)))
    assert "\x1f\x1c\x1c\x1c\x1f" in plain and "<" not in (plain + redacted).replace("<unk>", "")


def test_words_before_and_after_are_paired_through_the_redaction():
    redacted = dptext.Redacted(dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5), words=["cup"])
    texts = [TEXT, "tea, tea-cup-tax", "", "cup", "tax 7 cup!"]
    aligner = Aligner(redacted.mechanism)
    for original, private in zip(texts, dptext.privatize(texts, redacted).texts, strict=True):
        seen = redacted.redaction.applied(original, mark)
        rows, observed = aligner.pairs(seen, private)
        assert len(rows) == len(observed)
        assert layout_of_release(seen) == layout_of_private(private)


# -- guarantees ------------------------------------------------------------------------------------------------------


def test_a_guarantee_for_any_two_texts_stays_and_the_bank_shows_no_placeholder():
    bank = dptext.TextBank(["tea cup", "tax law", "law"], encoder="words", cache=False)
    inner = dptext.BankRewriter(bank, epsilon=2.0, unit="document")
    redacted = dptext.Redacted(inner)
    text = redacted.document_statement(1)
    assert text.guarantee == PureDP(2.0) and text.condition == inner.document_statement(1).condition
    assert "once" not in text.neighbours
    release = dptext.privatize([TEXT], redacted)
    assert release.texts[0] in bank.texts
    assert not any("placeholder" in entry for entry in release.statement.exposed)


def test_all_other_guarantees_are_between_redacted_texts():
    text = dptext.Redacted(TEM).document_statement(3)
    assert text.condition.requirements == (AfterRedaction("same layout"),)
    assert isinstance(text.guarantee, MetricDP) and "once they are redacted" in text.guarantee.metric
    assert "the same layout once they are redacted" in text.neighbours
    budget = dptext.Redacted(dptext.TEM(VECTORS, epsilon=2.0, document_epsilon=3.0, max_words=2))
    assert budget.document_statement(2).guarantee == PureDP(3.0)
    assert budget.document_statement(2).condition.has(SameLayout)
    word = dptext.Redacted(TEM).statement
    assert word.condition.has(AfterRedaction) and word.neighbours.endswith("once it is redacted")
    person = statement_for_user(text, 4)
    assert "once they are redacted" in person.neighbours and "at most 4" in person.neighbours
    with pytest.raises(RefusedError):
        after_redaction(statement_for_user(dptext.Redacted(TEM).document_statement(1), 2))


def test_neither_condition_follows_from_the_other():
    before, after = Condition(requirements=(SameLayout(),)), Condition(requirements=(AfterRedaction("same layout"),))
    for unit in Unit:
        assert not before.narrows(after, unit)
        assert not after.narrows(before, unit)
    assert Condition(requirements=(AfterRedaction("words changed", "2"),)).narrows(after, Unit.DOCUMENT)
    both = before.meet(after, Unit.DOCUMENT)
    assert both.narrows(before, Unit.DOCUMENT) and both.narrows(after, Unit.DOCUMENT)
    assert both == Condition.from_dict(json.loads(json.dumps(both.to_dict())))
    with pytest.raises(RefusedError, match="stricter"):
        dptext.Redacted(TEM).document_statement(3).replace(condition=before)


@pytest.mark.parametrize("inner", [WordsChanged(2), OneGroup("of 3"), SameLayout()])
def test_a_requirement_on_redacted_texts_is_kept(inner):
    wrapped = AfterRedaction.after_redaction_of(inner)
    assert wrapped.inner == inner and AfterRedaction.after_redaction_of(wrapped) == wrapped
    assert Condition(requirements=(wrapped,)).has(type(inner))


def test_releases_with_and_without_redaction_do_not_add_up_their_distances():
    plain, redacted = TEM.document_statement(3), dptext.Redacted(TEM).document_statement(3)
    both = plain.compose(redacted)
    assert isinstance(both.guarantee, PureDP)
    assert both.condition.requirements == (SameLayout(), AfterRedaction("same layout"))
    assert redacted.compose(redacted).condition == redacted.condition
    with pytest.raises(RefusedError, match="word masked"):
        apply_word_dropout(dptext.Redacted(dptext.SubsetSelection(VECTORS, epsilon=1.0)).statement, 0.5)


def test_a_sentence_as_written_and_a_redacted_one_have_no_sum():
    """Exact: two texts that differ in one redacted sentence, and in two as they were written, lose 3, not 1 + 1."""
    bank = dptext.TextBank(WORDS, encoder=dptext.MeanOfWords(VECTORS), cache=False)
    plain = dptext.BankRewriter(bank, epsilon=1.0, size=1)
    redacted = dptext.Redacted(plain, kinds=[], words=["cup", "law"])
    one, other = "Tea. Cup.", "Tax. Law."

    def loss(first, second):
        parts = zip(*(plain.distributions(plain.parts(text)) for text in (first, second)), strict=True)
        return sum(np.log(p / q).max() for p, q in parts)

    hidden = [plain.parts(redacted.redact(text)) for text in (one, other)]
    assert [a == b for a, b in zip(*hidden, strict=True)] == [False, True]
    exact = loss(one, other) + loss(redacted.redact(one), redacted.redact(other))
    assert exact == pytest.approx(3.0)
    word = dptext.SubsetSelection(VECTORS, epsilon=1.0)
    for unredacted, after in ((plain, redacted), (word, dptext.Redacted(word))):
        for first, second in ((unredacted.statement, after.statement), (after.statement, unredacted.statement)):
            with pytest.raises(RefusedError, match="no proved sum"):
                first.compose(second)
            assert not first.condition.narrows(second.condition, first.unit)
            with pytest.raises(RefusedError, match="stricter"):
                first.replace(condition=second.condition)
    both = plain.document_statement(2).compose(redacted.document_statement(2))
    assert both.epsilon >= exact and both.condition.has(AfterRedaction)
    assert redacted.statement.compose(redacted.statement).epsilon == 2.0


def test_the_bound_holds_between_redacted_texts_and_not_between_originals():
    """Exact, over the texts of one word: the unredacted metric bound is beaten, the restated one never."""
    redacted = dptext.Redacted(TEM, kinds=[], words=["cup"])
    distributions = dict(zip(WORDS, TEM.distributions(list(WORDS)), strict=True))
    texts = [*WORDS]

    def outputs(text):
        seen = redacted.redact(text)
        return {"<listed>": 1.0} if seen == "<listed>" else dict(zip(VECTORS.words, distributions[seen], strict=True))

    def loss(one, other):
        first, second = outputs(one), outputs(other)
        return max(math.log(p / second[z]) if second.get(z) else math.inf for z, p in first.items() if p)

    word = TEM.word_guarantee()
    points = dict(zip(VECTORS.words, np.asarray(VECTORS.matrix), strict=True))
    distances = {
        (a, b): min(float(np.linalg.norm(points[a] - points[b])), word.max_distance) for a in texts for b in texts
    }
    beaten = [pair for pair, distance in distances.items() if loss(*pair) > word.epsilon * distance + TEM.slack + 1e-9]
    assert {one for pair in beaten for one in pair} >= {"cup"} and all("cup" in pair for pair in beaten)
    # once they are redacted, "cup" has another layout than all others: it is a neighbour of itself alone
    layout = {text: layout_of_private(redacted.redact(text)) + str("<" in redacted.redact(text)) for text in texts}
    assert all(layout[one] != layout[other] for one, other in beaten)


# -- what stays with the owner --------------------------------------------------------------------------------------


def test_the_list_is_in_no_statement_representation_or_promise_and_changes_the_noise():
    redacted = [dptext.Redacted(TEM, words=words) for words in ([SECRET], [SECRET, "another one"])]
    first, second = (entry.document_statement(3) for entry in redacted)
    assert first == second and redacted[0].settings_of_owner() != redacted[1].settings_of_owner()
    for entry in redacted:
        statement = entry.document_statement(3)
        text = statement.to_json() + statement.explain() + entry.summary_before_release() + repr(entry)
        assert SECRET not in text and entry.redaction.terms.digest() not in text
    assert first.parameters["redacted_list"] is True
    assert "list" in first.explain() and "has no guarantee" in first.explain()
    spread, texts = dptext.TEM(VECTORS, epsilon=0.1, threshold=30.0), ["tea cup tax law " * 30]
    one, other, repeated = (
        dptext.privatize(texts, dptext.Redacted(spread, words=[word]), seed=3).texts
        for word in (SECRET, "other", SECRET)
    )
    assert one == repeated != other


def test_a_run_is_resumed_with_the_same_list_only(tmp_path, monkeypatch):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text\n" + f"tea cup {SECRET}\n" * 10)

    def stop(*_, **__):
        raise KeyboardInterrupt

    one = dptext.Redacted(TEM, words=[SECRET])
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Job, "publish", stop)
        dptext.privatize_file(source, out, one)
    other = dptext.Redacted(TEM, words=["other"])
    assert_error(ParameterError, lambda: dptext.privatize_file(source, out, other, resume=True), "redact-list changed")
    release = dptext.privatize_file(source, out, one, resume=True)
    assert SECRET not in out.read_text() and out.read_text().count("<listed>") == 10
    assert release.statement.parameters["redacted_list"] is True and LISTED not in release.statement.to_json()
