"""Contract of all estimators of texts: the rules of scikit-learn, and fresh noise in each call."""

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
from contracts.forked import outputs_of_processes
from dptext.errors import DataError, ParameterError
from dptext.privacy.guarantee import Unit

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
