"""The folder that is shared: whole, complete, safe to hand on; and its card, by whoever has nothing but the folder."""

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


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- what is in it ----------------------------------------------------------------------------------------------


def test_the_folder_gives_the_vectors_back_with_their_statement(model, tmp_path):
    model.save(tmp_path / "shared")
    assert sorted(os.listdir(tmp_path)) == ["shared"]
    assert sorted(os.listdir(tmp_path / "shared")) == FILES
    back = dptext.load_vectors(tmp_path / "shared")
    assert back.statement == model.statement_
    assert back.fingerprint == model.vectors_.fingerprint


@pytest.mark.parametrize(("form", "name"), [("binary", "vectors.bin"), ("text", "vectors.txt")])
def test_the_copy_for_gensim_holds_the_same_vectors(model, tmp_path, form, name):
    model.save(tmp_path / "shared", word2vec=form)
    assert dptext.load_vectors(tmp_path / "shared" / name).fingerprint == model.vectors_.fingerprint
    assert f'"{name}", binary={form == "binary"}' in (tmp_path / "shared" / "README.md").read_text()


def test_no_copy_for_gensim(model, tmp_path):
    model.save(tmp_path / "shared", word2vec=None)
    assert sorted(os.listdir(tmp_path / "shared")) == [file for file in FILES if file != "vectors.bin"]
    assert "gensim" not in (tmp_path / "shared" / "README.md").read_text()


def test_each_level_has_its_statement(levelled, tmp_path):
    levelled.save(tmp_path / "shared")
    folder = tmp_path / "shared"
    files = statement_files(levelled.statements_)
    assert files["strict"] == "privacy-strict.json"
    for level, file in files.items():
        assert dptext.PrivacyStatement.from_json((folder / file).read_text()) == levelled.statements_[level]
        assert file in (folder / "README.md").read_text()
    assert dptext.load_vectors(folder).statement == levelled.statements_["Für alle!"]
    assert "under substitution, within the level" in (folder / "README.md").read_text()
    assert "| strict | 1 | 1e-06 | 2.8 | epsilon 2.123, delta 1e-06 |" in (folder / "README.md").read_text()
    assert set(files.values()) < json.loads((folder / "config.json").read_text())["sha256"].keys()


HOSTILE = ["../../x", "/etc/passwd", "", "a/b", "CON", "nul.txt", "Strict", "strict", "é", "e\u0301", "x" * 500, "\0"]
HOSTILE += ["a\nb", "\ud800", "-", "..", "strict-0123456789abcdef", "<b>", "README"]


def test_every_name_of_a_level_becomes_a_file_of_its_own(tmp_path):
    files = statement_files(HOSTILE)
    assert files["strict"] == "privacy-strict.json"
    assert len({file.casefold() for file in files.values()}) == len(HOSTILE)
    assert all(re.fullmatch(r"privacy-[a-z0-9_-]{1,60}\.json", file) for file in files.values())
    assert all(sharing._RELEASE_FILE.fullmatch(file) for file in files.values())


def test_a_name_cannot_look_like_what_another_one_became():
    became = statement_files(["Strict"])["Strict"].removeprefix("privacy-").removesuffix(".json")
    assert statement_files([became])[became] != statement_files(["Strict"])["Strict"]


def test_nothing_but_the_release_is_in_the_folder(levelled, tmp_path):
    """Names, texts, paths, the machine, the time; and the same release of other people has files of the same size."""
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
        assert first == second  # but for digests and the random name of the release


def test_a_seed_is_said_first_of_all(vectors, tmp_path):
    fitted(vectors, seed=1).save(tmp_path / "shared")
    head = (tmp_path / "shared" / "README.md").read_text().split("##")[0]
    assert "**Warning: for tests only.**" in head
    assert "two releases made with one seed" in head


# -- whole or not at all ----------------------------------------------------------------------------------------


def test_nothing_is_overwritten_unless_asked(model, levelled, tmp_path):
    levelled.save(tmp_path / "shared")
    before = contents(tmp_path / "shared")
    with pytest.raises(ParameterError, match="is there already"):
        model.save(tmp_path / "shared")
    assert contents(tmp_path / "shared") == before
    model.save(tmp_path / "shared", replace=True)
    assert sorted(os.listdir(tmp_path / "shared")) == FILES  # no statement of another release is left
    assert dptext.load_vectors(tmp_path / "shared").statement == model.statement_
    assert os.listdir(tmp_path) == ["shared"]


def test_what_others_put_there_is_never_deleted(model, tmp_path):
    model.save(tmp_path / "shared")
    (tmp_path / "shared" / "thesis.tex").write_text("years of work")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    dptext.save_vectors(dptext.load_vectors((WORDS, np.eye(8))), tmp_path / "public")
    (tmp_path / "public" / "README.md").write_text("years of notes")
    model.save(tmp_path / "more")
    (tmp_path / "more" / "privacy-mine.json").mkdir()
    for name in ("shared", "empty", "file", ".", "public", "more"):
        with pytest.raises(ParameterError, match="holds something besides released vectors"):
            model.save(tmp_path / name, replace=True)
    assert (tmp_path / "shared" / "thesis.tex").exists()


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_what_was_there(model, tmp_path, monkeypatch, replace, error):
    if replace:
        model.save(tmp_path / "shared")
    before = contents(tmp_path / "shared") if replace else None

    def fail(*_):
        raise error

    monkeypatch.setitem(sharing._WORD2VEC, "binary", ("vectors.bin", fail))
    with pytest.raises((StorageError, KeyboardInterrupt)):
        model.save(tmp_path / "shared", replace=replace)
    assert os.listdir(tmp_path) == (["shared"] if replace else [])
    assert before is None or contents(tmp_path / "shared") == before


def test_a_replaced_folder_comes_back_when_the_last_step_fails(model, tmp_path, monkeypatch):
    model.save(tmp_path / "shared")
    before = contents(tmp_path / "shared")
    rename = Path.rename

    def refuse(self, target):
        if self.name.endswith(".part"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StorageError):
        model.save(tmp_path / "shared", replace=True)
    assert os.listdir(tmp_path) == ["shared"]
    assert contents(tmp_path / "shared") == before


def test_what_cannot_be_saved_is_said(model, vectors, tmp_path):
    with pytest.raises(ParameterError, match="call fit first"):
        dptext.Cooccurrence(vectors, epsilon=8.0).save(tmp_path / "shared")
    with pytest.raises(StorageError, match="its folder does not exist"):
        model.save(tmp_path / "no" / "shared")
    with pytest.raises(ParameterError, match="word2vec must be"):
        model.save(tmp_path / "shared", word2vec="glove")
    with pytest.raises(ParameterError, match="the folder must be a path"):
        model.save("a\0b")
    assert os.listdir(tmp_path) == []


# -- for whoever receives it ------------------------------------------------------------------------------------


def snippets(folder):
    return re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)


def test_the_snippets_of_the_card_run(tmp_path, monkeypatch, capsys):
    public = dptext.load_vectors("glove-6b-50d", limit=50)
    model = dptext.Cooccurrence(public, epsilon=8.0).fit(documents())
    model.save(tmp_path / "shared")
    monkeypatch.chdir(tmp_path / "shared")
    requested = {}

    class KeyedVectors:  # what gensim does with the file was tried with gensim itself
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
    result = snippets(Path())
    assert len(result) == 4
    spaces = []
    for entry in result:
        spaces.append({})
        exec(entry, spaces[-1])
    learned, _, plain, without = spaces
    assert learned["vectors"].statement == model.statement_
    assert requested == {"name": "vectors.bin", "binary": True}
    assert plain["words"] == list(model.vectors_.words)
    assert (plain["matrix"] == model.vectors_.matrix).all()
    assert (without["without"] == public_base(public.matrix, public.vocabulary.unknown_row)).all()
    assert "GUARANTEE" in capsys.readouterr().out


def test_the_card_says_what_a_reader_has_to_know(model, tmp_path):
    model.save(tmp_path / "shared")
    card = (tmp_path / "shared" / "README.md").read_text()
    for text in (
        "a person, with everything that they wrote",
        "epsilon 8, delta 1e-06",
        "2,981 times more likely",
        "at most 1 in 1,000,000",
        "guesses the right one with probability at most 99.97%",
        "epsilon 18.66, delta 1e-06",
        "Texts by others about a person",
        "licence",
        "public_base",
        "**adds up**",
        f"release {model.statement_.release_id}",
    ):
        assert text in card
    # the loss of Gaussian noise exceeds epsilon more often than with probability delta: here 4 in 1,000,000
    sigma = model.budgets_.sigma
    assert 0.5 * math.erfc((8 * sigma - 1 / (2 * sigma)) / math.sqrt(2)) > 4e-6
    assert "plus a probability of at most 1 in 1,000,000" in card
    assert "but for a probability" not in card
    assert all(f"- {assumption}" in card for assumption in model.statement_.assumptions)
    assert not re.search(r"TODO|TBD|XXX|\[your|<your|None|nan\b", card)


def test_the_card_of_single_documents_promises_nothing_to_people(vectors, tmp_path):
    fitted(vectors, unit="document", epsilon=0.5).save(tmp_path / "shared")
    card = (tmp_path / "shared" / "README.md").read_text()
    assert "a single document, **not** a person" in card
    assert "The more documents a person wrote" in card
    assert "This is the worst case" not in card  # epsilon 0.5 needs no excuse
    assert " user" not in card.replace("per user", "")


def test_the_card_without_public_vectors(vectors, tmp_path):
    fitted(vectors.vocabulary, dimension=3).save(tmp_path / "shared")
    card = (tmp_path / "shared" / "README.md").read_text()
    assert "**Public vectors:** none." in card
    assert "public_base" not in card


def test_vectors_that_were_released_before_are_not_called_public(vectors, model, tmp_path):
    """Nor is their list of words: it may hold words that were learned from people."""
    repeated = fitted(model.vectors_)
    repeated.save(tmp_path / "shared")
    card = (tmp_path / "shared" / "README.md").read_text()
    assert "ublic vectors" not in card.replace("the public vectors were not made from", "")  # taken for granted then
    assert "public ones" not in card
    assert "public beforehand" not in card
    assert "(8, 1e-06)-differential privacy" in card  # of which 16 is the sum
    assert "epsilon 16, delta 2e-06" in card
    assert "it is public, chosen" not in " ".join(repeated.statement_.exposed[:1])
    fitted(vectors).save(tmp_path / "first")
    assert "It was public beforehand" in (tmp_path / "first" / "README.md").read_text()


def test_names_are_no_markup(vectors, tmp_path):
    mean = dptext.load_vectors((WORDS, np.eye(8)))
    named = dptext.WordVectors(mean.words, mean.matrix, source="a|b`c\n# d")
    chosen = dptext.Cooccurrence(named, epsilon={"*x*|\n# y": 1.0, "z": 2.0}).fit(documents())
    chosen.save(tmp_path / "shared")
    card = (tmp_path / "shared" / "README.md").read_text()
    assert "\n# d" not in card
    assert "\n# y" not in card
    assert "| \\*x\\*\\| # y | 1 |" in card


# -- and then ---------------------------------------------------------------------------------------------------


def test_domain_adapted_private_text_end_to_end(model, tmp_path):
    """Vectors from people, shared; texts of the same people through TEM and Madlib on them; what they lose in all."""
    model.save(tmp_path / "shared")
    vectors = dptext.load_vectors(tmp_path / "shared")
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


def test_new_words_are_counted_in(vectors, tmp_path):
    pytest.importorskip("opendp")
    many = [dptext.Document(f"a cup of zyzzo{n % 2} tea", user=str(n)) for n in range(400)]
    results = dptext.private_vocabulary(many, epsilon=2.0, delta=1e-6, words_per_user=5, known=vectors.vocabulary)
    assert {"zyzzo0", "zyzzo1"} <= set(results.words)
    model = dptext.Cooccurrence(vectors, epsilon=4.0, vocabulary=results).fit(many)
    model.save(tmp_path / "shared")
    back = dptext.load_vectors(tmp_path / "shared")
    assert back.statement.guarantee == dptext.ApproxDP(6.0, 2e-6)
    assert back.statement.parameters["new_words"] == len(back) - len(vectors)
    assert back.words == model.vectors_.words == (*vectors.words, *results.words)  # "<unk>" before the new ones
    substituted = back.statement.parameters["epsilon_under_substitution"]
    alone = model.budgets_.guarantee(relation=Relation.SUBSTITUTION).epsilon
    assert substituted == pytest.approx(alone + 4.0, rel=1e-3)
    assert back.statement.parameters["promise_of_vocabulary"] == str(results.statement.guarantee)
    card = (tmp_path / "shared" / "README.md").read_text()
    assert f"The last {len(back) - len(vectors)} are words of these people" in card
    # one that a single person wrote comes out with probability delta: nothing else would be true
    assert f"({results.statement.guarantee})" in card
    assert (
        "that only one given person wrote is listed with a probability of at most the delta of that guarantee" in card
    )
    assert "epsilon 6, delta 2e-06" in card
    mechanism = dptext.TEM(back, epsilon=1.0, document_epsilon=6.0, max_words=4)
    result = dptext.privatize(["zyzzo0 and tea"], mechanism)
    assert dptext.statement_with_training(result.statement, back).epsilon >= 12.0 + 6.0
    # made with the vectors in memory or with the folder: it is one release
    assert back.fingerprint == model.vectors_.fingerprint
    assert dptext.statement_with_training(result.statement, model.vectors_).epsilon >= 12.0 + 6.0
