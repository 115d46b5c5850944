"""Tests of hiding encoders: success of fresh attackers, guarantees, and repeated trainings.

Training and noise are seeded, so no test fails by chance.
"""

import json
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
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.io.artifacts import tensor_bytes
from dptext.privacy.guarantee import NoGuarantee, PureDP
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.published import DPText

pytest.importorskip("torch")

LENGTHS = CallableEncoder(
    lambda texts: [[len(text), text.count("a"), text.count(" ")] for text in texts], name="lengths"
)
WORDS = ["sea", "a long ship", "a wheat field and a plough", "plough", "she", "his own sea", "a", "her ship sails"] * 8
LABELS = {"task": [0, 0, 1, 1, 0, 0, 1, 0] * 8, "attributes": {"group": ["f", "m"] * 32}}


def hiding(**options):
    options = {
        "dimension": 6,
        "epochs": 6,
        "batch_size": 128,
        "learning_rate": 3e-3,
        "seed": 1,
        "public": True,
    } | options
    return dptext.HidingEncoder(options.pop("encoder", None), options.pop("randomizer", None), **options)


def small(**options):
    options = {"encoder": LENGTHS, "randomizer": dptext.PrivUnit(epsilon=6.0), "dimension": 2, "epochs": 2} | options
    return hiding(**options).fit(WORDS, **LABELS)


def attacked(vectors, labels):
    """The better of two fresh attackers, on rows that neither they nor the encoder were trained on."""
    half = len(vectors) // 2
    result = []
    for attacker in (LogisticRegression(max_iter=200), MLPClassifier((64,), max_iter=20, random_state=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it has learnt enough
            attacker.fit(vectors[:half], labels[:half])
        result.append(balanced_accuracy_score(labels[half:], attacker.predict(vectors[half:])))
    return max(result)


# -- purpose -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fresh_attackers_find_what_was_there_and_not_what_was_hidden(made_vectors):
    """The positive control is the same training without adversaries (alpha 0): there the attack succeeds."""
    rows = 3000
    labels = {
        "task": made_vectors.task[:rows],
        "attributes": {name: entry[:rows] for name, entry in made_vectors.attributes.items()},
    }
    rest = made_vectors.rows[rows:]
    task, one = made_vectors.task[rows:], made_vectors.attributes["one"][rows:]
    result = {}
    for alpha in (0.0, 1.0):
        clean = hiding(alpha=alpha, epochs=8).fit(made_vectors.rows[:rows], **labels).clean(rest)
        result[alpha] = attacked(clean, task), attacked(clean, one)
    assert attacked(rest, one) > 0.85
    assert result[0.0][1] > 0.63
    assert result[1.0][1] < 0.57
    assert result[1.0][0] > result[0.0][0] - 0.03


@pytest.mark.slow
def test_game_and_aim_are_chosen(made_vectors):
    for options in ({"game": "reversal"}, {"aim": "confuse"}, {"adversary_layers": 2, "hidden": 16}):
        trained = hiding(epochs=1, randomizer=dptext.L2Laplace(epsilon=20.0), **options)
        trained.fit(made_vectors.rows, **made_vectors.labels)
        assert len(trained.layers_.layers) == (2 if "hidden" in options else 1)
        assert np.isfinite(trained.clean(made_vectors.rows)).all()


def test_rows_without_labels_count_where_they_have_one(made_vectors):
    task = [None if row % 2 else entry for row, entry in enumerate(made_vectors.task.tolist())]
    one = ["" if row % 3 else entry for row, entry in enumerate(made_vectors.attributes["one"].tolist())]
    one = [entry if isinstance(entry, str) else str(entry) for entry in one]
    trained = hiding(epochs=3).fit(made_vectors.rows, task=task, attributes={"one": one})
    assert trained.epochs_[-1].held_out.task > 0.4


# -- guarantees ----------------------------------------------------------------------------------------------------


def test_the_promise_is_that_of_the_noise_for_a_public_encoder():
    trained = small(public_name="made-up words")
    private = trained.transform(["a text", "", None])
    assert private.shape == (3, 2)
    statement = trained.statement_
    assert statement.guarantee == PureDP(6.0)
    assert statement.neighbours == "any two texts"
    assert statement.parameters["encoder_hides"] == "group"
    assert statement.parameters["base_encoder"] == "lengths"
    assert any(
        "'made-up words' (64 texts" in assumption and "declared public" in assumption
        for assumption in statement.assumptions
    )
    assert statement.replace(release_id=None) == trained.release_.statement
    trained.transform(["a text"])
    assert trained.statement_.release_id != statement.release_id  # each call is a release of its own
    assert trained.transform(["a"], seed=4).tolist() == trained.transform(["a"], seed=4).tolist()
    assert trained.statement_.seeded
    assert trained.transform(["a"]).tolist() != trained.transform(["a"]).tolist()


def test_a_training_on_texts_that_are_not_public_is_said_loudly():
    assert not dptext.HidingEncoder(
        epsilon=8.0
    ).options.public  # False by default, so that nobody declares private texts public by mistake
    assert not dptext.AutoEncoder().options.public
    statement = small(public=False).release_.statement
    assert statement.neighbours == "any two texts, the trained encoder staying the same"
    assert any("ARE NOT PROTECTED" in entry for entry in statement.exposed)
    assert any(
        "without protection: the guarantee covers the release" in assumption for assumption in statement.assumptions
    )
    assert "ARE NOT PROTECTED" in " ".join(statement.explain().split())


def test_who_is_not_protected_is_not_forgotten_when_layers_stand_on_layers(tmp_path):
    """The encoder at the bottom was trained on texts that are not public, those above on public ones."""
    auto = dptext.AutoEncoder(dimension=4, units=5, epochs=1, seed=1, public=False).fit(WORDS)
    public = {"randomizer": dptext.PrivUnit(epsilon=6.0), "epochs": 1}
    middle = hiding(encoder=auto.text_encoder_, dimension=3, **public).fit(WORDS, **LABELS)
    top = hiding(encoder=middle, dimension=2, **public).fit(WORDS, **LABELS)
    inside = dptext.PrivateEncoder(top, dptext.PrivUnit(epsilon=6.0), projection=None).fit(WORDS)
    further = hiding(encoder=auto, dimension=4, **public).fit(WORDS, **LABELS)
    for release in (middle.release_, top.release_, inside.release_, further.release_):
        assert sum("ARE NOT PROTECTED" in entry for entry in release.statement.exposed) == 1
        assert release.statement.neighbours.endswith("the trained encoder staying the same")
    assert top.exposed() == top.text_encoder_.exposed() != ()
    top.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    assert loaded.statement == top.release_.statement
    assert loaded.encode(WORDS[:2], seed=1).tolist() == top.release_.encode(WORDS[:2], seed=1).tolist()


def test_an_auto_encoder_that_is_trained_on_the_way_keeps_what_it_declares():
    auto = dptext.AutoEncoder(dimension=4, units=5, epochs=1, seed=1, public=False, public_name="letters")
    fitted = hiding(encoder=auto, randomizer=dptext.PrivUnit(epsilon=6.0), dimension=4, epochs=1).fit(WORDS, **LABELS)
    changed_config = fitted.statement().parameters
    assert changed_config["encoder_trained_on_public"] is False
    assert (changed_config["encoder_trained_on"], changed_config["encoder_trained_texts"]) == ("letters", len(WORDS))
    assert any("ARE NOT PROTECTED" in entry for entry in fitted.statement().exposed)


def test_one_seed_gives_other_vectors_other_noise(made_vectors):
    """Equal noise could be subtracted; a known-broken version that draws from the seed alone is detected."""
    trained = hiding(epochs=1, randomizer=dptext.L2Laplace(epsilon=9.0)).fit(made_vectors.rows, **made_vectors.labels)
    one, other = made_vectors.rows[:50], made_vectors.rows[50:100]
    assert trained.transform(one, seed=5).tolist() == trained.transform(one, seed=5).tolist()
    noise = [trained.transform(entry, seed=5) - trained.clean(entry) for entry in (one, other)]
    assert np.abs(noise[0] - noise[1]).max() > 0.01
    twin = [
        trained.randomizer_.randomize(trained.clean(entry), seed=5) - trained.clean(entry) for entry in (one, other)
    ]
    assert np.abs(twin[0] - twin[1]).max() < 0.01


def test_without_noise_nothing_is_promised(made_vectors):
    trained = hiding(epochs=1).fit(made_vectors.rows, **made_vectors.labels)
    assert not hasattr(trained, "release_")
    np.testing.assert_allclose(np.linalg.norm(trained.transform(made_vectors.rows), axis=1), 1.0, rtol=1e-5)
    assert isinstance(trained.statement_.guarantee, NoGuarantee)
    assert trained.statement_.epsilon == np.inf
    with pytest.raises(ParameterError, match="a device needs an encoder of texts"):
        trained.save("nowhere")


def test_vectors_without_an_encoder_are_released_under_the_same_promise(made_vectors):
    trained = hiding(epochs=1, randomizer=dptext.Gaussian(epsilon=4.0, delta=1e-5), public=False)
    trained.fit(made_vectors.rows, **made_vectors.labels)
    private = trained.transform(made_vectors.rows[:3])
    assert private.shape == (3, 6)
    assert trained.statement_.epsilon == 4.0
    assert trained.statement_.neighbours.endswith("the trained encoder staying the same")
    with pytest.raises(ParameterError, match="trained on vectors without an encoder"):
        trained.encode(["a text"])


def test_a_learnt_budget_is_stated_as_its_cap(made_vectors):
    trained = hiding(epochs=2, randomizer=dptext.L2Laplace(epsilon=9.0), learn_epsilon=True)
    trained.fit(made_vectors.rows, **made_vectors.labels)
    assert trained.statement().guarantee == PureDP(9.0)
    assert 0 < trained.randomizer_.share < 1
    assert trained.randomizer_.share != pytest.approx(1 / (1 + np.exp(-2.0)), abs=1e-4)  # it moved
    with pytest.raises(ParameterError, match="a budget is learnt where"):  # before the training, not after it
        hiding(randomizer=trained.randomizer_, learn_epsilon=True).fit(made_vectors.rows, **made_vectors.labels)


def test_the_published_form_learns_too_and_promises_nothing(made_vectors, tmp_path):
    claimed = DPText(epsilon=400.0, unsafe_as_published=True)
    trained = hiding(epochs=2, randomizer=claimed, learn_epsilon=True, checkpoint=tmp_path / "run")
    trained.fit(made_vectors.rows[:600], task=made_vectors.task[:600], attributes=firsts(made_vectors, 600))
    statement = trained.statement()
    assert statement.claimed_epsilon == 400.0  # the cap, independent of the learned budget
    assert statement.epsilon == np.inf
    assert statement.parameters["share"] == trained.randomizer_.share == trained.epochs_[-1].budget.share != 1
    assert "never negative" in str(statement.parameters["reason"])
    assert trained.transform(made_vectors.rows[:3]).shape == (3, 6)
    repeated = hiding(epochs=2, randomizer=claimed, learn_epsilon=True, checkpoint=tmp_path / "run")
    repeated.fit(made_vectors.rows[:600], task=made_vectors.task[:600], attributes=firsts(made_vectors, 600))
    assert repeated.epochs_ == trained.epochs_  # the file stores the learned state
    with pytest.raises(RefusedError, match="unsafe_as_published"):
        hiding(randomizer=DPText(epsilon=0.1), learn_epsilon=True)


def firsts(trained_value, rows):
    return {name: entry[:rows] for name, entry in trained_value.attributes.items()}


@pytest.mark.parametrize(("alpha", "sign"), [(0.0, 1), (30.0, -1)])
def test_the_task_asks_for_less_noise_and_the_adversaries_for_more(made_vectors, alpha, sign):
    """On the sphere, where vectors cannot be shortened instead; the slopes say which of the two was stronger."""
    noise = dptext.L2Laplace(epsilon=20.0, domain="unit sphere")
    trained = hiding(alpha=alpha, batch_size=64, epochs=4, randomizer=noise, learn_epsilon=True)
    trained.fit(made_vectors.rows[:1000], task=made_vectors.task[:1000], attributes=firsts(made_vectors, 1000))
    budgets = [epoch.budget for epoch in trained.epochs_]
    assert sign * (budgets[-1].share - budgets[0].share) > 0
    assert budgets[-1].task < 0
    assert budgets[-1].attributes >= 0
    assert (budgets[-1].task + budgets[-1].attributes) * sign < 0


# -- an encoder like any other ------------------------------------------------------------------------------------


def test_it_goes_into_other_encoders_and_comes_back_from_a_folder(glove, tmp_path):
    texts = [" ".join(glove.words[row : row + 5]) for row in range(0, 400, 5)]
    labels = {"task": [0, 1] * 40, "attributes": {"group": [0, 1, 1, 0] * 20}}
    trained = small(encoder=glove, dimension=4).__class__(glove, dptext.PrivUnit(epsilon=6.0), dimension=4, epochs=1)
    trained.fit(texts, **labels)
    trained.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    assert loaded.statement == trained.release_.statement
    odd = ["the doctor", "", None, "qqqzz", "\ud800"]
    assert loaded.encode(odd, seed=3).tolist() == trained.release_.encode(odd, seed=3).tolist()
    inside = dptext.PrivateEncoder(trained, dptext.PrivUnit(epsilon=6.0), projection=None, centre=False).fit(texts)
    np.testing.assert_allclose(inside.release_.clean(odd[:4]), trained.clean(odd[:4]), rtol=1e-6)
    before = inside.release_.clean(odd)
    trained.fit(texts, **labels)  # another training, of which the frozen encoder inside knows nothing
    assert inside.release_.clean(odd).tolist() == before.tolist()
    inside.save(tmp_path / "inside")
    assert DeviceEncoder.load(tmp_path / "inside").statement == inside.release_.statement
    repeated = pickle.loads(pickle.dumps(trained.text_encoder_))
    assert repeated.parameters() == trained.text_encoder_.parameters()
    with pytest.raises(AttributeError, match="frozen"):
        repeated.layers = None


def test_what_was_learnt_is_frozen_and_stays_when_it_is_trained_again():
    trained = small()
    before = trained.trained_
    sha256 = before.layers.sha256
    with pytest.raises(AttributeError):
        before.layers = None
    trained.randomizer = None
    trained.fit(WORDS[::-1], **LABELS)
    assert before.layers.sha256 == sha256
    assert before.statement().epsilon == 6.0
    assert not hasattr(trained, "release_")  # nothing of the training before is left
    assert trained.transform(["a"]).shape == (1, 2)
    assert isinstance(trained.statement_.guarantee, NoGuarantee)


def test_a_device_needs_numpy_only(glove, tmp_path):
    texts = [" ".join(glove.words[row : row + 5]) for row in range(0, 400, 5)]
    labels = {"task": [0, 1] * 40, "attributes": {"group": [0, 1, 1, 0] * 20}}
    dptext.HidingEncoder(glove, epsilon=8.0, dimension=4, epochs=1, seed=1).fit(texts, **labels).save(
        tmp_path / "device"
    )
    code = (
        "import sys\nfor name in ('torch', 'sklearn', 'scipy'): sys.modules[name] = None\n"
        f"import dptext\nprint(dptext.DeviceEncoder.load({str(tmp_path / 'device')!r}).encode(['a', '']).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 4)\n", done.stderr


def test_a_caller_s_function_underneath_is_given_again(tmp_path):
    trained = small()
    trained.save(tmp_path / "device")
    with pytest.raises(DataError, match="caller's, which no folder holds"):
        DeviceEncoder.load(tmp_path / "device")
    for length in (LENGTHS, trained.text_encoder_):
        loaded = DeviceEncoder.load(tmp_path / "device", length)
        assert loaded.encode(["a"], seed=1).tolist() == trained.release_.encode(["a"], seed=1).tolist()
    other = small(seed=2).text_encoder_
    with pytest.raises(ParameterError, match="not the one that was saved: encoder_layers_sha256 differ"):
        DeviceEncoder.load(tmp_path / "device", other)
    config = json.loads((tmp_path / "device" / "config.json").read_text())
    for changed in ({"layers": 7}, {"layers": "x"}, {"layers": float("inf")}, {"base": None}, {"base": "lengths"}):
        changed_config = config | {"encoder": config["encoder"] | changed}
        (tmp_path / "device" / "config.json").write_text(json.dumps(changed_config))
        with pytest.raises(DataError, match=r"config\.json"):
            DeviceEncoder.load(tmp_path / "device", LENGTHS)


def test_layers_are_what_torch_computed_and_take_any_number():
    trained = small(hidden=5, randomizer=None)
    raw = LENGTHS.encode(WORDS)
    np.testing.assert_allclose(trained.encode(WORDS), trained.layers_.apply(raw))
    wild = trained.layers_.apply([[np.nan, np.inf, -np.inf], [1e300, 0.0, 0.0]])
    assert np.isfinite(wild).all()
    with np.errstate(all="raise"):  # callers may have changed numpy's error handling
        small_ones = HidingLayers((([[1e-30], [1e-30]], [0.0]),)).apply([[1e-20, 0.0], [1e308, 1e308]])
        assert small_ones[0, 0] == 0.0
        assert trained.encode(["", "a"]).shape == (2, 2)
    for layers in ((), (([[1.0]], [1.0, 2.0]),), (([[np.nan]], [1.0]),), (([[1.0]], [1.0]), ([[1.0], [1.0]], [1.0]))):
        with pytest.raises(ParameterError, match="layers"):
            HidingLayers(layers)
    with pytest.raises(ParameterError, match="trained on another one"):
        LayeredEncoder(LENGTHS, HidingLayers((([[1.0]], [1.0]),)))


def test_vectors_that_the_encoder_gave_before_are_as_good_as_texts():
    labels = LABELS
    of_texts = small()
    of_vectors = hiding(encoder=LENGTHS, randomizer=dptext.PrivUnit(epsilon=6.0), dimension=2, epochs=2)
    of_vectors.fit(LENGTHS.encode(WORDS), **labels)
    assert of_texts.text_encoder_.parameters() == of_vectors.text_encoder_.parameters()
    with pytest.raises(ParameterError, match="the vectors have 5 numbers, the encoder gives 3"):
        of_vectors.fit(np.zeros((64, 5)), **labels)


# -- repeated and resumed ------------------------------------------------------------------------------------------


class InterruptedHereError(Exception):
    """Raised to simulate a crash."""


def test_a_seed_repeats_the_training_and_none_does_not():
    assert small().layers_.sha256 == small().layers_.sha256
    assert small(seed=None).layers_.sha256 != small(seed=None).layers_.sha256


@pytest.mark.parametrize("seed", [3, None])
def test_going_on_equals_no_interruption(tmp_path, seed):
    file = tmp_path / "run"

    def stop(epoch):
        if epoch.number == 2:
            raise InterruptedHereError

    with pytest.raises(InterruptedHereError):
        small(epochs=4, seed=seed, checkpoint=file, progress=stop)
    assert file.stat().st_mode & 0o077 == 0
    copy = tmp_path / "copy"
    copy.write_bytes(file.read_bytes())
    one, two = (small(epochs=4, seed=seed, checkpoint=entry) for entry in (file, copy))
    assert one.layers_.sha256 == two.layers_.sha256
    assert len(one.epochs_) == 4
    if seed is not None:
        whole = small(epochs=4, seed=seed)
        assert whole.layers_.sha256 == one.layers_.sha256
        assert whole.epochs_ == one.epochs_
    finished = small(epochs=4, seed=seed, checkpoint=file)
    assert finished.layers_.sha256 == one.layers_.sha256


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    file = tmp_path / "run"
    small(checkpoint=file)
    with pytest.raises(RefusedError, match="belongs to another training"):
        small(checkpoint=file, alpha=2.0)
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(DataError, match="run is broken"):
        small(checkpoint=file)
    before = tensor_bytes({"body.weight": np.ones(2)}, {"training": '{"format": "dptext hiding training 1"}'})
    for other in (b"", before, b"\x80\x02c__builtin__\nexec\n."):  # of version 0.1; a pickle that runs code
        file.write_bytes(other)
        with pytest.raises(DataError, match="or no checkpoint that this version of dptext wrote"):
            small(checkpoint=file)


def test_the_caller_s_generators_stay_as_they_were(made_vectors):
    import torch

    torch.manual_seed(5)
    before = torch.get_rng_state().tolist(), torch.get_num_threads()
    small()
    assert (torch.get_rng_state().tolist(), torch.get_num_threads()) == before


@pytest.mark.slow
def test_early_stopping_keeps_the_best_epoch_and_whole_groups_are_held_out(made_vectors):
    from dptext.hiding.inputs import check_targets, parted

    trained = hiding(epochs=9, patience=1, learning_rate=0.05).fit(made_vectors.rows, **made_vectors.labels)
    scores = [epoch.held_out.score for epoch in trained.epochs_]
    assert trained.best_ == 1 + int(np.argmax(scores))
    assert len(scores) < 9
    rows = len(made_vectors.rows)
    task, others = check_targets(rows, made_vectors.task, made_vectors.attributes, None)
    people = [f"person {row % 30}" for row in range(rows)]
    kept, held_out_value = parted(rows, people, task, others, 0.2, 1)
    assert len({people[row] for row in held_out_value}) == 6
    assert not {people[row] for row in held_out_value} & {people[row] for row in kept}
    last = hiding(epochs=2, validation_fraction=0).fit(made_vectors.rows, **made_vectors.labels)
    assert last.best_ == 2
    assert last.epochs_[-1].held_out is None
