"""`save`: the folder of released vectors is complete, contains no private data, and its card is correct."""

import getpass
import json
import math
import os
import re
import socket
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import dptext
from dptext.embeddings import sharing
from dptext.embeddings.refinement import public_base
from dptext.embeddings.sharing import statement_files
from dptext.errors import ParameterError, StorageError
from dptext.privacy.guarantee import Relation, Unit

WORDS = ["tea", "cup", "tax", "law", "cat", "dog", "rain", "sun"]
FILES = ["README.md", "config.json", "privacy.json", "vectors.bin", "vectors.safetensors", "words.txt"]
MARKER = "qsecretq"


@pytest.fixture(scope="module")
def vectors():
    return dptext.load_vectors((WORDS, np.random.default_rng(0).normal(size=(8, 4))))


def documents(count=40, level=None):
    lines = ["a cup of tea", "tax and law", "cat, dog", "sun after rain"]
    for n in range(count):
        attributes = None if level is None else {"level": level[n % len(level)]}
        yield dptext.Document(f"{lines[n % 4]} {MARKER}", user=f"{MARKER}{n % 13}", attributes=attributes)


def fitted(vectors, **options):
    return dptext.Cooccurrence(vectors, **{"epsilon": 8.0, "delta": 1e-6, **options}).fit(documents())


@pytest.fixture(scope="module")
def model(vectors):
    return fitted(vectors)


@pytest.fixture(scope="module")
def levelled(vectors):
    chosen = dptext.Cooccurrence(vectors, epsilon={"strict": 1.0, "Für alle!": 8.0}, level="level")
    return chosen.fit(documents(level=["strict", "Für alle!", None]))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "shared"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def card_of(model, folder):
    model.save(folder, replace=folder.exists())
    return (folder / "README.md").read_text()


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_folder_has_vectors_statement_and_a_copy_for_gensim(model, folder):
    model.save(folder)
    assert sorted(os.listdir(folder)) == FILES
    loaded = dptext.load_vectors(folder)
    assert loaded.statement == model.statement_
    assert loaded.fingerprint == model.vectors_.fingerprint
    assert dptext.load_vectors(folder / "vectors.bin").fingerprint == model.vectors_.fingerprint
    assert '"vectors.bin", binary=True' in (folder / "README.md").read_text()


def test_each_level_has_a_statement_in_a_safe_file(levelled, folder):
    card = card_of(levelled, folder)
    files = statement_files(levelled.statements_)
    for level, file in files.items():
        assert dptext.PrivacyStatement.from_json((folder / file).read_text()) == levelled.statements_[level]
        assert file in card
    assert dptext.load_vectors(folder).statement == levelled.statements_["Für alle!"]
    assert "under substitution, within the level" in card
    assert "| strict | 1 | 1e-06 | 2.8 | epsilon 2.123, delta 1e-06 |" in card
    assert set(files.values()) < json.loads((folder / "config.json").read_text())["sha256"].keys()
    names = ["../../x", "/etc/passwd", "", "a/b", "CON", "nul.txt", "Strict", "strict", "é", "e\u0301", "x" * 500, "\0"]
    names += ["a\nb", "\ud800", "-", "..", "strict-0123456789abcdef", "<b>", "README"]
    files = statement_files(names)
    assert files["strict"] == "privacy-strict.json"
    assert len({file.casefold() for file in files.values()}) == len(names)
    assert all(re.fullmatch(r"privacy-[a-z0-9_-]{1,60}\.json", file) for file in files.values())
    assert all(sharing._RELEASE_FILE.fullmatch(file) for file in files.values())
    changed = files["Strict"].removeprefix("privacy-").removesuffix(".json")
    assert statement_files([changed])[changed] != files["Strict"]


def test_a_folder_contains_no_texts_users_paths_or_times(levelled, tmp_path):
    """The same release of other people has files of the same size."""
    levelled.save(tmp_path / "shared")
    result = contents(tmp_path / "shared")
    for private in (MARKER, str(tmp_path), socket.gethostname(), os.getcwd()):
        assert not any(private.encode() in entry for entry in result.values())
    words = set(re.findall(r"\w+", result["README.md"].decode() + result["config.json"].decode()))
    assert getpass.getuser() not in words
    assert not re.search(rb"20\d\d-\d\d", b"".join(result.values()))
    other = dptext.Cooccurrence(levelled.vectors, epsilon=levelled.epsilon, level="level")
    other.fit(documents(3, level=["strict"])).save(tmp_path / "other")
    same = contents(tmp_path / "other")
    for name in ("README.md", "config.json", "words.txt", "privacy.json", "privacy-strict.json"):
        first, second = (re.sub(rb"[0-9a-f]{32,64}", b"", entry[name]) for entry in (result, same))
        assert first == second  # except digests and the random id of the release


def test_nothing_is_overwritten_without_replace_and_foreign_files_never(model, levelled, folder, tmp_path):
    levelled.save(folder)
    before = contents(folder)
    with pytest.raises(ParameterError, match="already"):
        model.save(folder)
    assert contents(folder) == before
    model.save(folder, replace=True)
    assert sorted(os.listdir(folder)) == FILES  # no statement of another release is left
    assert os.listdir(tmp_path) == ["shared"]
    (folder / "thesis.tex").write_text("years of work")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    dptext.save_vectors(dptext.load_vectors((WORDS, np.eye(8))), tmp_path / "public")
    (tmp_path / "public" / "README.md").write_text("years of notes")
    model.save(tmp_path / "more")
    (tmp_path / "more" / "privacy-mine.json").mkdir()
    for name in ("shared", "empty", "file", ".", "public", "more"):
        with pytest.raises(ParameterError, match="contains data other than released vectors"):
            model.save(tmp_path / name, replace=True)
    assert (folder / "thesis.tex").exists()


def test_a_failed_save_leaves_the_earlier_folder(model, folder, tmp_path, monkeypatch):
    errors = [OSError(28, "No space left on device"), KeyboardInterrupt()]
    for replace, error in [(replace, error) for replace in (False, True) for error in errors]:
        if replace and not folder.exists():
            model.save(folder)
        before = contents(folder) if replace else None

        def fail(*_, error=error):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(sharing, "write_binary", fail)
            with pytest.raises((StorageError, KeyboardInterrupt)):
                model.save(folder, replace=replace)
        assert os.listdir(tmp_path) == (["shared"] if replace else [])
        assert before is None or contents(folder) == before
    rename = Path.rename

    def refuse(self, target):
        if self.name.endswith(".part"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)  # the last step fails
    with pytest.raises(StorageError):
        model.save(folder, replace=True)
    assert os.listdir(tmp_path) == ["shared"]
    assert contents(folder) == before


def test_invalid_saves_are_refused(model, vectors, folder, tmp_path):
    for act, error, part in [
        (lambda: dptext.Cooccurrence(vectors, epsilon=8.0).save(folder), ParameterError, "call fit first"),
        (lambda: model.save(tmp_path / "no" / "shared"), StorageError, "its folder does not exist"),
        (lambda: model.save("a\0b"), ParameterError, "the folder must be a (valid )?path"),
    ]:
        with pytest.raises(error, match=part):
            act()
    assert os.listdir(tmp_path) == []


# -- cards ------------------------------------------------------------------------------------------------------------


def test_the_snippets_of_the_card_run(folder, monkeypatch, capsys):
    public = dptext.load_vectors("glove-6b-50d", limit=50)
    model = dptext.Cooccurrence(public, epsilon=8.0).fit(documents())
    card = card_of(model, folder)
    monkeypatch.chdir(folder)
    requested = {}

    class KeyedVectors:  # as gensim behaves
        def __init__(self, vectors):
            self.index_to_key = list(vectors.words)

        @classmethod
        def load_word2vec_format(cls, name, *, binary):
            requested.update(name=name, binary=binary)
            return cls(dptext.load_vectors(name))

        def most_similar(self, word):
            return [(word, 1.0)]

    monkeypatch.setitem(sys.modules, "gensim", types.ModuleType("gensim"))
    monkeypatch.setitem(sys.modules, "gensim.models", types.SimpleNamespace(KeyedVectors=KeyedVectors))
    namespaces = []
    for snippet in re.findall(r"```python\n(.*?)```", card, re.DOTALL):
        namespaces.append({})
        exec(snippet, namespaces[-1])
    learned, _, plain, without = namespaces
    assert learned["vectors"].statement == model.statement_
    assert requested == {"name": "vectors.bin", "binary": True}
    assert plain["words"] == list(model.vectors_.words)
    assert (plain["matrix"] == model.vectors_.matrix).all()
    assert (without["without"] == public_base(public.matrix, public.vocabulary.unknown_row)).all()
    assert "GUARANTEE" in capsys.readouterr().out


def test_the_card_states_the_guarantee_and_its_probability(model, folder):
    card = card_of(model, folder)
    for text in (
        "a person, with all their texts in the input",
        "epsilon 8, delta 1e-06",
        "2,981 times more likely",
        "epsilon 18.66, delta 1e-06",
        f"release {model.statement_.release_id}",
        *model.statement_.assumptions,
    ):
        assert text in card
    # the loss of Gaussian noise exceeds epsilon more often than with probability delta: here 4 in 1,000,000
    sigma = model.budgets_.sigma
    assert 0.5 * math.erfc((8 * sigma - 1 / (2 * sigma)) / math.sqrt(2)) > 4e-6
    assert "plus a probability of at most 1 in 1,000,000" in card
    assert "but for a probability" not in card


def test_cards_of_documents_seeds_and_released_vectors(vectors, model, folder):
    card = card_of(fitted(vectors, unit="document", epsilon=0.5), folder)
    assert "a single document, **not** a person" in card
    assert " user" not in card.replace("per user", "")
    card = card_of(fitted(vectors, seed=1), folder)
    assert "**Warning: for tests only.**" in card.split("##")[0]
    assert "It was public beforehand" in card
    # vectors that were released before, and their words, are not public
    repeated = fitted(model.vectors_)
    card = card_of(repeated, folder)
    assert "ublic vectors" not in card.replace("the public vectors were not made from", "")
    assert "public beforehand" not in card
    assert "epsilon 16, delta 2e-06" in card
    assert "it is public, chosen" not in " ".join(repeated.statement_.exposed[:1])


def test_names_are_not_rendered_as_markup(folder):
    mean = dptext.load_vectors((WORDS, np.eye(8)))
    named = dptext.WordVectors(mean.words, mean.matrix, source="a|b`c\n# d")
    card = card_of(dptext.Cooccurrence(named, epsilon={"*x*|\n# y": 1.0, "z": 2.0}).fit(documents()), folder)
    assert "\n# d" not in card
    assert "\n# y" not in card
    assert "| \\*x\\*\\| # y | 1 |" in card


# -- use in later releases --------------------------------------------------------------------------------------------


def test_texts_privatized_with_loaded_vectors_add_the_guarantee_of_the_training(model, folder):
    model.save(folder)
    vectors = dptext.load_vectors(folder)
    for mechanism in (
        dptext.TEM(vectors, epsilon=1.0, document_epsilon=6.0, max_words=4),
        dptext.Madlib(vectors, epsilon=1.0),
    ):
        result = dptext.privatize(["a cup of tea"], mechanism)
        both = dptext.statement_with_training(result.statement, vectors)
        assert (both.unit, both.relation) == (Unit.USER, Relation.SUBSTITUTION)
        assert both.epsilon >= 16.0 + mechanism.epsilon
        assert both.guarantee.delta >= 1e-6
        assert "all in the training of the vectors, one document in the release" in both.neighbours
        assert both.condition.narrows(result.statement.condition, both.unit)
    assert result.statement.parameters["vectors_release"] == model.statement_.release_id


def test_learned_words_are_composed_in_statement_and_card(vectors, folder):
    many = [dptext.Document(f"a cup of zyzzo{n % 2} tea", user=str(n)) for n in range(400)]
    results = dptext.private_vocabulary(many, epsilon=2.0, delta=1e-6, words_per_user=5, known=vectors.vocabulary)
    assert {"zyzzo0", "zyzzo1"} <= set(results.words)
    model = dptext.Cooccurrence(vectors, epsilon=4.0, vocabulary=results).fit(many)
    card = card_of(model, folder)
    loaded = dptext.load_vectors(folder)
    assert loaded.statement.guarantee == dptext.ApproxDP(6.0, 2e-6)
    assert loaded.words == model.vectors_.words == (*vectors.words, *results.words)  # "<unk>" before the new ones
    parameters = loaded.statement.parameters
    assert parameters["new_words"] == len(loaded) - len(vectors)
    alone = model.budgets_.guarantee(relation=Relation.SUBSTITUTION).epsilon
    assert parameters["epsilon_under_substitution"] == pytest.approx(alone + 4.0, rel=1e-3)
    assert parameters["promise_of_vocabulary"] == str(results.statement.guarantee)
    assert f"The last {len(loaded) - len(vectors)} are words of these people" in card
    assert f"({results.statement.guarantee})" in card
    assert "that only one given person wrote is listed with a probability of at most the delta of that" in card
    assert "epsilon 6, delta 2e-06" in card
    mechanism = dptext.TEM(loaded, epsilon=1.0, document_epsilon=6.0, max_words=4)
    result = dptext.privatize(["zyzzo0 and tea"], mechanism)
    assert loaded.fingerprint == model.vectors_.fingerprint
    for same in (loaded, model.vectors_):  # one release, in memory or from the folder
        assert dptext.statement_with_training(result.statement, same).epsilon >= 12.0 + 6.0
