"""`TextBank`: distinct public texts in one line each, with the vectors of their features; frozen."""

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
from dptext.noise.subset_selection import best_size
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import release_statement
from dptext.representations.encoders import CallableEncoder, MeanOfWords
from dptext.sentences.bank import default_size, optimal_weights
from dptext.vectors.nearest_sets import NearestSets

TEXTS = [
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


def many(count):
    return [f"text {n} of {n % 7} e{'e' * (n % 11)}" for n in range(count)]


# -- texts ------------------------------------------------------------------------------------------------------------


def test_each_text_is_kept_once_on_one_line_in_order(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(KEPT), encoding="utf-8")
    for texts in [
        TEXTS,
        (text for text in TEXTS),
        [dptext.Document(text) for text in TEXTS],
        pandas.DataFrame({"other": range(7), "text": TEXTS}),
        pyarrow.table({"text": TEXTS}),
        Pool(TEXTS),
        tmp_path / "texts.txt",
    ]:
        bank = bank_of(texts)
        assert [*bank.texts] == KEPT
        assert bank.fingerprint == bank_of(KEPT).fingerprint != bank_of(KEPT[::-1]).fingerprint
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"body": "{text}"}}\n' for text in KEPT), encoding="utf-8")
    assert [*bank_of(tmp_path / "rows.jsonl", text="body").texts] == KEPT


def test_statement_and_card_name_the_source_and_its_licence():
    pool = Pool(TEXTS, name="sayings", licence="CC0-1.0")
    for bank in (bank_of(pool), bank_of(TEXTS, name="sayings", licence="CC0-1.0")):
        parameters = bank.parameters()
        assert parameters.items() >= {"bank": "sayings", "bank_texts": 3, "bank_licence": "CC0-1.0"}.items()
        assert parameters["bank_sha256"] == bank.fingerprint
        assert "sayings" in bank.card() and "CC0-1.0" in bank.card()
        assert dptext.BankRewriter(bank, epsilon=1.0).statement.parameters.items() >= parameters.items()
    unknown = bank_of(TEXTS)
    assert "bank_licence" not in unknown.parameters()
    assert "source:** unknown" in unknown.card()


def test_invalid_banks_are_refused():
    public = dptext.load_vectors((WORDS, POINTS))
    statement = release_statement(
        guarantee=ApproxDP(0.5, 1e-7),
        unit=Unit.USER,
        relation=Relation.ADD_REMOVE,
        trust=Trust.CENTRAL,
        mechanism="word vectors",
    )
    released = dptext.WordVectors(public.words, public.matrix, statement=statement)
    for build, error, part in [
        (lambda: bank_of(Pool(TEXTS), name="other"), ParameterError, "omit name and licence"),
        (lambda: bank_of(["one text", "one  text"]), ParameterError, "at least 3 distinct texts"),
        (lambda: bank_of(["", None]), ParameterError, "contains no text"),
        (lambda: bank_of(["a", 3, "b"]), DataError, "entry 2 is int"),
        (lambda: bank_of(KEPT, encoder="nothing of it"), ParameterError, "features must be"),
        (lambda: bank_of(KEPT, MeanOfWords(released)), RefusedError, "use public vectors"),  # a private release
    ]:
        with pytest.raises(error, match=part):
            build()


# -- vectors ----------------------------------------------------------------------------------------------------------


def test_vectors_are_bounded_and_those_of_each_text_alone():
    for encoder in ("words", MeanOfWords(dptext.load_vectors((WORDS, POINTS)))):
        bank = bank_of([*KEPT, "tax", "tea and tea", "nothing known"], encoder)
        assert bank.vectors.dtype == np.float32 and not bank.vectors.flags.writeable
        assert (np.rint(bank.vectors / UNIT) * UNIT == bank.vectors).all()
        assert np.square(bank.vectors.astype(np.float64)).sum(axis=1).max() <= 1
        assert (bank.vectors == np.concatenate([bank.features.vectors([text]) for text in bank.texts])).all()
        assert (bank.nearest(bank.vectors, 2) == np.sort(bank.nearest(bank.vectors, 2))).all()
    features = fit_features(CallableEncoder(lengths, name="lengths"), many(50), cache=False)
    bank = bank_of(KEPT, features)
    assert bank.features is features
    assert (bank.vectors == features.vectors(KEPT)).all()


def test_encoding_in_batches_changes_public_vectors_by_few_units():
    """A sentence model rounds differently in a batch; here a function errs by a part in a hundred thousand."""

    def in_batches(texts):
        rows = np.sin(np.outer([crc32(text.encode()) % 1000 for text in texts], np.arange(1, 9)))
        return rows * (1 + 1e-5 * (len(texts) > 1))

    bank = bank_of(many(200), CallableEncoder(in_batches, name="in batches"))
    alone = bank.features.vectors(bank.texts)
    assert 0 < np.abs(bank.vectors - alone).max() <= 2 * UNIT


def test_the_profile_leaves_each_text_out_of_its_own_ranks():
    bank = bank_of(many(40))
    products = bank.vectors.astype(np.float64) @ bank.vectors.T.astype(np.float64)
    np.fill_diagonal(products, -np.inf)
    sums = np.cumsum(-np.sort(-products, axis=1)[:, :-1], axis=1).mean(axis=0)
    assert bank.profile.candidates == 39
    assert np.allclose(bank.profile.cumulative, sums[bank.profile.ranks - 1], atol=1e-9)


def test_neither_encodings_nor_a_second_copy_of_the_vectors_is_kept(monkeypatch):
    """All encodings would be 2 MB more, and the texts of the pool 1 MB."""
    monkeypatch.setattr(module, "_AT_ONCE", 512)
    texts = many(8000)
    wide = CallableEncoder(lambda texts: np.resize(np.array(lengths(texts)), (len(texts), 64)), name="wide")
    features = fit_features(wide, texts[:50], cache=False)
    tracemalloc.start()
    bank = bank_of(iter(texts), features)
    allocated, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    content = bank.vectors.nbytes + sum(len(text.encode()) + 70 for text in bank.texts)
    assert allocated < content + 300_000
    assert peak < content + 1_500_000


def test_a_bank_is_frozen_and_its_copies_are_equal():
    bank = bank_of(KEPT, name="three", licence="MIT")
    for name in ("name", "vectors", "profile", "new"):
        with pytest.raises(AttributeError, match=r"frozen|immutable"):
            setattr(bank, name, None)
    before = bank.nearest(bank.vectors, 2)
    for result in (pickle.loads(pickle.dumps(bank)), copy.copy(bank), copy.deepcopy(bank)):
        assert (result.fingerprint, result.name, result.licence) == (bank.fingerprint, "three", "MIT")
        assert [*result.texts] == [*bank.texts]
        assert (result.nearest(bank.vectors, 2) == before).all()
        with pytest.raises(ValueError, match="read-only"):
            result.vectors[0, 0] = 1.0


# -- thinning ---------------------------------------------------------------------------------------------------------


def clustered(count, rng, clusters=40, dimension=24):
    """Return unit vectors on a grid of 2^-15, in tight and loose clusters."""
    centres = rng.standard_normal((clusters, dimension))
    points = centres[rng.integers(clusters, size=count)] + 0.7 * rng.standard_normal((count, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return (np.trunc(points * 2**15) / 2**15).astype(np.float32)


def expected_similarity(bank, queries, epsilon):
    profile = NearestSets(bank).profile(queries)
    return profile.expected(best_size(epsilon, profile), epsilon)


@pytest.mark.slow
def test_a_thinned_bank_is_more_similar_to_unseen_texts(monkeypatch):
    vectors = clustered(2300, np.random.default_rng(5))
    bank, held_out = vectors[:2000], vectors[2000:]
    for epsilon in (2.0, 4.0):
        floor = optimal_weights(bank, epsilon)
        best = np.sort(np.argsort(-floor, kind="stable")[: default_size(floor)])
        worst = np.sort(np.argsort(floor, kind="stable")[: best.size])
        every = expected_similarity(bank, held_out, epsilon)
        assert expected_similarity(bank[best], held_out, epsilon) > every + 0.005
        assert expected_similarity(bank[worst], held_out, epsilon) < every
    monkeypatch.setattr("dptext.threads.available_cores", lambda: 1)
    assert (optimal_weights(bank, 4.0) == floor).all()


def test_a_thinned_bank_is_a_bank(tmp_path):
    texts = [f"{entry} {other}" for entry in ("tea", "milk", "tax", "law", "dog") for other in ("here", "there", "now")]
    bank = bank_of(texts, name="things", licence="CC0-1.0")
    thin = bank.thinned(1.0, texts=6)
    assert (len(thin), thin.name, thin.licence) == (6, "things, thinned", "CC0-1.0")
    assert set(thin.texts) < set(bank.texts)
    assert thin.fingerprint != bank.fingerprint
    assert (thin.vectors == bank.vectors[[texts.index(text) for text in thin.texts]]).all()
    thin.save(tmp_path / "thin")
    assert dptext.TextBank.load(tmp_path / "thin").fingerprint == thin.fingerprint
    assert 3 <= len(bank.thinned(1.0)) <= len(bank)
    for epsilon, count in [(0.0, 4), (30.0, 4), (1.0, 2), (1.0, 16)]:
        with pytest.raises(ParameterError, match="must be"):
            bank.thinned(epsilon, texts=count)
