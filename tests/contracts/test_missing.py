"""NaN, None and the missing values of pandas are the same, wherever a text, a user, a label or a table is accepted."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import dptext
from dptext import Document
from dptext.attacks.base import as_codes, as_texts
from dptext.errors import DataError, DptextError
from dptext.io.documents import read_documents
from dptext.methods.data import look
from dptext.synthesis.moments import Labels
from dptext.text.identifiers import look_at
from secrecy import assert_error

MISSING = [float("nan"), np.float64("nan"), np.float32("nan"), pd.NA, pd.NaT]
WORDS = ["cat", "dog", "tax", "tea", "the"]
VECTORS = dptext.load_vectors((WORDS, np.random.default_rng(0).normal(size=(5, 4)).tolist()))
MECHANISM = dptext.TEM(VECTORS, epsilon=200.0)
ENCODER = dptext.MeanOfWords(VECTORS)
POOL = ["cat dog one", "tea tax two", "the tea four", "a cat was here", "dogs bark", "the tax was late"] * 3
PAIRS = ["cat", "dog"] * 40


def documents(text="tea tax", user="b", label="y", users=40):
    """Return documents of users, half of them with this text, user and label."""
    first = [Document("cat dog", f"a{n}", "x", {"level": "x"}) for n in range(users // 2)]
    names = [f"b{n}" if isinstance(user, str) else user for n in range(users // 2)]
    return first + [Document(text, name, label, {"level": label}) for name in names]


def frame(**columns):
    return pd.DataFrame(columns, dtype=object)


def synthesis(rows, public=POOL):
    synthesizer = dptext.Synthesizer(epsilon=5.0, labels=["x", "y"], features="words", seed=1)
    return synthesizer.fit(rows, public=public).matrix.tobytes()


def co_occurrences(rows, *, epsilon=1.0, level=None, user=None):
    model = dptext.Cooccurrence(VECTORS, epsilon=epsilon, level=level, seed=1)
    return model.fit(rows, user=user).vectors_.matrix.tobytes()


def hiding(texts=PAIRS, task="xy" * 40, attribute="pq" * 40, user=None):
    encoder = dptext.HidingEncoder(ENCODER, epsilon=5.0, epochs=1, dimension=2, seed=1)
    encoder.fit(texts, task=list(task), attributes={"a": list(attribute)}, user=user)
    return encoder.transform(["cat"], seed=1).tobytes()


def advised(**row):
    rows = [{"text": "cat dog", "user": "a", "label": "x"}, {"text": "b", "user": "b", "label": "y"}, row]
    data = look(rows, text=None, user=None, labels=None)
    return data.rows, data.empty, data.people, data.classes


ENTRIES = {
    "privatize, list": lambda x: dptext.privatize(["cat", x], MECHANISM, seed=1).texts,
    "privatize, Document": lambda x: dptext.privatize([Document("cat"), Document(x)], MECHANISM, seed=1).texts,
    "privatize, array": lambda x: dptext.privatize(np.array(["cat", x], dtype=object), MECHANISM, seed=1).texts,
    "privatize, Series": lambda x: dptext.privatize(pd.Series(["cat", x], dtype=object), MECHANISM, seed=1).texts,
    "privatize, table": lambda x: dptext.privatize(frame(text=["cat", x]), MECHANISM, seed=1).table.text.tolist(),
    "privatize, user": lambda x: (
        dptext.privatize(frame(text=["cat", "dog"], who=["a", x]), MECHANISM, user="who", seed=1).most_texts
    ),
    "privatize, keep": lambda x: (
        dptext.privatize(frame(text=["cat", "dog"], n=["a", x]), MECHANISM, keep=["n"], seed=1).table.n.isna().tolist()
    ),
    "Redacted": lambda x: dptext.privatize(["cat", x], dptext.Redacted(MECHANISM), seed=1).texts,
    "WordPrivatizer": lambda x: (
        dptext.WordPrivatizer("tem", vectors=VECTORS, epsilon=9.0, seed=1).fit(WORDS).transform([x]).tolist()
    ),
    "Pool": lambda x: vars(dptext.Pool(["cat", x])),
    "Pool, table": lambda x: vars(dptext.Pool(frame(text=["cat", x]))),
    "TextBank": lambda x: dptext.TextBank([*POOL, x], encoder="words", cache=False).texts,
    "Cooccurrence, text": lambda x: co_occurrences(documents(text=x)),
    "Cooccurrence, user": lambda x: co_occurrences(documents(user=x)),
    "Cooccurrence, level": lambda x: co_occurrences(documents(label=x), epsilon={"x": 1.0, "y": 2.0}, level="level"),
    "Cooccurrence, table": lambda x: co_occurrences(frame(text=["cat"], who=[x]), user="who"),
    "Synthesizer, text": lambda x: synthesis(documents(text=x)),
    "Synthesizer, label": lambda x: synthesis(documents(label=x)),
    "Synthesizer, user": lambda x: synthesis(documents(user=x)),
    "Synthesizer, public": lambda x: synthesis(documents(), public=[*POOL, x]),
    "Labels": lambda x: Labels.of({"topic": ["a", x]}),
    "private_labels": lambda x: repr(dptext.private_labels(documents(label=x, users=600), epsilon=5.0, delta=1e-6)),
    "private_vocabulary": lambda x: repr(
        dptext.private_vocabulary(documents(text=x, users=600), epsilon=5.0, delta=1e-6)
    ),
    "MeanOfWords": lambda x: ENCODER.encode(["cat", x]).tobytes(),
    "PrivateEncoder": lambda x: (
        dptext.PrivateEncoder(ENCODER, epsilon=5.0, dimension=2, seed=1).fit([*WORDS, x] * 4).transform([x]).tobytes()
    ),
    "NoisyClassifier": lambda x: dptext.NoisyClassifier(seed=1).fit(
        np.eye(4), np.array(["a", "b", "a", x], dtype=object)
    ),
    "HidingEncoder, text": lambda x: hiding(["cat", x] * 40),
    "HidingEncoder, task": lambda x: hiding(["cat", "dog", "tea"] * 40, ["x", "y", x] * 40, ["p", "q", x] * 40),
    "HidingEncoder, user": lambda x: hiding(user=["a", x] * 40),
    "advise, text": lambda x: advised(text=x, user="c", label="x"),
    "advise, user": lambda x: advised(text="cat", user=x, label="x"),
    "advise, label": lambda x: advised(text="cat", user="c", label=x),
    "columns": lambda x: look_at("text", ["cat", x]),
    "as_texts": lambda x: as_texts("texts", ["cat", x]),
    "as_codes": lambda x: as_codes("labels", ["a", "b", x], 3),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_missing_value_is_treated_like_none(entry):
    expected = outcome(entry, None)
    for missing in MISSING:
        assert outcome(entry, missing) == expected


def outcome(entry, value):
    """Return the result, or the kind and message of the error."""
    try:
        result = ENTRIES[entry](value)
    except DptextError as error:
        return type(error), str(error)
    return result if isinstance(result, bytes | tuple | list | dict) else repr(result)


NAN = {"text": [float("nan")] * 2, "who": [float("nan")] * 2, "n": [float("nan")] * 2}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_numbers_have_missing_values(kind):
    released = dptext.privatize(kind(NAN), MECHANISM, user="who", keep=["n"])
    assert (released.documents, released.tally.missing, released.most_texts) == (2, 2, (0, 0))
    assert list(released.table["text"]) == [None] * 2 or released.table["text"].to_pylist() == [None] * 2
    error = "2 of 2 rows have no usable value in the column 'who'"
    assert_error(DataError, lambda: dptext.Cooccurrence(VECTORS, epsilon=1.0).fit(kind(NAN), user="who"), error)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_files_of_numbers_have_missing_values(suffix, tmp_path):
    path, out = tmp_path / f"in{suffix}", tmp_path / "out.csv"
    if suffix == ".jsonl":
        path.write_text('{"text": NaN, "who": NaN, "n": NaN}\n' * 2)
    elif suffix == ".parquet":
        pa.parquet.write_table(pa.table(NAN), path)
    else:
        path.write_text("text,who,n\n,,\n,,\n")
    assert_error(DataError, lambda: read_documents(path, user="who").check_users(), "2 of 2 rows have no usable value")
    dptext.privatize_file(dptext.TextFiles(path, keep=["n"]), out, MECHANISM)
    assert out.read_text() == "text,n\n,\n,\n"
