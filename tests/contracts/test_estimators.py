"""Contract of all estimators of texts: the rules of scikit-learn, and fresh noise in each call."""

import inspect
import pickle
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

import dptext
from contracts.cases import RANDOM, UNSAFE, VECTORS, WORDS
from contracts.forked import outputs_of_processes
from dptext.errors import DataError, ParameterError
from dptext.privacy.guarantee import ApproxDP, MetricDP, NoGuarantee, PureDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.registry import RANDOMIZERS
from dptext.words.registry import MECHANISMS, PUBLISHED_ONLY

ROW = "room staff kitchen garden breakfast hotel street window city house " * 20


def _private_encoder(vectors):
    return dptext.PrivateEncoder(vectors, dptext.PrivUnit(epsilon=4.0), public_texts=list(vectors.words[:40]))


def _sentence_privatizer(vectors):
    bank = dptext.TextBank(vectors.words, encoder=dptext.MeanOfWords(vectors), cache=False)
    return dptext.SentencePrivatizer(bank, epsilon=0.1, unit="document", max_sentences=40)


ESTIMATORS = {
    "WordPrivatizer": lambda vectors: dptext.WordPrivatizer(epsilon=0.1, vectors=vectors, limit=None),
    "SentencePrivatizer": _sentence_privatizer,
    "PrivateEncoder": _private_encoder,
}
STORED = {
    "SentencePrivatizer": {"bank": 7, "epsilon": -1, "unit": "user", "max_sentences": "n", "encoder": 5, "seed": "s"},
    "WordPrivatizer": {"mechanism": "no such", "epsilon": -1, "vectors": 3, "mechanism_params": 7, "seed": "s"},
    "PrivateEncoder": {"encoder": 7, "randomizer": "noise", "dimension": -1, "bound": None, "public_texts": 5},
}


@pytest.fixture(params=ESTIMATORS)
def estimator(request, small):
    return ESTIMATORS[request.param](small)


def listed(output):
    """The output of `transform` as lists: words of a text, or numbers of a vector."""
    return [row.split() if isinstance(row, str) else list(row) for row in output]


def shared(one, other):
    """The share of places at which two outputs agree."""
    return np.mean(
        [a == b for row, repeated in zip(one, other, strict=True) for a, b in zip(row, repeated, strict=True)]
    )


@pytest.mark.parametrize("name", STORED)
def test_the_constructor_only_stores(name):
    values = STORED[name]
    output = getattr(dptext, name)(**values)
    assert {key: output.get_params()[key] for key in values} == values
    assert output.get_params() == vars(output)
    assert output.set_params(seed=3).get_params()["seed"] == 3


def test_an_estimator_follows_the_rules_of_scikit_learn(estimator):
    with pytest.raises(NotFittedError):
        estimator.transform(["a"])
    tags = get_tags(estimator)
    assert tags.non_deterministic and tags.no_validation
    assert (tags.input_tags.string, tags.input_tags.two_d_array) == (True, False)
    estimator.fit()
    assert len(estimator.transform(["", "one two", None, "!?", float("nan")])) == 5
    assert estimator.transform([]).shape[0] == 0
    assert isinstance(estimator.transform(np.array(["a", "b"], dtype=object)), np.ndarray)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    frozen = [value for value in vars(estimator).values() if isinstance(value, dptext.WordVectors | dptext.TextBank)]
    assert len(frozen) == 1 and frozen[0] in vars(copy).values()  # so there is no need of a second one
    assert not any(name.endswith("_") for name in vars(copy))
    model = make_pipeline(estimator, FunctionTransformer(len)).fit([ROW] * 4)
    assert pickle.loads(pickle.dumps(model)).transform([ROW] * 3) == 3
    assert model[0].statement_.unit is Unit.DOCUMENT


def test_only_a_column_of_texts_is_taken(estimator):
    pandas = pytest.importorskip("pandas")
    estimator.fit()
    for texts in ("one text", {"text": ["a"]}, 7):
        with pytest.raises(ParameterError, match="must be a list, an array or a Series"):
            estimator.transform(texts)
    for texts in (pandas.DataFrame({"text": ["a"]}), np.array([["a"]])):
        with pytest.raises(ParameterError, match="one column, got 2 axes"):
            estimator.transform(texts)
    with pytest.raises(DataError, match="entry 2 is int"):
        estimator.transform(["a", 5])


def test_the_statement_is_that_of_the_last_call_and_two_calls_compose(estimator):
    assert not hasattr(estimator.fit(), "statement_")
    estimator.transform(["one two three"])
    first = estimator.statement_
    estimator.transform(["one two three"])
    second = estimator.statement_
    assert first.release_id != second.release_id
    assert first.replace(release_id=None) == second.replace(release_id=None)
    both = first.compose(second)
    assert both.guarantee.epsilon == pytest.approx(2 * first.guarantee.epsilon)
    assert both.slack == first.slack + second.slack


def test_every_call_clone_and_pickle_draws_afresh_and_only_seeds_repeat(estimator):
    stored = pickle.dumps(estimator.fit())
    outputs = [listed(estimator.transform([ROW])) for _ in range(2)]
    outputs += [listed(pickle.loads(stored).transform([ROW])) for _ in range(2)]
    outputs += [listed(clone(estimator).fit().transform([ROW])) for _ in range(2)]
    assert max(shared(one, other) for one, other in combinations(outputs, 2)) < 0.2
    stored = pickle.dumps(estimator)
    assert not any(state in stored for state in (b"RandomBits", b"NoiseKey", b"release.mechanism", b"randomness"))
    assert pickle.loads(stored).statement_ == estimator.statement_
    seeded = clone(estimator).set_params(seed=7).fit()
    one, repeated, other = (listed(seeded.transform(texts)) for texts in ([ROW], [ROW], [ROW, "more"]))
    assert one == repeated
    assert seeded.statement_.seeded
    assert shared(one, other[:1]) < 0.2  # other content, other noise


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_forked_processes_draw_afresh(estimator):
    estimator.fit().transform([ROW])
    # 200 words of 300 near-uniform ones; or 20 rows of numbers on a fine grid: chance makes few places agree
    outputs = outputs_of_processes(estimator, lambda inherited: listed(inherited.transform([ROW] * 20)))
    assert max(shared(one, other) for one, other in combinations(outputs, 2)) < 0.2


# -- models of people's texts -------------------------------------------------------------------------------------

POOL = ["tea and a cup of cocoa", "a cup of tea", "the tax law", "law and tax", "a new law on tax", "cocoa"]
NOTES = [
    {"note": text, "who": number, "topic": topic, "level": "open"}
    for number in range(40)
    for text, topic in [("my cup of tea", "drinks"), (None, "drinks"), ("a new tax law", "rules")]
]
DOCUMENTS = [
    dptext.Document(row["note"], user=str(row["who"]), attributes={"topic": row["topic"], "level": row["level"]})
    for row in NOTES
]
BUDGET = {"epsilon": 8.0, "delta": 1e-6}


def synthesizer(**changes):
    features = {"features": dptext.MeanOfWords(VECTORS), "cache": False, "seed": 1}
    return dptext.Synthesizer(**{**BUDGET, "labels": ["drinks", "rules"], "column": "topic", **features, **changes})


def skip_gram():
    return dptext.SkipGram(VECTORS, **BUDGET, public_users=40, steps=2, sampling_rate=0.5, seed=1)


MODELS = {
    "Synthesizer": lambda rows, **names: synthesizer().fit(rows, public=POOL, **names).matrix,
    "Synthesizer, label": lambda rows, **names: (
        synthesizer(column="topic" if rows is DOCUMENTS else "class")
        .fit(rows, public=POOL, **({"label": "topic"} if names else {}), **names)
        .matrix
    ),
    "Synthesizer, two labels": lambda rows, **names: (
        synthesizer(labels={"topic": ["drinks", "rules"], "level": ["open"]}).fit(rows, public=POOL, **names).matrix
    ),
    "Cooccurrence": lambda rows, **names: (
        (
            dptext.Cooccurrence(VECTORS, epsilon={"open": 8.0, "strict": 1.0}, level="level", seed=1).fit(rows, **names)
        ).release_
    ),
    "SkipGram": lambda rows, **names: skip_gram().fit(rows, **names).vectors_.matrix,
    "private_vocabulary": lambda rows, **names: sorted(
        dptext.private_vocabulary(rows, **BUDGET, words_per_user=5, **names).words
    ),
    "private_labels": lambda rows, **names: sorted(
        dptext.private_labels(rows, **BUDGET, column="topic", **names).names
    ),
}


def _dataset(rows):
    datasets = pytest.importorskip("datasets")
    table, names = datasets.Dataset.from_list(rows), ["drinks", "rules"]
    features = datasets.Features({**table.features, "topic": datasets.ClassLabel(names=names)})
    columns = {name: table[name][:] for name in table.column_names}
    return datasets.Dataset.from_dict(columns | {"topic": [names.index(row["topic"]) for row in rows]}, features)


TABLES = {
    "pandas": lambda rows: pytest.importorskip("pandas").DataFrame(rows),
    "polars": lambda rows: pytest.importorskip("polars").DataFrame(rows),
    "pyarrow": lambda rows: pytest.importorskip("pyarrow").Table.from_pylist(rows),
    "datasets": _dataset,
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", MODELS)
def test_a_table_is_fitted_like_its_documents(name, kind):
    expected = MODELS[name](DOCUMENTS)
    assert len(expected) > 1
    np.testing.assert_array_equal(MODELS[name](TABLES[kind](NOTES), text="note", user="who"), expected)


@pytest.mark.parametrize("name", MODELS)
def test_a_table_without_its_columns_is_refused_before_the_work(name):
    table = TABLES["pyarrow"](NOTES)
    with pytest.raises(ParameterError, match="the table has no user column: pass user="):
        MODELS[name](table, text="note")
    with pytest.raises(ParameterError, match="expected a column 'text', the table has"):
        MODELS[name](table, user="who")
    with pytest.raises(ParameterError, match=r"user names a column of a table, got documents"):
        MODELS[name](DOCUMENTS, user="who")


# -- attributes ---------------------------------------------------------------------------------------------------

BANK = dptext.TextBank(POOL, encoder=dptext.MeanOfWords(VECTORS), cache=False)
PARAMETERS = {
    **{
        type(mechanism).__name__: mechanism
        for mechanism in (
            kind(VECTORS, epsilon=9.0, **WORDS.get(name, UNSAFE if name in PUBLISHED_ONLY else {}))
            for name, kind in (MECHANISMS | PUBLISHED_ONLY).items()
        )
    },
    **{name: kind(epsilon=9.0, **RANDOM.get(name, {})) for name, kind in RANDOMIZERS.items()},
    "BankRewriter": dptext.BankRewriter(BANK, epsilon=9.0, size=1),
    "SentencePrivatizer": dptext.SentencePrivatizer(BANK, epsilon=9.0),
    "WordPrivatizer": dptext.WordPrivatizer(epsilon=9.0, vectors=VECTORS),
    "PrivateEncoder": dptext.PrivateEncoder(VECTORS, epsilon=9.0),
    "HidingEncoder": dptext.HidingEncoder(None, epsilon=9.0),
    "Synthesizer": synthesizer(epsilon=9.0, unit="document", most_documents=7),
    "Cooccurrence": dptext.Cooccurrence(VECTORS, epsilon=9.0),
    "SkipGram": dptext.SkipGram(VECTORS, epsilon=9.0),
}


def parameters_of(kind):
    return [name for name, entry in inspect.signature(kind).parameters.items() if entry.kind is not entry.VAR_KEYWORD]


def test_every_estimator_and_mechanism_is_in_this_contract():
    classes = [kind for kind in (getattr(dptext, name) for name in dptext._HOME) if inspect.isclass(kind)]
    classes.remove(dptext.DptextError)
    budgeted = {kind.__name__ for kind in classes if "epsilon" in parameters_of(kind)}
    assert budgeted - {"PureDP", "ApproxDP", "MetricDP"} == PARAMETERS.keys() & {kind.__name__ for kind in classes}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_parameters_of_the_constructor_are_attributes(name):
    estimator = PARAMETERS[name]
    options = estimator.options if name == "HidingEncoder" else estimator
    for parameter in parameters_of(type(estimator)):
        assert hasattr(estimator, parameter) or hasattr(options, parameter), parameter
    assert estimator.epsilon == 9.0


def test_a_changed_parameter_of_a_synthesizer_counts():
    model = synthesizer()
    assert (model.unit, model.delta, model.most_documents, model.labels.columns) == ("user", 1e-6, 1000, ("topic",))
    model.epsilon, model.unit = 2.0, "document"
    assert model.fit(DOCUMENTS, public=POOL).statement.guarantee == ApproxDP(2.0, 1e-6)
    assert model.plan(POOL).unit == "document"


@pytest.mark.parametrize(
    ("guarantee", "expected"),
    [
        (PureDP(2.0), (2.0, 0.0)),
        (ApproxDP(2.0, 1e-6), (2.0, 1e-6)),
        (MetricDP(2.0, "euclidean", 3.0), (6.0, 0.0)),
        (NoGuarantee("no noise"), (np.inf, 0.0)),
    ],
)
def test_a_statement_has_the_numbers_of_its_guarantee(guarantee, expected):
    kind = {"unit": Unit.USER, "relation": Relation.ADD_REMOVE, "trust": Trust.CENTRAL, "mechanism": "a mechanism"}
    statement = PrivacyStatement(guarantee=guarantee, condition="any two", **kind)
    assert (statement.epsilon, statement.delta) == expected


def test_results_have_the_numbers_of_their_guarantee():
    distribution = synthesizer().fit(DOCUMENTS, public=POOL)
    encoder = dptext.PrivateEncoder(dptext.MeanOfWords(VECTORS), epsilon=8.0).fit(POOL)
    for result in (
        distribution,
        distribution.sample(POOL, 2, cache=False),
        skip_gram().fit(DOCUMENTS).vectors_,
        dptext.private_vocabulary(DOCUMENTS, **BUDGET),
        dptext.private_labels(DOCUMENTS, **BUDGET, column="topic"),
        encoder.release_,
        dptext.privatize(["my cup"], PARAMETERS["BankRewriter"]),
    ):
        assert (result.epsilon, result.delta) == (result.statement.epsilon, result.statement.delta)
        assert 0 < result.epsilon < np.inf
    assert not hasattr(VECTORS, "epsilon")  # public vectors
