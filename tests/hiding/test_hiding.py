"""HidingEncoder: success of new attackers, guarantees and folders (all seeded)."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.neural_network import MLPClassifier

import dptext
from dptext.errors import ParameterError
from dptext.privacy.guarantee import NoGuarantee, PureDP
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, Provenance
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.published import DPText

torch = pytest.importorskip("torch")

from hiding.conftest import LABELS, LENGTHS, WORDS, hiding, small  # noqa: E402


def attacked(vectors, labels):
    """The better of two new attackers, on rows that neither they nor the encoder were trained on."""
    half = len(vectors) // 2
    scores = []
    for attacker in (LogisticRegression(max_iter=200), MLPClassifier((64,), max_iter=20, random_state=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            attacker.fit(vectors[:half], labels[:half])
        scores.append(balanced_accuracy_score(labels[half:], attacker.predict(vectors[half:])))
    return max(scores)


# -- utility and hiding --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_new_attackers_find_the_attribute_without_adversaries_and_not_with_them(made_vectors):
    """The positive control is the same training without adversaries (alpha 0): there the attack succeeds."""
    rows = 3000
    first, rest = made_vectors.first(rows), made_vectors.rows[rows:]
    task, one = made_vectors.task[rows:], made_vectors.attributes["one"][rows:]
    scores = {}
    for alpha in (0.0, 1.0):
        clean = hiding(alpha=alpha, epochs=8).fit(first.rows, **first.labels).clean(rest)
        scores[alpha] = attacked(clean, task), attacked(clean, one)
    assert attacked(rest, one) > 0.85
    assert scores[0.0][1] > 0.63
    assert scores[1.0][1] < 0.57
    assert scores[1.0][0] > scores[0.0][0] - 0.03


def test_rows_without_labels_count_where_they_have_one(made_vectors):
    task = [None if row % 2 else label for row, label in enumerate(made_vectors.task.tolist())]
    one = ["" if row % 3 else str(label) for row, label in enumerate(made_vectors.attributes["one"].tolist())]
    trained = hiding(epochs=2).fit(made_vectors.rows, task=task, attributes={"one": one})
    assert trained.epochs_[-1].held_out.task > 0.4


# -- guarantees ----------------------------------------------------------------------------------------------------


def test_guarantee_is_that_of_the_noise_for_a_public_encoder():
    trained = small(public_name="made-up words")
    assert trained.transform(["a text", "", None]).shape == (3, 2)
    statement = trained.statement_
    assert (statement.guarantee, statement.neighbours) == (PureDP(6.0), "any two texts")
    assert statement.parameters["encoder_hides"] == "group"
    assert statement.parameters["base_encoder"] == "lengths"
    declared = [entry for entry in statement.assumptions if "'made-up words' (64 texts" in entry]
    assert declared and "declared public" in declared[0]
    assert {*LENGTHS.assumptions(), *dptext.PrivUnit(epsilon=6.0).statement(2).assumptions} <= {*statement.assumptions}
    assert statement.replace(release_id=None) == trained.release_.statement
    assert trained.transform(["a"]).tolist() != trained.transform(["a"]).tolist()
    assert trained.statement_.release_id != statement.release_id  # each call is a release of its own
    assert trained.transform(["a"], seed=4).tolist() == trained.transform(["a"], seed=4).tolist()
    assert trained.statement_.seeded


def test_training_on_private_texts_is_stated():
    assert not dptext.HidingEncoder(epsilon=8.0).options.public  # private texts are not declared public by mistake
    statement = small(public=False).release_.statement
    assert statement.neighbours == "any two texts, the trained encoder staying the same"
    assert any("ARE NOT PROTECTED" in entry for entry in statement.exposed)
    assert any("without protection: the guarantee covers the release" in entry for entry in statement.assumptions)
    assert "ARE NOT PROTECTED" in " ".join(statement.explain().split())


def test_private_training_texts_stay_in_the_statements_of_later_encoders(tmp_path):
    """The lowest encoder was trained on texts that are not public, those above on public ones."""
    lowest = LayeredEncoder(LENGTHS, HidingLayers(((np.ones((3, 4)), np.zeros(4)),)), Provenance(public=False))
    public = {"randomizer": dptext.PrivUnit(epsilon=6.0), "epochs": 1}
    middle = hiding(encoder=lowest, dimension=3, **public).fit(WORDS, **LABELS)
    top = hiding(encoder=middle, dimension=2, **public).fit(WORDS, **LABELS)
    inside = dptext.PrivateEncoder(top, epsilon=6.0, projection=None).fit(WORDS)
    for release in (middle.release_, top.release_, inside.release_):
        statement = release.statement
        assert any("ARE NOT PROTECTED" in entry for entry in statement.exposed)
        assert statement.neighbours.endswith("the trained encoder staying the same")
    without_noise = hiding(encoder=middle, dimension=2, epochs=1).fit(WORDS, **LABELS).statement()
    assert any("ARE NOT PROTECTED" in entry for entry in without_noise.exposed)
    top.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device", LENGTHS)
    assert loaded.statement == top.release_.statement
    assert loaded.encode(WORDS[:2], seed=1).tolist() == top.release_.encode(WORDS[:2], seed=1).tolist()
    for method in (top.clean, top.transform):
        with pytest.raises(ParameterError, match="pass the encoder itself"):
            CallableEncoder(method)


def test_vectors_get_the_guarantee_of_the_noise_and_other_noise_under_one_seed(made_vectors):
    few = made_vectors.first(1000)
    trained = hiding(epochs=1, randomizer=dptext.L2Laplace(epsilon=9.0), public=False)
    trained.fit(few.rows, **few.labels)
    one, other = few.rows[:50], few.rows[50:100]
    assert trained.transform(one, seed=5).tolist() == trained.transform(one, seed=5).tolist()
    assert trained.statement_.epsilon == 9.0
    assert trained.statement_.neighbours.endswith("the trained encoder staying the same")
    noise = [trained.transform(rows, seed=5) - trained.clean(rows) for rows in (one, other)]
    assert np.abs(noise[0] - noise[1]).max() > 0.01  # equal noise could be subtracted
    broken = [trained.randomizer_.randomize(trained.clean(rows), seed=5) - trained.clean(rows) for rows in (one, other)]
    assert np.abs(broken[0] - broken[1]).max() < 0.01


def test_no_noise_means_no_guarantee(made_vectors):
    few = made_vectors.first(1000)
    trained = hiding(epochs=1).fit(few.rows, **few.labels)
    np.testing.assert_allclose(np.linalg.norm(trained.transform(few.rows), axis=1), 1.0, rtol=1e-5)
    assert isinstance(trained.statement_.guarantee, NoGuarantee)
    published = hiding(epochs=2, randomizer=DPText(epsilon=5.0, unsafe_as_published=True))
    private = published.fit(few.rows, **few.labels).transform(few.rows)
    assert (published.statement_.epsilon, published.statement_.claimed_epsilon) == (np.inf, 5.0)
    assert (private >= published.clean(few.rows) - 1e-6).all()


# -- the trained encoder -------------------------------------------------------------------------------------------


def test_trained_encoder_works_in_folders_and_other_encoders(glove, tmp_path):
    texts = [" ".join(glove.words[row : row + 5]) for row in range(0, 400, 5)]
    labels = {"task": [0, 1] * 40, "attributes": {"group": [0, 1, 1, 0] * 20}}
    trained = dptext.HidingEncoder(glove, dptext.PrivUnit(epsilon=6.0), dimension=4, epochs=1).fit(texts, **labels)
    trained.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    assert loaded.statement == trained.release_.statement
    odd = ["the doctor", "", None, "qqqzz", "\ud800"]
    assert loaded.encode(odd, seed=3).tolist() == trained.release_.encode(odd, seed=3).tolist()
    code = (
        "import sys\nfor name in ('torch', 'sklearn', 'scipy'): sys.modules[name] = None\n"
        f"import dptext\nprint(dptext.DeviceEncoder.load({str(tmp_path / 'device')!r}).encode(['a', '']).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 4)\n", done.stderr
    inside = dptext.PrivateEncoder(trained, epsilon=6.0, projection=None, centre=False).fit(texts)
    before, encoder = inside.release_.clean(odd), trained.text_encoder_
    np.testing.assert_allclose(before[:4], trained.clean(odd[:4]), rtol=1e-6)
    trained.randomizer = None
    trained.fit(texts, **labels)  # another training, which does not change the frozen encoder
    assert inside.release_.clean(odd).tolist() == before.tolist()
    assert not hasattr(trained, "release_") and not hasattr(trained, "statement_")
    assert pickle.loads(pickle.dumps(encoder)).parameters() == encoder.parameters()
    with pytest.raises(AttributeError, match=r"frozen|immutable"):
        encoder.layers = None


def test_layers_take_any_number_and_vectors_are_as_good_as_texts():
    trained = small(hidden=5, randomizer=None)
    raw = LENGTHS.encode(WORDS)
    np.testing.assert_allclose(trained.text_encoder_.encode(WORDS), trained.layers_.apply(raw))
    np.testing.assert_allclose(trained.clean(WORDS), trained.clean(raw))
    with np.errstate(all="raise"):
        assert np.isfinite(trained.layers_.apply([[np.nan, np.inf, -np.inf], [1e300, 0.0, 0.0]])).all()
        tiny = HidingLayers((([[1e-30], [1e-30]], [0.0]),)).apply([[1e-20, 0.0], [1e308, 1e308]])
        assert tiny[0, 0] == 0.0
    of_vectors = hiding(encoder=LENGTHS, randomizer=dptext.PrivUnit(epsilon=6.0), dimension=2, epochs=2)
    of_vectors.fit(raw, **LABELS)
    assert small().text_encoder_.parameters() == of_vectors.text_encoder_.parameters()


# -- seeds and epochs ----------------------------------------------------------------------------------------------


def test_seed_repeats_the_training_and_restores_the_generator():
    torch.manual_seed(5)
    before = torch.get_rng_state().tolist(), torch.get_num_threads()
    assert small().layers_.sha256 == small().layers_.sha256
    assert (torch.get_rng_state().tolist(), torch.get_num_threads()) == before
    assert small(seed=None).layers_.sha256 != small(seed=None).layers_.sha256


@pytest.mark.slow
def test_early_stopping_keeps_the_best_epoch(made_vectors):
    trained = hiding(epochs=9, patience=1, learning_rate=0.05).fit(made_vectors.rows, **made_vectors.labels)
    scores = [epoch.held_out.score for epoch in trained.epochs_]
    assert trained.best_ == 1 + int(np.argmax(scores))
    assert len(scores) < 9
    last = hiding(epochs=2, validation_fraction=0).fit(made_vectors.rows, **made_vectors.labels)
    assert (last.best_, last.epochs_[-1].held_out) == (2, None)
