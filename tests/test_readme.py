"""What the README tells a new user to type works as it stands (its Python examples run as doctests)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dptext

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


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
    assert "verified, its SHA-256" in done.stdout
    statement = dptext.PrivacyStatement.from_json((tmp_path / "private.jsonl.privacy.json").read_text())
    assert "the column 'stars', as it was" in statement.exposed
    assert "Maria" not in (tmp_path / "private.jsonl").read_text()


def test_every_command_and_target_that_the_readme_names_exists():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for document in re.findall(r"\]\(([\w/.]+)\)", README):
        assert (Path(__file__).parent.parent / document).exists(), document
