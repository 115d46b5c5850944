"""SkipGram as users meet it: what comes out, what is promised, what a checkpoint holds, and what is refused."""

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
from dptext.users.private_vocabulary import PrivateVocabulary

TOPICS = (("tea", "cup", "milk", "kettle"), ("tax", "law", "court", "judge"))
WORDS = [word for topic in TOPICS for word in topic] + [f"word{n}" for n in range(30)]
LITTLE = {"epsilon": 8.0, "steps": 10, "sampling_rate": 0.5, "public_users": 50, "pairs": 20, "seed": 1}
CHECK_VALUES = [(1.0, 6.79), (3.0, 2.60), (8.0, 1.28)]


@pytest.fixture(scope="module")
def vectors():
    return dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(len(WORDS), 8))))


def people(count, seed=1, **attributes):
    """Each writes of one topic, in several documents."""
    generator = np.random.default_rng(seed)
    return [
        dptext.Document(" ".join(generator.choice(TOPICS[user % 2], 6)), user=f"user {user}", **attributes)
        for user in range(count)
        for _ in range(3)
    ]


def model(vectors, **options):
    return SkipGram(vectors, **LITTLE | options)


def fitted(documents, vectors, **options):
    return model(vectors, **options).fit(documents)


# -- what is promised ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "noise"), CHECK_VALUES)
def test_noise_for_the_check_values(vectors, epsilon, noise):
    """z of eps 1, 3, 8 at q .05, T 1000, delta 1e-6: at most rounding above, and never above the epsilon asked for."""
    plan = SkipGram(vectors, epsilon=epsilon, steps=1000, sampling_rate=0.05).plan()
    assert plan.participation.noise_multiplier <= noise
    assert plan.participation.noise_multiplier == pytest.approx(noise, rel=0.006)
    expected = plan.participation.guarantee().epsilon
    assert epsilon * 0.995 < expected <= epsilon


def test_what_is_promised(vectors):
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
    assert not statement.seeded
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert "adding or removing one user" in " ".join(statement.explain().split())
    assert fitted(people(5), vectors).statement_.seeded


def test_units_are_named_for_what_they_are(vectors):
    documents = [dptext.Document("a cup of tea and milk")] * 5
    assert fitted(documents, vectors, unit="document").statement_.unit is Unit.DOCUMENT
    pair = fitted(documents, vectors, unit="pair").statement_
    assert pair.unit is Unit.EXAMPLE
    assert "nothing that protects a person" in pair.neighbours
    with pytest.raises(DataError, match="user"):
        fitted(documents, vectors)


@pytest.mark.parametrize(("mode", "reason"), [("clipped", "without noise")])
def test_for_comparison_only(vectors, tmp_path, mode, reason):
    fit = fitted(people(5), vectors, mode=mode)
    assert isinstance(fit.statement_.guarantee, NoGuarantee)
    assert reason in fit.statement_.guarantee.reason
    assert fit.statement_.epsilon == math.inf
    assert "noise_multiplier" not in fit.statement_.parameters
    with pytest.raises(ParameterError, match="no privacy guarantee"):
        fit.save(tmp_path / "out")


def test_nothing_that_is_shown_tells_how_many_users_there_are(vectors):
    few, many = (fitted(people(count), vectors) for count in (3, 300))
    anonymous = [entry.statement_.replace(release_id=None) for entry in (few, many)]
    assert anonymous[0] == anonymous[1]
    assert few.vectors_.source == many.vectors_.source


def learned(words, unit=Unit.USER, delta=1e-7):
    statement = PrivacyStatement(
        guarantee=ApproxDP(1.0, delta),
        unit=unit,
        relation=Relation.ADD_REMOVE,
        condition="two collections, one of which holds one more",
        trust=Trust.CENTRAL,
        mechanism="private vocabulary",
    )
    return PrivateVocabulary(words=words, statement=statement)


def test_new_words_come_after_known_ones_and_their_promise_is_composed_in(vectors):
    documents = [dptext.Document("kettle teabag cup teabag milk", user=str(user)) for user in range(50)]
    fit = fitted(documents, vectors, vocabulary=learned(("teabag", "tea")), trained_words=10)
    assert fit.vectors_.words == (*vectors.words, "teabag")
    assert fit.statement_.guarantee.epsilon == pytest.approx(9.0, abs=0.01)
    assert fit.statement_.parameters["new_words"] == 1
    clear = fitted(documents, vectors, vocabulary=learned(("teabag", "tea")), trained_words=10, mode="clipped")
    assert np.linalg.norm(clear.vectors_["teabag"]) > 0
    with pytest.raises(RefusedError, match="no proved sum"):
        fitted(documents, vectors, vocabulary=learned(("teabag",), unit=Unit.DOCUMENT))


def test_learned_words_do_not_pass_for_public_ones(vectors):
    """Their promise would get lost, and a list of words of these people would be said to be public."""
    new = learned(("teabag",))
    for words in (new, new.vocabulary, new.after(vectors.vocabulary)):
        with pytest.raises(ParameterError, match="separate guarantee"):
            model(words, dimension=4).plan()


def test_vectors_that_were_released_before_are_composed_in(vectors):
    before = fitted(people(20), vectors)
    repeated = fitted(people(20, seed=2), before.vectors_)
    assert repeated.statement_.guarantee.epsilon == pytest.approx(16.0, abs=0.02)
    assert "skip-gram + skip-gram" in repeated.statement_.mechanism


def test_a_participation_of_numbers_of_numpy(vectors):
    fields = {"noise_multiplier": np.float32(2), "steps": np.int64(3), "rates": {"a": np.float32(0.5)}, "default": "a"}
    fit = fitted(people(2), vectors, epsilon=Participation(delta=1e-6, **fields))
    assert PrivacyStatement.from_json(fit.statement_.to_json()) == fit.statement_


def test_words_alone_of_vectors_that_were_released_before_are_counted_too(vectors):
    """A word that was learned from these users is in the list: that list is not public."""
    documents = [dptext.Document("kettle teabag cup", user=str(user)) for user in range(50)]
    before = fitted(documents, vectors, vocabulary=learned(("teabag",)))
    repeated = fitted(documents, before.vectors_, dimension=4)
    assert "teabag" in repeated.vectors_.words
    assert repeated.statement_.guarantee.epsilon == pytest.approx(before.statement_.guarantee.epsilon + 8.0, abs=0.02)
    assert repeated.statement_.exposed[0] == (
        "the list of words that have a vector: words of vectors that were released under a separate guarantee, "
        "included above"
    )
    with pytest.raises(RefusedError, match="no proved sum"):
        fitted(documents, before.vectors_, dimension=4, unit="document")
    public = fitted(documents, vectors, dimension=4).statement_
    assert public.guarantee.epsilon <= 8.0
    assert "it is public" in public.exposed[0]


def test_levels_take_part_at_their_own_rates(vectors):
    rates = {"strict": 0.05, "open": 0.5}
    levels = Participation(noise_multiplier=2.0, steps=10, delta=1e-6, rates=rates, default="strict")
    documents = people(6, attributes={"wish": "strict"}) + people(4, attributes={"wish": "open"})
    fit = fitted(documents, vectors, epsilon=levels, level="wish")
    expected = {
        name: SampledGaussian(noise_multiplier=2.0, sampling_rate=rate, steps=10) for name, rate in rates.items()
    }
    assert {name: entry.epsilon for name, entry in fit.statements_.items()} == {
        name: entry.epsilon(delta=1e-6) for name, entry in expected.items()
    }
    assert fit.statement_ == fit.statements_["open"]
    assert levels.code(("open", "strict")) == levels.code(()) == levels.code((None,)) == 0
    assert levels.code(("open",)) == 1
    with pytest.raises(ParameterError, match="a level must be one of ") as error:
        fitted(people(2, attributes={"wish": "Hugo"}), vectors, epsilon=levels, level="wish")
    assert "Hugo" not in str(error.value)


# -- what is learned ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_topics_are_learned_from_enough_people_without_public_vectors():
    words = Vocabulary([*WORDS, "<unk>"])
    options = {"dimension": 4, "steps": 60, "public_users": 1000, "distance": 300.0, "sampling_rate": 0.2}
    fit = fitted(people(1000), words, **options)
    points = {word: fit.vectors_[word] / np.linalg.norm(fit.vectors_[word]) for topic in TOPICS for word in topic}
    similar = points["tea"] @ points["cup"], points["tax"] @ points["judge"]
    assert min(similar) > 0.8
    assert points["tea"] @ points["tax"] < min(similar) - 0.1  # .15 to .45 less with six other seeds
    assert fit.vectors_.dimension == 4


def test_words_beyond_those_that_are_trained(vectors):
    fit = fitted(people(5), vectors, trained_words=10)
    assert fit.vectors_.words == vectors.words
    untouched = fit.vectors_.matrix[10:-1]  # the last one is the unknown word
    assert (fitted(people(9), vectors, trained_words=10).vectors_.matrix[10:-1] == untouched).all()
    alone = fitted(people(5), vectors, trained_words=10, dimension=3)
    assert alone.vectors_.words == (*vectors.words[:10], "<unk>")


def test_all_rows_get_noise_and_nothing_else_where_nobody_wrote(vectors):
    silent = [dptext.Document("", user="a"), dptext.Document(None, user="b"), dptext.Document("zzz qqq", user="c")]
    fit = fitted(silent, vectors, dimension=5)
    without = fitted(silent, vectors, dimension=5, mode="clipped")
    assert (fit.vectors_.matrix != without.vectors_.matrix).mean() > 0.99


def test_a_fresh_run_has_fresh_noise(vectors):
    one, other = (fitted(people(5), vectors, seed=None, dimension=5) for _ in range(2))
    assert (one.vectors_.matrix != other.vectors_.matrix).mean() > 0.9
    assert one.statement_.release_id != other.statement_.release_id
    assert (fitted(people(5), vectors).vectors_.matrix == fitted(people(5), vectors).vectors_.matrix).all()


def test_a_seed_does_not_repeat_its_noise_on_other_texts(vectors):
    """Equal noise in two releases cancels: what is left tells what one more user wrote, to people without the seed."""
    documents, options = people(20), {"dimension": 4, "sampling_rate": 1.0, "epsilon": 1.0}
    one = fitted(documents, vectors, **options)
    other = fitted([*documents, dptext.Document("tax", user="new")], vectors, **options)
    moved = one.vectors_.matrix - other.vectors_.matrix
    assert moved.std() > one.vectors_.matrix.std()  # two independent ones: sqrt 2 of it; with equal noise .02
    assert (fitted(documents, vectors, **options).vectors_.matrix == one.vectors_.matrix).all()


def test_a_hostile_text_raises_nothing(vectors):
    texts = ["tea " * 100_000, "", None, "\0", "tea", "tea cup " * 3, "🜁" * 1000, "tax"]
    documents = [dptext.Document(text, user=str(user)) for user, text in enumerate(texts)]
    for options in ({}, {"dimension": 3}, {"unit": "document"}, {"unit": "pair"}):
        assert np.isfinite(fitted(documents, vectors, **options).vectors_.matrix).all()


def test_a_folder_to_share(vectors, tmp_path):
    fit = fitted(people(5), vectors)
    fit.save(tmp_path / "shared")
    back = dptext.load_vectors(tmp_path / "shared")
    assert back.statement == fit.statement_
    assert (back.matrix == fit.vectors_.matrix).all()
    card = (tmp_path / "shared" / "README.md").read_text()
    assert "In each of 10 steps every user took part with probability 0.5" in card
    assert "1 x 39 x 8 trained numbers" in card
    assert "Abadi" in card
    assert "Balle" not in card
    fitted(people(5), vectors, unit="pair", dimension=3).save(tmp_path / "pairs")
    card = (tmp_path / "pairs" / "README.md").read_text()
    assert "a single pair of words that stand near each other, **not** a person" in card
    assert "2 x 39 x 3 trained numbers" in card
    with pytest.raises(ParameterError, match="fit first"):
        model(vectors).save(tmp_path / "other")


# -- checkpoints --------------------------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


def interrupted(vectors, path, at, **options):
    def progress(state):
        if state.step == at:
            raise StoppedError

    with pytest.raises(StoppedError):
        model(vectors, **options).fit(people(20), checkpoint=path, checkpoint_every=3, progress=progress)


@pytest.mark.parametrize("options", [{}, {"dimension": 4, "pairs": 1}])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(vectors, tmp_path, options):
    path = tmp_path / "run"
    interrupted(vectors, path, 8, **options)
    assert path.stat().st_mode & 0o777 == 0o600
    seen = []
    resumed = model(vectors, **options).fit(
        people(20), checkpoint=path, checkpoint_every=3, resume=True, progress=lambda state: seen.append(state.step)
    )
    assert seen == [6, 7, 8, 9, 10]
    assert not path.exists()
    whole = model(vectors, **options).fit(people(20), checkpoint=tmp_path / "other", checkpoint_every=3)
    assert (resumed.vectors_.matrix == whole.vectors_.matrix).all()


def test_no_stream_of_random_bits_is_used_twice(vectors, tmp_path, monkeypatch):
    used = []
    stream = NoiseKey.stream
    monkeypatch.setattr(
        NoiseKey,
        "stream",
        lambda key, digest, place, content: used.append(place) or stream(key, digest, place, content),
    )
    model(vectors).fit(people(20), checkpoint=tmp_path / "run", checkpoint_every=3)
    assert len(used) == len(set(used)) >= 30  # coins, keys and noise of ten steps


def test_a_checkpoint_holds_no_texts_no_users_no_seed_and_no_key(vectors, tmp_path):
    path = tmp_path / "run"
    interrupted(vectors, path, 8, seed=987654321)
    tensors, head = read_tensors(path, source="run")
    assert head.keys() == {"format", "version", "secrecy", "parameters", "steps", "sha256"}
    assert head["secrecy"].startswith("private")
    content = path.read_bytes()
    assert b"987654321" not in content
    assert len(content) < tensors["tables"].nbytes + 1000


OTHERS = [
    "epsilon 7",
    "steps 11",
    "pairs 21",
    "delta 1e-7",
    "public_users 51",
    "trained_words 9",
    "distance 99",
    "clip 2",
]


@pytest.mark.parametrize("other", [*OTHERS, {"mode": "clipped"}, {"unit": "document"}])
def test_resuming_with_other_parameters_is_refused(vectors, tmp_path, other):
    if isinstance(other, str):
        name, value = other.split()
        other = {
            name: float(value) if name in ("epsilon", "delta", "distance", "clip", "sampling_rate") else int(value)
        }
    path = tmp_path / "run"
    interrupted(vectors, path, 4, sampling_rate=1.0)  # whose accounting takes no time
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="other parameters"):
        model(vectors, **{"sampling_rate": 1.0} | other).fit(people(20), checkpoint=path, resume=True)
    assert path.read_bytes() == before


def test_resuming_at_the_levels_of_another_column_is_refused(vectors, tmp_path):
    """Who began at the rate of one column and went on at that of another would be promised what one of them costs."""
    levels = Participation(
        noise_multiplier=2.0, steps=6, delta=1e-6, rates={"strict": 0.05, "open": 1.0}, default="open"
    )
    documents = people(5, attributes={"wish": "open", "other": "strict"})

    def progress(state):
        if state.step == 4:
            raise StoppedError

    path = tmp_path / "run"
    with pytest.raises(StoppedError):
        model(vectors, epsilon=levels, level="wish").fit(
            documents, checkpoint=path, checkpoint_every=3, progress=progress
        )
    for other in ("other", None):
        with pytest.raises(RefusedError, match="other parameters"):
            model(vectors, epsilon=levels, level=other).fit(documents, checkpoint=path, resume=True)


def test_what_is_no_checkpoint(vectors, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(ParameterError, match="resume needs"):
        model(vectors).fit(people(3), resume=True)
    for content in (b"", b"{}\n", b"\x00" * 5000, b"[" * 5000 + b"\n", b'{"format": "dptext-training"}\n'):
        path.write_bytes(content)
        with pytest.raises(DataError, match="checkpoint"):
            model(vectors).fit(people(3), checkpoint=path, resume=True)
    with pytest.raises(ParameterError, match="there already"):
        model(vectors).fit(people(3), checkpoint=path)
    path.unlink()
    interrupted(vectors, path, 4)
    whole = path.read_bytes()
    fewer_steps = whole.replace(b'"steps":"3"', b'"steps":"2"')
    assert fewer_steps != whole
    for damaged in (whole[:-4], whole[:-1] + bytes([whole[-1] ^ 1]), whole + b"1234", fewer_steps):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"damaged|broken"):
            model(vectors).fit(people(3), checkpoint=path, resume=True)
    with pytest.raises(StorageError):
        model(vectors).fit(people(3), checkpoint=tmp_path / "nowhere" / "run")
    assert read_checkpoint(tmp_path / "none", (1, 1), b"") is None


@pytest.mark.slow
def test_progress_tells_what_was_spent(vectors):
    seen = []
    fit = model(vectors, steps=3).fit(people(5), progress=lambda at: seen.append((at.step, at.steps, at.epsilon)))
    assert [step for step, _, _ in seen] == [0, 1, 2, 3]
    spent = [epsilon for _, _, epsilon in seen]
    assert spent[0] == 0.0
    assert spent == sorted(spent)
    assert spent[-1] == fit.statement_.guarantee.epsilon


# -- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
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
        ({"distance": 1e300}, "distance must be"),
        ({"public_users": 0}, "public_users must be"),
        ({"public_users": "50"}, "public_users must be"),
        ({"seed": "1"}, "seed must be"),
    ],
)
def test_arguments_that_are_out_of_range(vectors, options, message):
    with pytest.raises(ParameterError, match=message):
        fitted(people(2), vectors, **options)


def test_no_documents_and_wrong_ones(vectors):
    with pytest.raises(DataError, match="no documents"):
        fitted([], vectors)
    with pytest.raises(ParameterError, match="documents must be"):
        fitted("tea", vectors)
    with pytest.raises(DataError, match="row 1 must be a Document"):
        fitted(["tea"], vectors)


def test_a_delta_too_large_for_so_many_users(vectors):
    with pytest.warns(DeltaWarning, match="not below 1 / 1,000"):
        fitted(people(2), vectors, delta=1e-3, public_users=1000, sampling_rate=1.0)


def test_the_delta_that_is_warned_of_is_that_of_all_that_is_composed_in(vectors):
    """Neither 6e-4 of the training nor 1e-7 or 5e-4 of the words is too much for 1,000 users; 1.1e-3 is."""
    options = {"delta": 6e-4, "public_users": 1000, "sampling_rate": 1.0, "trained_words": 10}
    fitted(people(2), vectors, vocabulary=learned(("teabag",)), **options)
    with pytest.warns(DeltaWarning, match=r"delta 0\.0011 is not below 1 / 1,000"):
        fit = fitted(people(2), vectors, vocabulary=learned(("teabag",), delta=5e-4), **options)
    assert fit.statement_.guarantee.delta == pytest.approx(1.1e-3)


def test_without_numba(vectors, monkeypatch):
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
