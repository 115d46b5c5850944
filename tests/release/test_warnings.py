"""Python functions warn, once, where the commands print NOT PROTECTED."""

import warnings

import pytest

import dptext
from dptext.cli import main
from dptext.errors import ProtectionWarning
from dptext.privacy import wording


def privatize_file(vectors, epsilon):
    return dptext.privatize_file("in.txt", "out.txt", dptext.TEM(vectors, epsilon=epsilon, threshold=0.5), force=True)


def encode(vectors, epsilon):
    public = [f"w{n}" for n in range(9)]
    encoder = dptext.MeanOfWords(vectors)
    options = {"randomizer": "L2Laplace", "epsilon": epsilon, "public_texts": public}
    return dptext.PrivateEncoder(encoder, **options).fit_transform(["w1 w2"])


RELEASES = {
    "privatize": lambda vectors, epsilon: dptext.privatize(
        ["w1 w2"], dptext.TEM(vectors, epsilon=epsilon, threshold=0.5)
    ),
    "privatize_file": privatize_file,
    "WordPrivatizer": lambda vectors, epsilon: dptext.WordPrivatizer(
        epsilon=epsilon, vectors=vectors, limit=None
    ).fit_transform(["w1 w2"]),
    "PrivateEncoder": encode,
}


@pytest.fixture
def vectors(monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wording, "_WARNINGS", set())
    (tmp_path / "in.txt").write_text("w1 w2\n")
    (tmp_path / "words.txt").write_text("".join(f"w{n} {n} 1\n" for n in range(9)))
    return dptext.load_vectors(tmp_path / "words.txt")


@pytest.mark.parametrize("name", RELEASES)
def test_a_weak_guarantee_is_warned_of_once(name, vectors):
    with pytest.warns(ProtectionWarning, match=r"^NOT PROTECTED: a guarantee with epsilon") as warning:
        for _ in range(2):
            RELEASES[name](vectors, 40.0)
    assert len(warning) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProtectionWarning)
        RELEASES[name](vectors, 0.01)


def test_a_command_prints_it_once(vectors, capsys):
    words = ["--mechanism", "tem", "--vectors", "words.txt", "--epsilon", "40", "--yes"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProtectionWarning)
        assert main(["privatize", "in.txt", "-o", "out.txt", *words]) == 0
    assert capsys.readouterr().err.count("NOT PROTECTED") == 1
