"""What the README tells a new user to type works as it stands (its Python examples run as doctests)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dptext

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the example is for a POSIX shell")
def test_the_shell_example_runs_from_top_to_bottom(tmp_path):
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("verified, its SHA-256") == 2
    assert "NOT PROTECTED" in done.stderr  # of words alone
    statement = dptext.PrivacyStatement.from_json((tmp_path / "private.jsonl.privacy.json").read_text())
    assert "the column 'stars', as it was" in statement.exposed
    assert "Maria" not in (tmp_path / "private.jsonl").read_text()


@pytest.mark.spark
def test_the_spark_example_runs_by_copy_and_paste(tmp_path):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    (example,) = re.findall(r"```python\n(from pyspark.*?)```", README, re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # the environment is activated
    env = {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    env.pop("PYSPARK_PYTHON", None)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "per unit of summed euclidean distance" in done.stdout
    assert "Maria" not in done.stdout
    statement = dptext.PrivacyStatement.from_json((tmp_path / "reviews.parquet.privacy.json").read_text())
    assert statement.parameters["engine"] == "spark"
    assert (tmp_path / "reviews.parquet" / "_SUCCESS").exists()


def test_every_command_and_target_that_the_readme_names_exists():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for document in re.findall(r"\]\(([\w/.]+)\)", README):
        assert (Path(__file__).parent.parent / document).exists(), document


def test_the_walks_for_contributors_lead_to_files_that_are_there():
    guide = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    source = Path(dptext.__file__).parent
    named = set(re.findall(r"`(?:dptext/)?([a-z_]+(?:/[a-z_]+)*\.py)\b", guide))
    assert len(named) > 20
    root = Path(__file__).parent.parent
    assert [each for each in sorted(named) if not ((source / each).is_file() or (root / each).is_file())] == []
    rooms = {each.name for each in source.iterdir() if each.is_dir() and each.name != "__pycache__"}
    picture = guide.split("```")[1]
    assert [each for each in sorted(rooms) if each not in picture.split() and f"{each}," not in picture] == []
