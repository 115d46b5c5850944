"""The package as a whole: what importing it costs, what it must not pull in."""

import importlib
import json
import subprocess
import sys

import pytest

import dptext
from dptext.moved import MOVED


def test_import_is_light_and_without_heavy_packages():
    heavy = ["torch", "pyarrow", "scipy", "pandas", "matplotlib", "typer", "sentence_transformers"]
    heavy += ["safetensors", "zstandard", "gensim", "sklearn", "datasets", "numba", "jinja2"]
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


@pytest.mark.parametrize("old", MOVED)
def test_a_name_that_the_docs_once_showed_works_and_warns(old):
    pytest.importorskip("torch" if old.endswith("ranks") else "numpy")
    code = f"""
import warnings, sys
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import {old}
    import {MOVED[old]}
assert [str(each.message) for each in said if {old!r} + " is {MOVED[old]} now" in str(each.message)], said
old, new = sys.modules[{old!r}], sys.modules[{MOVED[old]!r}]
assert dir(old) == dir(new)
for name in getattr(new, "__all__", ()):
    assert getattr(old, name) is getattr(new, name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("old", dptext._OLD)
def test_a_public_name_of_an_earlier_version_is_the_new_one_and_warns(old):
    with pytest.warns(DeprecationWarning, match=rf"^dptext\.{old} is dptext\.{dptext._OLD[old]} now"):
        found = getattr(dptext, old)
    assert found is getattr(dptext, dptext._OLD[old])
    assert old not in dir(dptext)


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("dptext.nothing.at_all")
