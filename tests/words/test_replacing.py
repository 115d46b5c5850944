"""A corpus through a mechanism: what changes, what stays, and what the statement says of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptext
from dptext import TEM, privatize
from dptext.text.tokens import Kind, split


@pytest.fixture(scope="module")
def faithful():
    """So large an epsilon that known words stay: the rest shows how everything else is treated."""
    words = ["the", "doctor", "lied", "do", "n't", "日", "本"]
    return TEM(dptext.load_vectors((words, [[float(n), n**2 % 5] for n in range(7)])), epsilon=40.0, threshold=1.0)


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("The doctor  LIED,\n\tdoctor!", "the doctor  lied,\n\tdoctor!"),
        ("", ""),
        ("  ...  ", "  ...  "),
        ("Call +46 70-12.", "<unk> +<number> <number>-<number>."),
        ("see https://a.b/c?d=e or me@x.org, @bob", "<unk> <url> <unk> <email>, <handle>"),
        ("don't", "do n't"),
        ("日本", "日 本"),
        ("Zebra", "<unk>"),
        ("🙂", "<unk>"),
        ("the\u200bdoctor", "the <unk> doctor"),
    ],
)
def test_each_kind_of_token_has_its_treatment(faithful, text, private):
    assert privatize([text], faithful, seed=1).texts == [private]


@pytest.mark.slow
@given(st.lists(st.text(max_size=30), max_size=6))
@settings(max_examples=150, deadline=None)
def test_no_character_outside_punctuation_and_space_survives(faithful, texts):
    result = privatize(texts, faithful)
    assert len(result.texts) == len(texts)
    allowed = set("".join(faithful.vectors.words)) | set("<number><url><email><handle>")
    for before, after in zip(texts, result.texts, strict=True):
        kept = {c for token in split(before) if token.kind in (Kind.PUNCTUATION, Kind.SPACE) for c in token.text}
        assert set(after) <= allowed | kept | {" "}


def test_the_statement_speaks_of_the_longest_document(glove):
    mechanism = TEM(glove, epsilon=5.0)
    result = privatize(["one two three", "it's 5 words: a b c!", "..."], mechanism)
    statement = result.statement
    # it, 's, words, a, b, c
    assert statement.guarantee == dptext.MetricDP(5.0, "summed euclidean", 6 * mechanism.threshold, glove.fingerprint)
    assert statement.slack == 6 * mechanism.slack
    assert (statement.unit, statement.relation) == ("document", "substitution")
    assert not statement.seeded
    assert privatize(["one"], mechanism, seed=3).statement.seeded
    assert "3" not in str(privatize(["one"], mechanism, seed=3).statement.parameters.get("seed", ""))
    assert any("number of words" in line for line in statement.exposed)


def test_a_limit_on_words_counts_for_each_document(glove):
    mechanism = TEM(glove, epsilon=3.0, document_epsilon=50.0, max_words=2)
    texts = privatize(["a b c, d", "e", "f g h"], mechanism).texts
    assert [text.replace(",", "").split()[2:] for text in texts] == [["<unk>", "<unk>"], [], ["<unk>"]]


def test_what_came_out_as_it_was_is_counted_for_the_owner(faithful):
    texts = ["The doctor LIED!", "the doctor of it", "the 7", "...", "", None, "Zebra", "the"]
    tally = privatize(texts, faithful, seed=1).tally
    # "of", "it" and "Zebra" are unknown; a number is no word, and a text without words is none that stayed
    assert (tally.words, tally.unknown, tally.kept, tally.unchanged) == (10, 3, 7, 3)
