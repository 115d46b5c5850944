"""The package as a whole: the cost of its import, and modules that it must not import."""

import ast
import json
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import dptext


def test_import_is_light_and_without_heavy_packages():
    heavy = ["torch", "pyarrow", "scipy", "pandas", "matplotlib", "typer", "sentence_transformers"]
    heavy += ["safetensors", "zstandard", "gensim", "sklearn", "datasets", "numba", "jinja2"]
    code = f"import sys, json, dptext; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_library_never_prints_and_logs_nothing_by_itself(capfd):
    vectors = dptext.load_vectors((["cat", "dog"], [[0.0], [1.0]]))
    dptext.privatize(["cat dog cow"], dptext.TEM(vectors, epsilon=1.0))
    dptext.privatize(["cat dog cow"], dptext.Madlib(vectors, epsilon=1.0))
    assert capfd.readouterr() == ("", "")


def test_dir_shows_the_public_names_and_nothing_else():
    assert {entry for entry in dir(dptext) if not entry.startswith("__")} == set(dptext._HOME)
    assert dptext.__version__ == version("dptext")
    assert set(dptext.__all__) < set(dir(dptext))
    assert 50 <= len(dptext._HOME) <= 80


def test_every_public_name_is_in_the_docs_with_its_first_line():
    page = (Path(__file__).parent.parent / "docs" / "reference" / "names.md").read_text("utf-8")
    for name in dptext._HOME:
        first = getattr(dptext, name).__doc__.strip().splitlines()[0].replace("|", "\\|")
        assert f"| `{name}` | {first} |" in page


def test_the_source_archive_holds_what_the_tests_and_the_site_are_made_of():
    root = Path(__file__).parent.parent
    included = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert all((root / name).exists() for name in included["include"])
    if not (root / ".git").exists():
        pytest.skip("this is no clone")
    listed = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout
    tracked = {line.split("/")[0] for line in listed.splitlines()}
    assert {name for name in tracked if not name.startswith(".")} == {*included["include"], "pyproject.toml"}


def test_no_module_hides_an_import_of_the_package_from_the_import_linter():
    """Only the package itself (public names) and the command line (its commands) import modules of dptext by name."""
    root = Path(dptext.__file__).parent
    hidden = set()
    for path in root.rglob("*.py"):
        source = path.read_text("utf-8")
        imports = any(name in source for name in ("import_module", "__import__", "resolve_name"))
        for node in ast.walk(ast.parse(source)) if imports else ():
            if isinstance(node, ast.Call) and node.args:
                function = getattr(node.func, "attr", getattr(node.func, "id", ""))
                loads = function in ("import_module", "__import__", "resolve_name")
                if loads and "dptext" in ast.unparse(node.args[0]):
                    hidden.add(str(path.relative_to(root)))
    assert hidden == {"__init__.py", "cli/app.py"}
