"""A bank keeps each public text once, on one line, with the vector that its features give; and is frozen."""

import copy
import pickle
import tracemalloc
from zlib import crc32

import numpy as np
import pandas
import pyarrow
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.features import features as module
from dptext.features.features import UNIT, fit_features
from dptext.features.pool import Pool
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import release_statement
from dptext.representations.encoders import CallableEncoder, MeanOfWords

GIVEN = [
    "I like tea.",
    " She\u00a0drinks\n\ttea. ",
    "",
    None,
    "She drinks tea.",
    "He\u2028pays\x85tax.",
    "I  like tea.",
]
KEPT = ["I like tea.", "She drinks tea.", "He pays tax."]
WORDS, POINTS = ["i", "tea", "tax", "drinks"], [[1.0, 0.0], [2.0, 1.0], [-1.0, 2.0], [-2.0, 1.0]]


def bank_of(texts, encoder="words", **options):
    return dptext.TextBank(texts, encoder=encoder, cache=False, **options)


def lengths(texts):
    return [[len(text), text.count("e"), text.count(" ") ** 2, 1.0] for text in texts]


def caller():
    return CallableEncoder(lengths, name="lengths")


def many(count):
    return [f"text {n} of {n % 7} e{'e' * (n % 11)}" for n in range(count)]


def test_each_text_is_kept_once_on_one_line_in_the_order_in_which_it_came():
    for texts_ in [
        lambda: GIVEN,
        lambda: (text for text in GIVEN),
        lambda: [dptext.Document(text) for text in GIVEN],
        lambda: pandas.DataFrame({"other": range(7), "text": GIVEN}),
        lambda: pyarrow.table({"text": GIVEN}),
        lambda: Pool(GIVEN),
    ]:
        bank = bank_of(texts_())
        assert [*bank.texts] == KEPT
        assert bank.fingerprint == bank_of(KEPT).fingerprint != bank_of(KEPT[::-1]).fingerprint


def test_files_are_read(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(KEPT), encoding="utf-8")
    assert [*bank_of(tmp_path / "texts.txt").texts] == KEPT
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"body": "{text}"}}\n' for text in KEPT), encoding="utf-8")
    assert [*bank_of(tmp_path / "rows.jsonl", text="body").texts] == KEPT


def test_texts_are_a_sequence():
    texts = bank_of([*KEPT, "odd \ud800 one", "null \0 byte", "\u05e9\u05dc\u05d5\u05dd e\u0301"]).texts
    assert len(texts) == 6
    assert texts[-1] == texts[5] == "\u05e9\u05dc\u05d5\u05dd e\u0301"
    assert texts[3:5] == ["odd ? one", "null \0 byte"]
    assert texts[::-2] == [texts[5], texts[3], texts[1]]
    assert (texts.index("He pays tax."), "nothing" in texts) == (2, False)
    for place in (6, -7):
        with pytest.raises(IndexError):
            texts[place]


def test_name_and_licence_are_those_of_the_pool_in_statement_and_card():
    pool = Pool(GIVEN, name="sayings", licence="CC0-1.0")
    for bank in (bank_of(pool), bank_of(GIVEN, name="sayings", licence="CC0-1.0")):
        assert bank.parameters().items() >= {
            "bank": "sayings", "bank_texts": 3, "bank_sha256": bank.fingerprint, "bank_licence": "CC0-1.0",
        }.items()  # fmt: skip
        assert "sayings" in bank.card() and "CC0-1.0" in bank.card() and "lengths" not in bank.card()
        parameters = dptext.BankRewriter(bank, epsilon=1.0).statement.parameters
        assert parameters.items() >= bank.parameters().items()
    with pytest.raises(ParameterError, match="leave name and licence out"):
        bank_of(pool, name="other")
    unknown = bank_of(GIVEN)
    assert "bank_licence" not in unknown.parameters()
    assert "source:** unknown" in unknown.card()


@pytest.mark.parametrize("texts", [["one text", "one  text"], ["a", "b"]])
def test_fewer_than_three_texts_are_no_bank(texts):
    with pytest.raises(ParameterError, match="at least 3 distinct texts"):
        bank_of(texts)


def test_what_a_pool_refuses_a_bank_refuses():
    with pytest.raises(ParameterError, match="holds no text"):
        bank_of(["", None])
    with pytest.raises(DataError, match="entry 2 is int"):
        bank_of(["a", 3, "b"])
    with pytest.raises(ParameterError, match="features must be"):
        bank_of(KEPT, encoder="nothing of it")


# -- vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["words", MeanOfWords(dptext.load_vectors((WORDS, POINTS)))])
def test_vectors_are_those_of_the_features_for_each_text_alone(encoder):
    bank = bank_of([*KEPT, "tax", "tea and tea", "nothing known"], encoder)
    assert bank.vectors.dtype == np.float32 and not bank.vectors.flags.writeable
    assert (np.rint(bank.vectors / UNIT) * UNIT == bank.vectors).all()
    assert np.square(bank.vectors.astype(np.float64)).sum(axis=1).max() <= 1
    assert (bank.vectors == np.concatenate([bank.features.vectors([text]) for text in bank.texts])).all()
    assert (bank.nearest(bank.vectors, 2) == np.sort(bank.nearest(bank.vectors, 2))).all()


def test_features_that_were_fitted_before_are_taken():
    features = fit_features(caller(), many(50), cache=False)
    bank = bank_of(KEPT, features)
    assert bank.features is features
    assert (bank.vectors == features.vectors(KEPT)).all()


def test_what_a_batch_does_to_public_texts_stays_below_a_unit_or_two():
    """A sentence model rounds otherwise in a batch; here a function that errs by a part in a hundred thousand."""

    def in_company(texts):
        rows = np.sin(np.outer([crc32(text.encode()) % 1000 for text in texts], np.arange(1, 9)))
        return rows * (1 + 1e-5 * (len(texts) > 1))

    bank = bank_of(many(200), CallableEncoder(in_company, name="in company"))
    alone = bank.features.vectors(bank.texts)
    assert 0 < np.abs(bank.vectors - alone).max() <= 2 * UNIT


def test_the_profile_is_of_the_bank_without_each_text_itself():
    bank = bank_of(many(40))
    products = bank.vectors.astype(np.float64) @ bank.vectors.T.astype(np.float64)
    np.fill_diagonal(products, -np.inf)
    sums = np.cumsum(-np.sort(-products, axis=1)[:, :-1], axis=1).mean(axis=0)
    assert bank.profile.candidates == 39
    assert np.allclose(bank.profile.cumulative, sums[bank.profile.ranks - 1], atol=1e-9)


def test_word_vectors_under_a_promise_are_refused():
    """What a bank makes of a text would depend on the people whose words the vectors were trained on."""
    public = dptext.load_vectors((WORDS, POINTS))
    statement = release_statement(
        guarantee=ApproxDP(0.5, 1e-7), unit=Unit.USER, relation=Relation.ADD_REMOVE, trust=Trust.CENTRAL,
        mechanism="word vectors",
    )  # fmt: skip
    released = dptext.WordVectors(public.words, public.matrix, statement=statement)
    with pytest.raises(RefusedError, match="use public vectors"):
        bank_of(KEPT, MeanOfWords(released))


# -- frozen content ---------------------------------------------------------------------------------------------------


def test_it_is_frozen():
    bank = bank_of(KEPT)
    for name in ("name", "vectors", "profile", "new"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(bank, name, None)
    with pytest.raises(ValueError, match="read-only"):
        bank.vectors[0, 0] = 1.0


@pytest.mark.parametrize("other", [lambda bank: pickle.loads(pickle.dumps(bank)), copy.copy, copy.deepcopy])
def test_copies_are_the_same_bank(other):
    bank = bank_of(KEPT, name="three", licence="MIT")
    before = bank.nearest(bank.vectors, 2)
    result = other(bank)
    assert (result.fingerprint, result.name, result.licence) == (bank.fingerprint, "three", "MIT")
    assert [*result.texts] == [*bank.texts]
    assert (result.nearest(bank.vectors, 2) == before).all()
    assert not result.vectors.flags.writeable


def test_neither_raw_encodings_nor_a_second_copy_of_the_vectors_is_held(monkeypatch):
    """Of the encodings one part at a time: all of them would be 2 MB more, and the pool's texts 1 MB."""
    monkeypatch.setattr(module, "_KEPT_TOGETHER", 512)
    monkeypatch.setattr(module, "_AT_ONCE", 256)
    texts = many(8000)
    wide = CallableEncoder(lambda texts: np.resize(np.array(lengths(texts)), (len(texts), 64)), name="wide")
    features = fit_features(wide, texts[:50], cache=False)
    tracemalloc.start()
    bank = bank_of(iter(texts), features)
    allocated, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    content = bank.vectors.nbytes + sum(len(text.encode()) + 9 for text in bank.texts)
    assert allocated < content + 300_000
    assert peak < content + 1_500_000
