"""The scikit-learn transformer: it works where estimators work, keeps no random state, says what it promised."""

import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import dptext
from dptext import WordPrivatizer
from dptext.errors import DataError, ParameterError

GOOD = ["lovely", "excellent", "friendly"]
BAD = ["awful", "terrible", "dirty"]
NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "hotel", "street", "window", "city", "house"]
TEXTS = [f"the {noun} was {word}" for words in (GOOD, BAD) for word in words for noun in NOUNS]
LABELS = np.repeat([1, 0], 30)
LONG = " ".join(NOUNS * 20)
"""200 words: among 300 near-uniform ones, two independent draws agree with probability 300^-200 or so."""


@pytest.fixture(scope="module")
def vectors(glove):
    return dptext.load_vectors(glove, limit=12_000)


@pytest.fixture
def privatizer(small):
    return WordPrivatizer(epsilon=0.1, vectors=small, limit=None)


def test_the_constructor_only_stores(monkeypatch):
    monkeypatch.setattr("dptext.words.estimator.load_vectors", None)
    given = {"mechanism": "no such", "epsilon": -1, "vectors": 3, "limit": "x", "mechanism_params": 7, "seed": "s"}
    made = WordPrivatizer(**given)
    assert made.get_params() == given == vars(made)
    assert made.set_params(epsilon=2.0, seed=None).get_params()["epsilon"] == 2.0


def test_a_clone_has_the_parameters_and_nothing_that_was_fitted(privatizer):
    privatizer.fit().transform(["a"])
    copy = clone(privatizer)
    assert copy.get_params() == privatizer.get_params()
    assert copy.vectors is privatizer.vectors  # frozen, so there is no need of a second one
    assert not any(name.endswith("_") for name in vars(copy))


def test_every_text_has_its_row(privatizer):
    texts = ["", "one two", "  ", "!?", "three"]
    private = privatizer.fit_transform(texts)
    assert private.shape == (5,)
    assert private.dtype == object
    assert [len(text.split()) for text in private] == [0, 2, 0, 1, 1]
    assert privatizer.transform([]).shape == (0,)


def test_lists_arrays_and_series_are_texts(privatizer):
    pandas = pytest.importorskip("pandas")
    privatizer.set_params(epsilon=2000.0, mechanism_params={"threshold": 0.02}).fit()
    words = list(privatizer.mechanism_.vectors.words[20:23])
    for texts in (
        words,
        tuple(words),
        np.array(words),
        np.array(words, dtype=object),
        pandas.Series(words, index=[7, 8, 9]),
        pandas.Series(words, dtype="string"),
        (word for word in words),
    ):
        assert privatizer.transform(texts).tolist() == words


def test_missing_texts_become_empty_ones_so_that_what_follows_has_strings(privatizer):
    pandas = pytest.importorskip("pandas")
    privatizer.fit()
    for missing in (None, float("nan"), np.float64("nan"), pandas.NA, pandas.NaT):
        assert privatizer.transform(["a", missing]).tolist()[1] == ""
    assert privatizer.transform(pandas.Series(["a", None], dtype="string")).tolist()[1] == ""
    TfidfVectorizer().fit(privatizer.transform([LONG, None]))


def test_what_is_no_column_of_texts_is_refused(privatizer):
    pandas = pytest.importorskip("pandas")
    privatizer.fit()
    for texts in ("one text", {"text": ["a"]}, 7):
        with pytest.raises(ParameterError, match="must be a list, an array or a Series"):
            privatizer.transform(texts)
    for texts in (pandas.DataFrame({"text": ["a"]}), np.array([["a"]])):
        with pytest.raises(ParameterError, match=r"one column, got something with 2 axes.*table\['text'\]"):
            privatizer.transform(texts)
    with pytest.raises(DataError, match="entry 2 is int"):
        privatizer.transform(["a", 5])


def test_arguments_are_checked_by_fit(small):
    with pytest.raises(NotFittedError):
        WordPrivatizer(vectors=small).transform(["a"])
    for mechanism in ("tme", dict, None):
        with pytest.raises(ParameterError, match="mechanism must be one of 'tem', 'madlib'"):
            WordPrivatizer(mechanism, vectors=small).fit()
    with pytest.raises(ParameterError, match="epsilon must be a finite number above 0"):
        WordPrivatizer(epsilon=0, vectors=small).fit()
    with pytest.raises(ParameterError, match="limit must be an integer of at least 2"):
        WordPrivatizer(vectors=small, limit=1).fit()


@pytest.mark.parametrize(("mechanism", "name"), [("TEM", "TEM"), ("madlib", "Madlib"), (dptext.Madlib, "Madlib")])
def test_mechanisms_by_name_and_by_class(small, mechanism, name):
    fitted = WordPrivatizer(mechanism, epsilon=2.0, vectors=small, limit=None).fit(["looked", "at", "by", "nobody"])
    assert (fitted.mechanism_.name, fitted.mechanism_.epsilon) == (name, 2.0)


def test_the_known_vectors_are_loaded_once():
    first, second = (WordPrivatizer(limit=50, epsilon=epsilon).fit() for epsilon in (1.0, 2.0))
    assert first.mechanism_.vectors is second.mechanism_.vectors
    assert len(WordPrivatizer(limit=60).fit().mechanism_.vectors) == 60


# -- what is promised -----------------------------------------------------------------------------------------


def test_the_statement_is_that_of_the_same_release_by_privatize(vectors):
    options = {"document_epsilon": 30.0, "max_words": 3}
    privatizer = WordPrivatizer(epsilon=4.0, vectors=vectors, limit=None, mechanism_params=options)
    assert not hasattr(privatizer.fit(), "statement_")
    privatizer.transform(["one two three four", "five"])
    same = dptext.privatize(["one two three four", "five"], dptext.TEM(vectors, epsilon=4.0, **options)).statement
    assert privatizer.statement_.replace(release_id=None) == same.replace(release_id=None)
    assert privatizer.statement_.guarantee == dptext.PureDP(30.0)


def test_the_statement_speaks_of_the_last_call_and_two_calls_compose(privatizer):
    privatizer.fit_transform(["one two three"])
    first = privatizer.statement_
    privatizer.transform(["one two", None])
    second = privatizer.statement_
    assert [each.parameters["words_counted"] for each in (first, second)] == [3, 2]
    assert first.release_id != second.release_id
    both = first.compose(second)
    assert both.guarantee.epsilon == pytest.approx(0.2)
    assert both.slack == first.slack + second.slack
    assert not any("null" in each for each in second.exposed)  # a missing text is an empty one here


def test_with_a_seed_equal_calls_are_equal_and_the_statement_says_so(privatizer):
    seeded = clone(privatizer).set_params(seed=7).fit()
    assert seeded.transform([LONG]).tolist() == seeded.transform([LONG]).tolist()
    assert seeded.statement_.seeded
    other = seeded.transform([LONG, "more"])[0].split()  # other content, other noise
    assert np.mean([a == b for a, b in zip(seeded.transform([LONG])[0].split(), other, strict=True)]) < 0.2


# -- fresh noise ----------------------------------------------------------------------------------------------


def test_every_call_every_clone_and_every_pickle_draws_afresh(privatizer):
    privatizer.fit()
    stored = pickle.dumps(privatizer)
    outputs = [privatizer.transform([LONG])[0] for _ in range(2)]
    outputs += [pickle.loads(stored).transform([LONG])[0] for _ in range(2)]
    outputs += [clone(privatizer).fit().transform([LONG])[0] for _ in range(2)]
    assert len(set(outputs)) == 6


def test_no_random_state_is_pickled(privatizer):
    privatizer.fit().transform([LONG])
    stored = pickle.dumps(privatizer)
    for name in (b"RandomBits", b"NoiseKey", b"Rewriter", b"randomness"):
        assert name not in stored
    again = pickle.loads(stored)
    assert again.statement_ == privatizer.statement_
    assert again.mechanism_.statement == privatizer.mechanism_.statement


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_forked_processes_never_make_equal_noise(privatizer):
    """Four processes forked from one that has drawn already: two inherit the estimator, two read a pickle of it."""
    privatizer.fit().transform([LONG])
    stored = pickle.dumps(privatizer)
    context = multiprocessing.get_context("fork")
    outputs = [privatizer.transform([LONG])[0]]
    for kind in ("inherited", "inherited", "pickled", "pickled"):
        mine, theirs = context.Pipe()

        def work(theirs=theirs, kind=kind):
            own = privatizer if kind == "inherited" else pickle.loads(stored)
            theirs.send(own.transform([LONG])[0])

        child = context.Process(target=work)
        child.start()
        outputs.append(mine.recv())
        child.join(600)
        assert child.exitcode == 0
    assert len(set(outputs)) == 5
    words = [text.split() for text in outputs]
    agree = [
        np.mean([a == b for a, b in zip(one, two, strict=True)]) for one in words for two in words if one is not two
    ]
    assert max(agree) < 0.2  # not even in part: 40 of 200 places agree by chance with probability below 1e-40


# -- where estimators work ------------------------------------------------------------------------------------


def test_in_a_pipeline(vectors):
    model = make_pipeline(
        WordPrivatizer(epsilon=200.0, vectors=vectors, limit=None), TfidfVectorizer(), LogisticRegression(C=10)
    )
    model.fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.9
    assert model[0].statement_.parameters["words_counted"] == 4
    assert pickle.loads(pickle.dumps(model)).predict(TEXTS[:3]).shape == (3,)


def test_in_a_search_over_epsilon(vectors):
    with sklearn.config_context(transform_output="pandas"):  # says how numeric steps answer, not this one
        assert isinstance(WordPrivatizer(vectors=vectors, limit=None).fit_transform(["a"]), np.ndarray)
    model = make_pipeline(WordPrivatizer(vectors=vectors, limit=None), TfidfVectorizer(), LogisticRegression(C=10))
    grid = {"wordprivatizer__epsilon": [0.5, 200.0], "wordprivatizer__mechanism_params": [{"beta": 0.001}]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(model, grid, cv=folds).fit(TEXTS, LABELS)
    # at 0.5 a word says nothing of what it was: 57 of 60 right by chance has a probability of 1e-13
    assert search.best_params_["wordprivatizer__epsilon"] == 200.0
    assert search.best_estimator_[0].mechanism_.epsilon == 200.0
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_its_tags_say_that_no_two_calls_are_alike(privatizer):
    tags = get_tags(privatizer)
    assert tags.non_deterministic
    assert tags.no_validation
    assert (tags.input_tags.string, tags.input_tags.two_d_array) == (True, False)


# -- as an extra ----------------------------------------------------------------------------------------------


def test_importing_the_package_does_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; import dptext; from dptext import *\n"
        "try: dptext.WordPrivatizer\n"
        "except dptext.MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'install it with: pip install "dptext[sklearn]"' in done.stdout
    with pytest.raises(AttributeError, match="no attribute 'WordPrivatiser'"):
        _ = dptext.WordPrivatiser
