"""The package as a whole: what importing it costs, what it must not pull in."""

import json
import subprocess
import sys

import dptext


def test_import_is_light_and_without_heavy_packages():
    heavy = ["torch", "pyarrow", "scipy", "pandas", "matplotlib", "typer", "sentence_transformers"]
    heavy += ["safetensors", "zstandard", "gensim", "sklearn", "datasets", "numba"]
    code = f"import sys, json, dptext; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_every_public_name_is_there_and_documented():
    for name in dptext.__all__:
        assert getattr(dptext, name).__doc__, name


def test_the_library_never_prints_and_logs_nothing_by_itself(capfd):
    vectors = dptext.load_vectors((["cat", "dog"], [[0.0], [1.0]]))
    dptext.privatize(["cat dog cow"], dptext.TEM(vectors, epsilon=1.0))
    dptext.privatize(["cat dog cow"], dptext.Madlib(vectors, epsilon=1.0))
    assert capfd.readouterr() == ("", "")
