"""`SkipGram`: statements, composition, training, checkpoints and refusals."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import dptext
from dptext.embeddings.participation import Participation
from dptext.embeddings.skipgram import SkipGram
from dptext.embeddings.training import read_checkpoint
from dptext.errors import DataError, MissingExtraError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import read_tensors
from dptext.privacy.budgets import DeltaWarning
from dptext.privacy.gaussian import SampledGaussian
from dptext.privacy.guarantee import ApproxDP, NoGuarantee, Relation, Trust, Unit
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement
from dptext.text.tokens import Vocabulary
from embeddings.conftest import TOPICS, WORDS, learned, people

LITTLE = {"epsilon": 8.0, "steps": 10, "sampling_rate": 0.5, "public_users": 50, "pairs": 20, "seed": 1}


@pytest.fixture
def vectors(topic_vectors):
    return topic_vectors


def model(vectors, **options):
    return SkipGram(vectors, **LITTLE | options)


def fitted(documents, vectors, **options):
    return model(vectors, **options).fit(documents)


# -- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "noise"), [(1.0, 6.79), (3.0, 2.60), (8.0, 1.28)])
def test_noise_matches_published_values(vectors, epsilon, noise):
    """z at q .05, T 1000, delta 1e-6; the stated epsilon is at most the requested one."""
    plan = SkipGram(vectors, epsilon=epsilon, steps=1000, sampling_rate=0.05).plan()
    assert plan.participation.noise_multiplier <= noise
    assert plan.participation.noise_multiplier == pytest.approx(noise, rel=0.006)
    assert epsilon * 0.995 < plan.participation.guarantee().epsilon <= epsilon


def test_the_statement_matches_the_accounting_of_the_noise(vectors):
    fit = fitted(people(5), vectors, seed=None)
    statement = fit.vectors_.statement
    assert statement == fit.statement_
    assert isinstance(statement.guarantee, ApproxDP)
    assert 7.9 < statement.guarantee.epsilon <= 8.0
    assert statement.guarantee.delta == 1e-6
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.ADD_REMOVE, Trust.CENTRAL)
    parameters = statement.parameters
    gaussian = SampledGaussian(noise_multiplier=parameters["noise_multiplier"], sampling_rate=0.5, steps=10)
    assert gaussian.epsilon(delta=1e-6) == statement.guarantee.epsilon
    assert parameters["epsilon_under_substitution"] > parameters["epsilon"]
    assert any("IEEE 754" in assumption for assumption in statement.assumptions)
    assert any("which users took part" in assumption for assumption in statement.assumptions)
    assert not statement.seeded
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    few, many = (fitted(people(count), vectors) for count in (3, 300))  # nothing shows the number of users
    assert few.statement_.replace(release_id=None) == many.statement_.replace(release_id=None)
    assert few.statement_.seeded
    fields = {"noise_multiplier": np.float32(2), "steps": np.int64(3), "rates": {"a": np.float32(0.5)}, "default": "a"}
    fit = fitted(people(2), vectors, epsilon=Participation(delta=1e-6, **fields))
    assert PrivacyStatement.from_json(fit.statement_.to_json()) == fit.statement_


def test_documents_pairs_and_trainings_without_noise_have_weaker_statements(vectors, tmp_path):
    documents = [dptext.Document("a cup of tea and milk")] * 5
    assert fitted(documents, vectors, unit="document").statement_.unit is Unit.DOCUMENT
    pair = fitted(documents, vectors, unit="pair").statement_
    assert pair.unit is Unit.EXAMPLE
    assert "nothing that protects a person" in pair.neighbours
    with pytest.raises(DataError, match="user"):
        fitted(documents, vectors)
    clipped = fitted(people(5), vectors, mode="clipped")
    assert isinstance(clipped.statement_.guarantee, NoGuarantee)
    assert "without noise" in clipped.statement_.guarantee.reason
    assert clipped.statement_.epsilon == math.inf
    assert "noise_multiplier" not in clipped.statement_.parameters
    with pytest.raises(ParameterError, match="no privacy guarantee"):
        clipped.save(tmp_path / "out")


def test_levels_take_part_at_their_rates(vectors):
    rates = {"strict": 0.05, "open": 0.5}
    levels = Participation(noise_multiplier=2.0, steps=10, delta=1e-6, rates=rates, default="strict")
    documents = people(6, attributes={"wish": "strict"}) + people(4, attributes={"wish": "open"})
    fit = fitted(documents, vectors, epsilon=levels, level="wish")
    for name, rate in rates.items():
        gaussian = SampledGaussian(noise_multiplier=2.0, sampling_rate=rate, steps=10)
        assert fit.statements_[name].epsilon == gaussian.epsilon(delta=1e-6)
    assert fit.statement_ == fit.statements_["open"]
    assert levels.code(("open", "strict")) == levels.code(()) == levels.code((None,)) == 0
    assert levels.code(("open",)) == 1
    with pytest.raises(ParameterError, match="a level must be one of ") as error:
        fitted(people(2, attributes={"wish": "Hugo"}), vectors, epsilon=levels, level="wish")
    assert "Hugo" not in str(error.value)


def test_learned_words_and_released_vectors_are_composed(vectors):
    documents = [dptext.Document("kettle teabag cup teabag milk", user=str(user)) for user in range(50)]
    new = learned(("teabag", "tea"))
    before = fitted(documents, vectors, vocabulary=new, trained_words=10)
    assert before.vectors_.words == (*vectors.words, "teabag")
    assert before.statement_.guarantee.epsilon == pytest.approx(9.0, abs=0.01)
    assert before.statement_.parameters["new_words"] == 1
    clear = fitted(documents, vectors, vocabulary=new, trained_words=10, mode="clipped")
    assert np.linalg.norm(clear.vectors_["teabag"]) > 0
    with pytest.raises(RefusedError, match="no proved sum"):
        fitted(documents, vectors, vocabulary=learned(("teabag",), unit=Unit.DOCUMENT))
    for words in (new, new.vocabulary, new.after(vectors.vocabulary)):  # their guarantee would get lost
        with pytest.raises(ParameterError, match="separate guarantee"):
            model(words, dimension=4).plan()
    for options in ({}, {"dimension": 4}):  # vectors, or their list of words only, which is not public
        repeated = fitted(documents, before.vectors_, **options)
        assert "teabag" in repeated.vectors_.words
        both = before.statement_.guarantee.epsilon + 8.0
        assert repeated.statement_.guarantee.epsilon == pytest.approx(both, abs=0.02)
        assert "separate guarantee, included above" in repeated.statement_.exposed[0]
    with pytest.raises(RefusedError, match="no proved sum"):
        fitted(documents, before.vectors_, dimension=4, unit="document")
    public = fitted(documents, vectors, dimension=4).statement_
    assert public.guarantee.epsilon <= 8.0
    assert "it is public" in public.exposed[0]


# -- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_topics_are_learned_from_enough_users_without_public_vectors():
    words = Vocabulary([*WORDS, "<unk>"])
    options = {"dimension": 4, "steps": 60, "public_users": 1000, "distance": 300.0, "sampling_rate": 0.2}
    fit = fitted(people(1000), words, **options)
    points = {word: fit.vectors_[word] / np.linalg.norm(fit.vectors_[word]) for topic in TOPICS for word in topic}
    similar = points["tea"] @ points["cup"], points["tax"] @ points["judge"]
    assert min(similar) > 0.8
    assert points["tea"] @ points["tax"] < min(similar) - 0.1  # .15 to .45 less with six other seeds


def test_untrained_words_keep_their_public_vectors(vectors):
    fit = fitted(people(5), vectors, trained_words=10)
    assert fit.vectors_.words == vectors.words
    untouched = fit.vectors_.matrix[10:-1]  # the last one is the unknown word
    assert (fitted(people(9), vectors, trained_words=10).vectors_.matrix[10:-1] == untouched).all()
    alone = fitted(people(5), vectors, trained_words=10, dimension=3)
    assert alone.vectors_.words == (*vectors.words[:10], "<unk>")


def test_every_row_gets_fresh_noise_that_depends_on_the_texts(vectors):
    texts = ["", None, "zzz qqq"]
    silent = [dptext.Document(text, user=str(user)) for user, text in enumerate(texts)]
    noisy, without = (
        fitted(silent, vectors, dimension=5, mode=mode).vectors_.matrix for mode in ("private", "clipped")
    )
    assert (noisy != without).mean() > 0.99
    one, other = (fitted(people(5), vectors, seed=None, dimension=5) for _ in range(2))
    assert (one.vectors_.matrix != other.vectors_.matrix).mean() > 0.9
    assert one.statement_.release_id != other.statement_.release_id
    # with a seed, equal noise in two releases would cancel and reveal the text of one more user
    documents, options = people(20), {"dimension": 4, "sampling_rate": 1.0, "epsilon": 1.0}
    one = fitted(documents, vectors, **options)
    other = fitted([*documents, dptext.Document("tax", user="new")], vectors, **options)
    moved = one.vectors_.matrix - other.vectors_.matrix
    assert moved.std() > one.vectors_.matrix.std()  # independent: sqrt 2 of it; with equal noise .02
    assert (fitted(documents, vectors, **options).vectors_.matrix == one.vectors_.matrix).all()


def test_hostile_texts_raise_no_error(vectors):
    texts = ["tea " * 100_000, "", None, "\0", "tea", "tea cup " * 3, "🜁" * 1000, "tax"]
    documents = [dptext.Document(text, user=str(user)) for user, text in enumerate(texts)]
    for options in ({}, {"dimension": 3}, {"unit": "document"}, {"unit": "pair"}):
        assert np.isfinite(fitted(documents, vectors, **options).vectors_.matrix).all()


def test_a_saved_folder_has_vectors_statement_and_card(vectors, tmp_path):
    fit = fitted(people(5), vectors)
    fit.save(tmp_path / "shared")
    loaded = dptext.load_vectors(tmp_path / "shared")
    assert loaded.statement == fit.statement_
    assert (loaded.matrix == fit.vectors_.matrix).all()
    card = (tmp_path / "shared" / "README.md").read_text()
    assert "In each of 10 steps every user took part with probability 0.5" in card
    assert ("Abadi" in card, "Balle" in card) == (True, False)
    fitted(people(5), vectors, unit="pair", dimension=3).save(tmp_path / "pairs")
    card = (tmp_path / "pairs" / "README.md").read_text()
    assert "a single pair of words that stand near each other, **not** a person" in card


# -- checkpoints ------------------------------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


def interrupted(vectors, path, step, documents=None, **options):
    def progress(done):
        if done == step:
            raise StoppedError

    with pytest.raises(StoppedError):
        model(vectors, **options).fit(documents or people(20), checkpoint=path, checkpoint_every=3, progress=progress)


def resume(vectors, path, documents=None, **options):
    return model(vectors, **options).fit(documents or people(20), checkpoint=path, checkpoint_every=3, resume=True)


@pytest.mark.parametrize("options", [{}, {"dimension": 4, "pairs": 1}])
def test_a_resumed_run_gives_the_result_of_an_uninterrupted_one(vectors, tmp_path, monkeypatch, options):
    path = tmp_path / "run"
    interrupted(vectors, path, 8, **options)
    assert path.stat().st_mode & 0o777 == 0o600
    resumed = resume(vectors, path, **options)
    assert not path.exists()
    used = []
    stream = NoiseKey.stream
    monkeypatch.setattr(NoiseKey, "stream", lambda key, *args: used.append(args[1]) or stream(key, *args))
    seen = []
    whole = model(vectors, **options).fit(
        people(20),
        checkpoint=tmp_path / "other",
        checkpoint_every=3,
        progress=seen.append,
    )
    assert (resumed.vectors_.matrix == whole.vectors_.matrix).all()
    assert len(used) == len(set(used)) >= 30  # coins, keys and noise of ten steps: no stream is used twice
    assert seen == list(range(11))


def test_a_checkpoint_contains_no_text_user_seed_or_key(vectors, tmp_path):
    path = tmp_path / "run"
    interrupted(vectors, path, 8, seed=987654321)
    tensors, head = read_tensors(path, source="run")
    assert head.keys() == {"format", "version", "secrecy", "parameters", "steps", "sha256"}
    assert head["secrecy"].startswith("private")
    content = path.read_bytes()
    assert b"987654321" not in content
    assert len(content) < tensors["tables"].nbytes + 1000


def test_a_checkpoint_of_another_training_is_not_resumed(vectors, tmp_path):
    path = tmp_path / "run"
    interrupted(vectors, path, 4, sampling_rate=1.0)  # whose accounting takes no time
    before = path.read_bytes()
    for other in [
        {"epsilon": 7.0},
        {"steps": 11},
        {"pairs": 21},
        {"delta": 1e-7},
        {"public_users": 51},
        {"trained_words": 9},
        {"distance": 99.0},
        {"clip": 2.0},
        {"mode": "clipped"},
        {"unit": "document"},
    ]:
        with pytest.raises(RefusedError, match="other parameters"):
            resume(vectors, path, **{"sampling_rate": 1.0} | other)
    assert path.read_bytes() == before
    path.unlink()
    # levels of another column would change the sampling rates of users
    levels = Participation(
        noise_multiplier=2.0, steps=6, delta=1e-6, rates={"strict": 0.05, "open": 1.0}, default="open"
    )
    documents = people(5, attributes={"wish": "open", "other": "strict"})
    interrupted(vectors, path, 4, documents, epsilon=levels, level="wish")
    for other in ("other", None):
        with pytest.raises(RefusedError, match="other parameters"):
            resume(vectors, path, documents, epsilon=levels, level=other)


def test_damaged_and_foreign_checkpoints_are_refused(vectors, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(ParameterError, match="resume needs"):
        model(vectors).fit(people(3), resume=True)
    for content in (b"", b"{}\n", b"\x00" * 5000, b"[" * 5000 + b"\n", b'{"format": "dptext-training"}\n'):
        path.write_bytes(content)
        with pytest.raises(DataError, match="checkpoint"):
            resume(vectors, path)
    with pytest.raises(ParameterError, match="already"):
        model(vectors).fit(people(3), checkpoint=path)
    path.unlink()
    interrupted(vectors, path, 4)
    whole = path.read_bytes()
    fewer_steps = whole.replace(b'"steps":"3"', b'"steps":"2"')
    assert fewer_steps != whole
    for damaged in (whole[:-4], whole[:-1] + bytes([whole[-1] ^ 1]), whole + b"1234", fewer_steps):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"damaged|not a complete"):
            resume(vectors, path)
    with pytest.raises(StorageError):
        model(vectors).fit(people(3), checkpoint=tmp_path / "nowhere" / "run")
    assert read_checkpoint(tmp_path / "none", (1, 1), b"") is None


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_invalid_arguments_are_refused(vectors):
    for options, part in [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"unit": "word"}, "unit must be one of"),
        ({"mode": "public"}, "mode must be one of"),
        ({"steps": 0}, "steps must be"),
        ({"sampling_rate": 1.5}, "sampling_rate must be"),
        ({"sampling_rate": 0.0}, "sampling_rate must be"),
        ({"pairs": 0}, "pairs must be"),
        ({"window": 1.5}, "window must be"),
        ({"negatives": True}, "negatives must be"),
        ({"trained_words": 0}, "trained_words must be"),
        ({"trained_words": 1}, "two words"),
        ({"dimension": 0}, "dimension must be"),
        ({"subsample": -1.0}, "subsample must be"),
        ({"clip": 0.0}, "clip must be"),
        ({"distance": math.inf}, "distance must be"),
        ({"most_words": 0}, "most_words must be"),
        ({"vocabulary": ("tea",)}, "private_vocabulary"),
        ({"public_users": "50"}, "public_users must be"),
        ({"seed": "1"}, "seed must be"),
    ]:
        with pytest.raises(ParameterError, match=part):
            fitted(people(2), vectors, **options)
    for documents, error, part in [
        ([], DataError, "no documents"),
        ("tea", ParameterError, "documents must be"),
        (["tea"], DataError, "row 1 must be a Document"),
    ]:
        with pytest.raises(error, match=part):
            fitted(documents, vectors)


def test_a_large_total_delta_is_warned_of(vectors):
    """Neither 6e-4 of the training nor 1e-7 or 5e-4 of the words is too much for 1,000 users; 1.1e-3 is."""
    options = {"public_users": 1000, "sampling_rate": 1.0, "trained_words": 10}
    with pytest.warns(DeltaWarning, match="not below 1 / 1,000"):
        fitted(people(2), vectors, delta=1e-3, **options)
    fitted(people(2), vectors, delta=6e-4, vocabulary=learned(("teabag",)), **options)
    with pytest.warns(DeltaWarning, match=r"delta 0\.0011 is not below 1 / 1,000"):
        new = learned(("teabag",), guarantee=ApproxDP(1.0, 5e-4))
        fit = fitted(people(2), vectors, delta=6e-4, vocabulary=new, **options)
    assert fit.statement_.guarantee.delta == pytest.approx(1.1e-3)


def test_a_missing_numba_is_named_with_its_extra():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import dptext\n"
        "model = dptext.SkipGram((['a', 'b', 'c'], [[1.0], [2.0], [3.0]]), epsilon=8.0, steps=2, sampling_rate=1.0)\n"
        "try:\n"
        "    model.fit([dptext.Document('a b', user='x')])\n"
        "except dptext.errors.MissingExtraError as error:\n"
        "    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip().endswith('pip install "dptext[skipgram]"')
    assert MissingExtraError.exit_code == 2
