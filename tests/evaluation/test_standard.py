"""Standard evaluations against numbers of their authors' code (versions in each test) or numbers computed by hand."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError
from dptext.evaluation.standard import (
    frechet_distance,
    mauve,
    next_token_accuracy,
    precision_recall,
    presidio_samples,
    tab_scores,
    text_quality,
)
from dptext.release.redaction import Redaction
from dptext.text.patterns import Span

pytest.importorskip("sklearn")
DOCUMENTS = json.loads((Path(__file__).parents[2] / "papers" / "referee" / "invented.json").read_text("utf-8"))


def sample(count, *, seed, shift=0.0, scale=1.0, size=4):
    return shift + scale * np.random.default_rng(seed).normal(size=(count, size))


# -- distances ---------------------------------------------------------------------------------------------------------


def test_precision_and_recall_of_points_on_a_line():
    """Real texts at 0, 1, 3 have radii 1, 1, 2 for one neighbour; the corpus at 4, 5.5, 9 has radii 1.5, 1.5, 3.5."""
    real, corpus = [[0.0], [1.0], [3.0]], [[4.0], [5.5], [9.0]]
    assert precision_recall(corpus, real, neighbours=1) == (1 / 3, 1 / 3)
    assert precision_recall(real, corpus, neighbours=1) == (1 / 3, 1 / 3)
    assert precision_recall(real, real, neighbours=1) == (1.0, 1.0)


def test_precision_and_recall_are_those_of_the_package_prdc():
    """Numbers of prdc 0.2 for the same samples."""
    real = sample(200, seed=1, size=8)
    for shift, expected in ((0.0, (0.88, 0.875)), (0.5, (0.78, 0.805)), (1.5, (0.13, 0.14))):
        assert precision_recall(sample(200, seed=2, shift=shift, size=8), real) == pytest.approx(expected)


def test_frechet_distance_agrees_with_the_matrix_square_root_of_scipy():
    linalg = pytest.importorskip("scipy.linalg")
    one, other = sample(50, seed=1), sample(40, seed=2, shift=0.5, scale=2.0) @ np.array([[1, 2, 0, 0]] * 4 + np.eye(4))
    first, second = np.cov(one.T), np.cov(other.T)
    root = np.real(linalg.sqrtm(first @ second))
    expected = np.square(one.mean(0) - other.mean(0)).sum() + np.trace(first + second - 2 * root)
    assert frechet_distance(one, other) == pytest.approx(expected)
    assert frechet_distance(other, one) == pytest.approx(expected)
    assert frechet_distance(one, one) == pytest.approx(0.0, abs=1e-9)
    assert frechet_distance(one, one + 3.0) == pytest.approx(4 * 9.0)
    few = sample(5, seed=3, size=30)  # more dimensions than vectors: singular covariances
    assert frechet_distance(few, few) == pytest.approx(0.0, abs=1e-5)


CORNERS = {
    (10, 10): {(16, 4): 0.883095222282, (20, 0): 0.278113725367, (10, 10): 1.0},
    (10, 10, 10): {(5, 10, 15): 0.971373332713},
}


@pytest.mark.parametrize(
    ("real", "released", "expected"),
    [(real, released, value) for real, entries in CORNERS.items() for released, value in entries.items()],
)
def test_mauve_of_certain_clusters_is_that_of_its_package(real, released, expected):
    """Numbers of mauve-text 0.4.0, the same for six seeds: points in corners are clusters of their own."""
    one, other = (np.repeat(np.eye(len(counts)), counts, axis=0) for counts in (real, released))
    assert mauve(other, one) == pytest.approx(expected, abs=1e-9)


def test_mauve_of_random_clusters_is_that_of_its_package_up_to_their_seeds():
    """Means and standard deviations over five seeds of mauve-text 0.4.0; three deviations apart, one in 370 differs."""
    real = sample(500, seed=1, size=8)
    for shift, scale, mean, deviation in ((0.3, 1.0, 0.8106, 0.026), (0.5, 1.5, 0.7536, 0.016)):
        released = sample(500, seed=2, shift=shift, scale=scale, size=8)
        mean_of_seeds = np.mean([mauve(released, real, seed=seed) for seed in range(5)])
        assert mean_of_seeds == pytest.approx(mean, abs=3 * deviation)


@pytest.mark.filterwarnings("ignore")
def test_mauve_is_near_that_of_its_installed_package():
    package = pytest.importorskip("mauve")
    real, released = sample(500, seed=1, size=8), sample(500, seed=2, shift=0.5, scale=1.5, size=8)
    reference = package.compute_mauve(p_features=real, q_features=released, seed=1, verbose=False).mauve
    assert mauve(released, real) == pytest.approx(reference, abs=0.1)


@pytest.mark.parametrize("measure", [precision_recall, frechet_distance, mauve])
@pytest.mark.parametrize("wrong", [np.zeros(9), np.full((9, 2), np.nan), np.zeros((1, 2))])
def test_vectors_are_checked(measure, wrong):
    with pytest.raises(ParameterError, match="expected two arrays of at least"):
        measure(wrong, np.zeros((9, 2)))


def test_the_n_gram_model_backs_off_to_the_longest_known_context():
    train = ["the red cup .", "the red cup .", "the red car .", "a red rose ."]
    assert next_token_accuracy(train, ["the red cup ."]) == 1.0
    assert next_token_accuracy(train, ["a red rose ."]) == 4 / 5  # "the" starts more texts than "a"
    assert next_token_accuracy(train, ["my red cup ."]) == 4 / 5  # after the unknown "my", "red" is the most frequent
    assert next_token_accuracy(train, ["THE RED CUP."]) == 1.0
    assert next_token_accuracy(train, ["a red rose ."], order=2) == 3 / 5  # after "red" alone, "cup"
    assert next_token_accuracy(train, ["red red"], order=1) == 2 / 3  # "red" always; the end of the text is not
    assert next_token_accuracy([], ["a"]) == next_token_accuracy(["a"], []) == 0.0


def test_other_real_texts_are_as_good_as_the_reference_and_foreign_texts_are_not():
    """Intervals have 95% and there are five measures, so all five contain 0 gain in most of the seeds; this is one."""
    words = ["red", "new", "old", "hot", "big"], ["cup", "car", "tea", "plot", "film", "dog", "cat"], ["is", "was"]

    def texts(seed, count=120):
        draws = np.random.default_rng(seed).integers(0, 60, size=(count, 3))
        return [f"the {words[0][a % 5]} {words[1][b % 7]} {words[2][c % 2]} here" for a, b, c in draws.tolist()]

    same = text_quality(texts(1), texts(2), seed=3)
    assert [entry.measure for entry in same] == [
        "precision",
        "recall",
        "Fréchet distance",
        "MAUVE",
        "next-token accuracy",
    ]
    assert all(entry.gain.low <= 0 <= entry.gain.high for entry in same)
    other = text_quality(texts(1), ["we pay the tax to a bank", "they pay no tax"] * 60, seed=3)
    assert all(entry.gain.high < 0 for entry in other)
    assert other[2].score.value > other[2].baseline  # a larger Fréchet distance is no gain
    assert same == text_quality(texts(1), texts(2), seed=3)
    with pytest.raises(ParameterError, match="at least 20 texts each"):
        text_quality(texts(1), ["a"] * 19)


# -- the Text Anonymization Benchmark ----------------------------------------------------------------------------------


def spans(text, *parts):
    return [match.span() for part in parts for match in re.finditer(re.escape(part), text)]


PARTS = {
    "names": [
        ["Ada", "Lind", "Olaf Berg", "123/45"],
        ["Holm"],
        ["Tuva", "Moe", "7001/02"],
        ["Jan", "Falk"],
    ],
    "more": [
        ["123/45", "Ada Lind", "Lind", "3 May 1961", "Bar", "Oslo", "Norwegian", "5,000"],
        ["B. Holm", "Bergen", "Holm was born in 1950"],
        ["Trondheim", "Ms Tuva Moe", "City", "12 January"],
        ["Falk", "Swedish baker", "Reform Party", "member"],
    ],
}
MASKS = {
    name: {document["doc_id"]: spans(document["text"], *part) for document, part in zip(DOCUMENTS, parts, strict=True)}
    for name, parts in PARTS.items()
} | {
    "capitals": {
        document["doc_id"]: [match.span() for match in re.finditer(r"[A-Z0-9][\w,/]*", document["text"])]
        for document in DOCUMENTS
    }
}
# numbers of TAB's evaluation.py (commit of 2022, spaCy 3.8.18, en_core_web_md 3.8.0) for these documents and masks
EXPECTED = {
    "names": {
        "recall_direct_entities": 0.875,
        "recall_quasi_entities": 0.071428571429,
        "recall_all_entities": 0.25,
        "mention_recall": 0.355555555556,
        "token_recall": 0.462264150943,
        "token_recall_PERSON": 0.878787878788,
        "token_recall_ORG": 0.37037037037,
        "token_recall_MISC": 0.5,
        "token_precision": 0.925925925926,
        "mention_precision": 0.954545454545,
    },
    "more": {
        "recall_direct_entities": 0.375,
        "recall_quasi_entities": 0.357142857143,
        "recall_all_entities": 0.361111111111,
        "mention_recall": 0.466666666667,
        "token_recall": 0.650943396226,
        "token_recall_PERSON": 0.69696969697,
        "token_recall_DATETIME": 0.473684210526,
        "token_precision": 0.851851851852,
        "mention_precision": 0.823529411765,
    },
    "capitals": {
        "recall_direct_entities": 1.0,
        "recall_quasi_entities": 0.75,
        "recall_all_entities": 0.805555555556,
        "mention_recall": 0.822222222222,
        "token_recall": 0.915094339623,
        "token_recall_QUANTITY": 0.6,
        "token_precision": 0.759259259259,
        "mention_precision": 0.699029126214,
    },
}


def nlp(text):
    """A pipeline with spaCy's tags for the function words of the invented documents, and its error for a first name."""
    tags = {"Per": "ADP", "of": "ADP", "to": "ADP", "the": "DET", "The": "DET", "a": "DET", "and": "CCONJ"}
    words = ((match.start(), match[0]) for match in re.finditer(r"\w+|[^\w\s]", text))
    return [Token(start, word, tags.get(word, "NOUN")) for start, word in words]


class Token(SimpleNamespace):
    def __init__(self, idx, word, pos):
        super().__init__(idx=idx, word=word, pos_=pos)

    def __len__(self):
        return len(self.word)


@pytest.mark.parametrize("pipeline", [None, nlp])
@pytest.mark.parametrize("name", EXPECTED)
def test_scores_are_those_of_the_code_of_tab(name, pipeline):
    scores = tab_scores(DOCUMENTS, MASKS[name], nlp=pipeline)
    assert {key: scores[key].value for key in EXPECTED[name]} == pytest.approx(EXPECTED[name], abs=1e-9)


def test_scores_of_nothing_and_of_everything_masked():
    nothing = tab_scores(DOCUMENTS, {document["doc_id"]: [] for document in DOCUMENTS})
    assert {score.value for name, score in nothing.items() if "entities" in name or "mention" in name} == {0.0}
    assert not any("precision" in name for name in nothing)
    everything = tab_scores(DOCUMENTS, {entry["doc_id"]: [(0, len(entry["text"]))] for entry in DOCUMENTS})
    assert {score.value for name, score in everything.items() if "recall" in name} == {1.0}
    assert everything["token_precision"].value < 0.5 and everything["mention_precision"].value == 0.0


def test_intervals_are_over_documents_and_other_documents_are_left_out():
    all_scores, one = tab_scores(DOCUMENTS, MASKS["more"]), tab_scores(DOCUMENTS, {"1": MASKS["more"]["1"]})
    assert all_scores["recall_all_entities"].of == "people" and all_scores["recall_all_entities"].count == 4
    assert one["recall_all_entities"].of == "rows"
    assert one["recall_all_entities"].value != all_scores["recall_all_entities"].value


def test_wrong_documents_and_masks_are_refused_without_their_text():
    with pytest.raises(DataError, match="masks of 1 documents"):
        tab_scores(DOCUMENTS, {"1": [], "another": []})
    for wrong in ({"doc_id": "1"}, {"doc_id": "1", "text": "secret", "annotations": {"a": {"mentions": []}}}, {}):
        with pytest.raises(DataError, match="layout of TAB") as error:
            tab_scores([wrong], {"1": []})
        assert "secret" not in str(error.value)
    with pytest.raises(DataError, match="lists of"):
        tab_scores(DOCUMENTS, {"1": [3]})


# -- presidio-evaluator ------------------------------------------------------------------------------------------------


def test_redacted_spans_have_the_layout_of_presidio_evaluator():
    """presidio-evaluator 0.3.2 reads these keys (`InputSample.from_json`), and its `SpanEvaluator` scored the spans."""
    texts = ["Mail ada@lind.org or call 212-555-0187 on 3 May 1961.", "Nothing here."]
    samples = json.loads(json.dumps(presidio_samples(texts, map(Redaction(words=["nothing"]).spans, texts))))
    assert [sample["full_text"] for sample in samples] == texts
    kinds = [[part["entity_type"] for part in sample["spans"]] for sample in samples]
    assert kinds == [["EMAIL_ADDRESS", "PHONE_NUMBER", "DATE_TIME"], ["LISTED"]]
    for sample in samples:
        for part in sample["spans"]:
            place = slice(part["start_position"], part["end_position"])
            assert part.keys() == {"entity_type", "entity_value", "start_position", "end_position"}
            assert part["entity_value"] == sample["full_text"][place]
    with pytest.raises(ValueError, match="shorter"):
        presidio_samples(texts, [[Span(0, 1, "name")]])
