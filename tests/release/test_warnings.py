"""Python functions warn where the commands print NOT PROTECTED."""

import warnings

import pytest

import dptext
from dptext.cli import main
from dptext.errors import ProtectionWarning
from dptext.privacy import wording

RELEASES = {
    "privatize": lambda folder, vectors, epsilon: dptext.privatize(
        ["w1 w2"], dptext.TEM(vectors, epsilon=epsilon, threshold=0.5)
    ),
    "privatize_file": lambda folder, vectors, epsilon: dptext.privatize_file(
        folder / "in.txt", folder / "out.txt", dptext.TEM(vectors, epsilon=epsilon, threshold=0.5)
    ),
    "WordPrivatizer": lambda folder, vectors, epsilon: dptext.WordPrivatizer(
        epsilon=epsilon, vectors=vectors, limit=None
    ).fit_transform(["w1 w2"]),
    "PrivateEncoder": lambda folder, vectors, epsilon: dptext.PrivateEncoder(
        dptext.MeanOfWords(vectors), randomizer="L2Laplace", epsilon=epsilon, public_texts=[f"w{n}" for n in range(9)]
    ).fit_transform(["w1 w2"]),
}


@pytest.fixture
def vectors(monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(wording, "_WARNINGS", set())
    (tmp_path / "in.txt").write_text("w1 w2\n")
    (tmp_path / "words.txt").write_text("".join(f"w{n} {n} 1\n" for n in range(9)))
    return dptext.load_vectors(tmp_path / "words.txt")


@pytest.mark.parametrize("name", RELEASES)
def test_a_weak_guarantee_is_warned_of_once(name, vectors, tmp_path):
    with pytest.warns(
        ProtectionWarning, match=r"^NOT PROTECTED: a guarantee with epsilon .* does not protect"
    ) as warning:
        for place in "one", "two":
            (tmp_path / place).mkdir()
            (tmp_path / place / "in.txt").write_text("w1 w2\n")
            RELEASES[name](tmp_path / place, vectors, 40.0)
    assert len(warning) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProtectionWarning)
        (tmp_path / "three").mkdir()
        (tmp_path / "three" / "in.txt").write_text("w1 w2\n")
        RELEASES[name](tmp_path / "three", vectors, 0.01)


def test_a_command_says_it_before_it_starts_and_not_again(vectors, tmp_path, capsys):
    words = ["--mechanism", "tem", "--vectors", str(tmp_path / "words.txt"), "--epsilon", "40", "--yes"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProtectionWarning)
        assert main(["privatize", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.txt"), *words]) == 0
    assert capsys.readouterr().err.count("NOT PROTECTED") == 1
