"""Tests of redaction before a mechanism: removed parts, guarantees, and secrets in statements."""

import json
import math
import pickle
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import dptext
from dptext.errors import MissingExtraError, ParameterError, RefusedError, StorageError
from dptext.privacy.guarantee import MetricDP, PureDP, Relation, Unit
from dptext.privacy.neighbours import AfterRedaction, Condition, OneGroup, SameLayout, WordsChanged
from dptext.privacy.restating import after_redaction, apply_word_dropout, statement_for_user
from dptext.processes import save_shared
from dptext.release.job import Job
from dptext.release.mechanism import mark, show_marks, unmarked
from dptext.release.redaction import LISTED, Redaction, Terms, placeholders_of, read_terms
from dptext.text.tokens import letters_between
from dptext.words.replacing import Aligner, layout_of_private, layout_of_release

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


# -- removed parts -------------------------------------------------------------------------------------------------


def test_a_placeholder_stands_for_each_piece():
    redacted = dptext.Redacted(TEM)
    assert redacted.redact(TEXT) == "Dr. Ann Lee drinks tea: call <phone>, or <email> (on <date>)."
    assert dptext.Redacted(TEM, kinds=["email"]).redact(TEXT) == TEXT.replace("ann@x.org", "<email>")


def test_pieces_that_overlap_are_redacted_whole():
    redaction = Redaction(kinds=["email"], words=["or ann"])
    assert redaction.applied(TEXT) == "Dr. Ann Lee drinks tea: call 212-555-0187, <email> (on 3 May)."


def test_terms_are_found_as_whole_words_whatever_their_case():
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


def test_the_longest_term_at_a_place_is_found():
    results = [entry[:2] for entry in Terms(["ann", "ann lee", "lee smith"]).find("ann lee smith, lee smith")]
    assert results == [(0, 7), (15, 24)]


def test_many_terms_take_no_longer_for_a_text():
    terms = Terms(f"{first} {second}" for first in range(300) for second in range(300))
    assert len(list(terms.find("299 299, 300 1, 7 7 " * 2000))) == 4000


def test_terms_that_are_none_are_refused_without_being_said():
    for words in ["Ann", [7], ["..."], [" "], [" ".join("a" * 40)]]:
        with pytest.raises(ParameterError, match="words") as caught:
            dptext.Redacted(TEM, words=words)
        assert "..." not in str(caught.value)


def test_a_list_is_a_file_of_one_term_a_line(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("\ufeffAnn Lee\r\n\n王小明\n", encoding="utf-8")
    assert read_terms(file) == ["Ann Lee", "王小明"]
    for content, text in (("", "none"), (f"{SECRET}\n!!!\n", "line 2")):
        file.write_text(content)
        with pytest.raises(ParameterError, match=text) as caught:
            read_terms(file)
        assert SECRET not in str(caught.value)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match="UTF-8"):
        read_terms(file)
    with pytest.raises(StorageError):
        read_terms(tmp_path / "missing")


# -- an analyzer ----------------------------------------------------------------------------------------------------


def test_an_analyzer_finds_beside_the_patterns():
    redacted = dptext.Redacted(TEM, analyzer=Finder(), kinds=["email"])
    assert redacted.redact("tea for ann@x.org") == "<drink__> for <email>"
    statement = redacted.statement
    assert statement.parameters["redacted_entities"] == "DRINK_2"
    assert "Finder" in statement.parameters["redacted_by"] and "language en" in statement.parameters["redacted_by"]


def test_a_text_on_which_an_analyzer_fails_is_redacted_whole(caplog):
    redacted = dptext.Redacted(TEM, analyzer=Finder())
    assert redacted.redact(f"broken {SECRET}") == "<unread>"
    assert SECRET not in caplog.text


def test_an_analyzer_that_cannot_answer_is_refused_at_once():
    for wrong in (object(), Finder(word=7), "spacy"):
        with pytest.raises(ParameterError, match="analyze"):
            dptext.Redacted(TEM, analyzer=wrong)
    with pytest.raises(ParameterError, match="language"):
        dptext.Redacted(TEM, analyzer=Finder(), language="fr")
    with pytest.raises(ParameterError, match="entities"):
        dptext.Redacted(TEM, entities=["PERSON"])


def test_presidio_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "presidio_analyzer", None)
    with pytest.raises(MissingExtraError, match="presidio"):
        dptext.Redacted(TEM, analyzer="presidio")


def test_an_analyzer_that_cannot_be_pickled_says_so(tmp_path):
    finder = Finder()
    finder.lock = lambda: None
    redacted = dptext.Redacted(TEM, analyzer=finder)
    with pytest.raises(ParameterError, match="cannot be sent to other processes"):
        save_shared(redacted, tmp_path)
    repeated = pickle.loads(pickle.dumps(dptext.Redacted(TEM, analyzer=Finder(), words=["cup"])))
    assert repeated.redact("tea cup") == "<drink__> <listed>"


# -- through a mechanism --------------------------------------------------------------------------------------------


def test_placeholders_stay_and_all_else_is_replaced():
    exact = dptext.TEM(VECTORS, epsilon=900.0, threshold=0.05)
    (private,) = dptext.privatize([TEXT], dptext.Redacted(exact)).texts
    assert private == "<unk>. <unk> <unk> <unk> tea: <unk> <phone>, <unk> <email> (<unk> <date>)."


def test_marks_are_no_words_and_no_text_can_hold_one():
    text = f"tea{mark('name')}é {mark('phone')}cup"
    assert show_marks(text) == "tea<name>é <phone>cup"
    assert dptext.Redacted(TEM).redact(text).replace(" ", "") == "teaécup"
    assert show_marks(unmarked(text)) == unmarked(text)
    with pytest.raises(ParameterError):
        mark("a b")


def test_a_mechanism_of_sentences_sees_the_placeholder_and_shows_none():
    bank = dptext.TextBank(["tea cup", "tax law", "law"], encoder="words", cache=False)
    redacted = dptext.Redacted(dptext.BankRewriter(bank, epsilon=2.0, unit="document"))
    assert redacted.redact("on 3 May") == "on <date>"
    release = dptext.privatize([TEXT], redacted)
    assert release.texts[0] in bank.texts
    assert not any("placeholder" in entry for entry in release.statement.exposed)


def test_what_attaches_to_a_redacted_piece_goes_with_it():
    """An accent or joiner after a mark would form one word with its last character."""
    for attached in ["\u0301", "\u200d", "\u20e3", "\u2060", "\u00ad\u0301", "\uff9e", "\u200dtea"]:
        redacted = dptext.Redacted(dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5))
        text = f"tea a@b.co{attached} tax"
        assert redacted.redact(text).startswith("tea <email>" + attached.removeprefix("\u200d") * ("tea" in attached))
        for private in dptext.privatize([text] * 5, redacted).texts:
            assert "<email>" in private
            assert not set(private) & set("\x1c\x1d\x1e\x1f")


@pytest.mark.parametrize(
    ("entities_value", "private"),
    [(("PERSON", 4), "<name> tax"), (("tea by Ann 7", 4), "<other> tax"), (SystemExit(2), "<unread>")],
)
def test_an_analyzer_neither_names_a_placeholder_after_a_text_nor_ends_a_release(entities_value, private):
    class Analyzer:
        def analyze(self, *, text, language, entities):
            if text != "tea\N{NO-BREAK SPACE}tax":
                return []
            if isinstance(entities_value, SystemExit):
                raise entities_value
            return [SimpleNamespace(start=0, end=entities_value[1], entity_type=entities_value[0])]

    redacted = dptext.Redacted(dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5), kinds=(), analyzer=Analyzer())
    assert redacted.redact("tea\N{NO-BREAK SPACE}tax").replace(">tax", "> tax") == private
    assert set(letters_between(private)) - {"tax"} <= placeholders_of(redacted.statement)


def test_a_text_that_is_not_redacted_cannot_bring_placeholders_of_its_own():
    typed = "tea \x1f\x1c\x1c\x1c\x1f tax"
    [plain] = dptext.privatize([typed], dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5)).texts
    [redacted] = dptext.privatize([typed], dptext.Redacted(dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5))).texts
    assert "\x1f\x1c\x1c\x1c\x1f" in plain
    assert "<" not in (plain + redacted).replace("<unk>", "")


def test_words_before_and_after_are_paired_through_the_redaction():
    redacted = dptext.Redacted(dptext.TEM(VECTORS, epsilon=9.0, threshold=0.5), words=["cup"])
    texts = [TEXT, "tea, tea-cup-tax", "", "cup", "tax 7 cup!"]
    aligner = Aligner(redacted.mechanism)
    for original, private in zip(texts, dptext.privatize(texts, redacted).texts, strict=True):
        seen = redacted.redaction.applied(original, mark)
        rows, observed = aligner.pairs(seen, private)
        assert len(rows) == len(observed)
        assert layout_of_release(seen) == layout_of_private(private)


def test_what_is_refused():
    with pytest.raises(ParameterError, match="redacts already"):
        dptext.Redacted(dptext.Redacted(TEM))
    with pytest.raises(ParameterError, match="mechanism"):
        dptext.Redacted("tem")
    with pytest.raises(ParameterError, match="nothing is to be redacted"):
        dptext.Redacted(TEM, kinds=[])


# -- guarantees ------------------------------------------------------------------------------------------------------


def test_a_promise_for_any_two_texts_stays_as_it_is():
    bank = dptext.TextBank(["tea cup", "tax law", "law"], encoder="words", cache=False)
    inner = dptext.BankRewriter(bank, epsilon=2.0, unit="document")
    text = dptext.Redacted(inner).document_statement(1)
    assert text.guarantee == PureDP(2.0)
    assert text.condition == inner.document_statement(1).condition
    assert "once" not in text.neighbours


def test_all_others_are_between_redacted_texts():
    text = dptext.Redacted(TEM).document_statement(3)
    assert text.condition.requirements == (AfterRedaction("same layout"),)
    assert isinstance(text.guarantee, MetricDP) and "once they are redacted" in text.guarantee.metric
    assert "the same layout once they are redacted" in text.neighbours
    budget = dptext.Redacted(dptext.TEM(VECTORS, epsilon=2.0, document_epsilon=3.0, max_words=2))
    text = budget.document_statement(2)
    assert text.guarantee == PureDP(3.0) and text.condition.has(SameLayout)
    word = dptext.Redacted(TEM).statement
    assert word.condition.has(AfterRedaction) and word.neighbours.endswith("once it is redacted")


def test_neither_condition_follows_from_the_other():
    before, after = Condition(requirements=(SameLayout(),)), Condition(requirements=(AfterRedaction("same layout"),))
    for unit in Unit:
        assert not before.narrows(after, unit)
        assert not after.narrows(before, unit)
    assert Condition(requirements=(AfterRedaction("words changed", "2"),)).narrows(after, Unit.DOCUMENT)
    both = before.meet(after, Unit.DOCUMENT)
    assert both.narrows(before, Unit.DOCUMENT) and both.narrows(after, Unit.DOCUMENT)
    assert both == Condition.from_dict(json.loads(json.dumps(both.to_dict())))
    with pytest.raises(RefusedError, match="tighter"):
        dptext.Redacted(TEM).document_statement(3).replace(condition=before)


@pytest.mark.parametrize("inner", [WordsChanged(2), OneGroup("of 3"), SameLayout()])
def test_what_is_required_of_redacted_texts_is_kept(inner):
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
            with pytest.raises(RefusedError, match="tighter"):
                first.replace(condition=second.condition)
    both = plain.document_statement(2).compose(redacted.document_statement(2))
    assert both.epsilon >= exact and both.condition.has(AfterRedaction)
    assert redacted.statement.compose(redacted.statement).epsilon == 2.0


def test_what_holds_for_a_text_holds_for_a_person_with_several():
    text = statement_for_user(dptext.Redacted(TEM).document_statement(3), 4)
    assert "once they are redacted" in text.neighbours and "at most 4" in text.neighbours


def test_only_promises_for_texts_are_restated():
    central = dptext.Redacted(TEM).document_statement(1)
    with pytest.raises(RefusedError):
        after_redaction(statement_for_user(central, 2))


def test_the_bound_between_texts_as_they_were_is_false_and_that_between_redacted_ones_true():
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


def test_the_list_is_neither_in_a_statement_nor_in_what_is_said_before():
    redacted = [dptext.Redacted(TEM, words=words) for words in ([SECRET], [SECRET, "another one"])]
    lines = [entry.document_statement(3) for entry in redacted]
    assert lines[0] == lines[1]
    assert redacted[0].settings_of_owner() != redacted[1].settings_of_owner()
    for entry in redacted:
        text = (
            entry.document_statement(3).to_json()
            + entry.document_statement(3).explain()
            + entry.summary_before_release()
        )
        assert SECRET not in text + repr(entry) and entry.redaction.terms.digest() not in text
    assert lines[0].parameters["redacted_list"] is True
    assert "list" in lines[0].explain() and "has no guarantee" in lines[0].explain()


def test_other_lists_draw_other_noise_under_one_seed():
    spread = dptext.TEM(VECTORS, epsilon=0.1, threshold=30.0)
    texts = ["tea cup tax law " * 30]
    one, other = (
        dptext.privatize(texts, dptext.Redacted(spread, words=[word]), seed=3).texts for word in (SECRET, "other")
    )
    assert one != other
    assert one == dptext.privatize(texts, dptext.Redacted(spread, words=[SECRET]), seed=3).texts


def test_a_run_goes_on_with_the_same_list_only(tmp_path, monkeypatch):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text\n" + f"tea cup {SECRET}\n" * 10)

    def stop(*_, **__):
        raise KeyboardInterrupt

    one = dptext.Redacted(TEM, words=[SECRET])
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Job, "publish", stop)
        dptext.privatize_file(source, out, one)
    with pytest.raises(ParameterError, match="redact-list changed"):
        dptext.privatize_file(source, out, dptext.Redacted(TEM, words=["other"]), resume=True)
    release = dptext.privatize_file(source, out, one, resume=True)
    assert SECRET not in out.read_text() and out.read_text().count("<listed>") == 10
    assert release.statement.parameters["redacted_list"] is True and LISTED not in release.statement.to_json()


def test_processes_and_batches_redact_alike():
    redacted = dptext.Redacted(dptext.TEM(VECTORS, epsilon=900.0, threshold=0.05), words=["cup"])
    privatizer = pickle.loads(pickle.dumps(dptext.batch_privatizer(redacted)))
    private = privatizer({"text": ["tea cup", None, "on 3 May"]})["text"]
    assert private == ["tea <listed>", None, "<unk> <date>"]
    statement = privatizer.statement(private)
    assert (
        statement.condition.has(AfterRedaction)
        and statement.unit is Unit.DOCUMENT
        and statement.relation is Relation.SUBSTITUTION
    )


def test_what_is_looked_for_says_that_patterns_find_no_names():
    assert "patterns recognise no names" in " ".join(dptext.Redacted(TEM).summary_before_release().split())
    assert "no names" not in dptext.Redacted(TEM, analyzer=Finder()).summary_before_release()
