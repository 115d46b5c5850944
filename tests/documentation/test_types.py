"""The Python examples of the README and of the documentation are typed, as users check their own code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dptext
from documentation.pages import PAGES, ROOT, blocks

SOURCE = Path(dptext.__file__).parent
README = ROOT / "README.md"
FURTHER = """
def first_words(release: dptext.Release) -> list[str]:
    texts: list[str] = release.texts
    return [text.split()[0] for text in release.texts] + texts


def budgets(distribution: dptext.TextDistribution, model: dptext.Synthesizer, words: dptext.TEM) -> list[float]:
    return [distribution.epsilon, distribution.delta, model.epsilon, model.delta, words.epsilon]
"""
IN_PAGES = ("--allow-untyped-defs", "--allow-untyped-calls", "--disable-error-code=union-attr")
"""Pages define short functions without types, and know that a result is not None."""


def script(page):
    """The Python code of a page."""
    lines = []
    for block in blocks(page):
        if block.language in ("pycon", "python") and block.runs:
            typed = [line[4:] for line in block.text.splitlines() if line.startswith((">>>", "..."))]
            lines += typed or block.text.splitlines()
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("pages", [[README], PAGES], ids=["README", "docs"])
def test_the_examples_are_typed(pages, tmp_path):
    pytest.importorskip("mypy")
    assert (SOURCE / "py.typed").exists()
    written = {page: script(page) for page in pages}
    if pages == [README]:
        written[README] += FURTHER
    files = []
    for page, text in written.items():
        if text.strip():
            files.append(tmp_path / f"{page.relative_to(ROOT).with_suffix('').as_posix().replace('/', '_')}.py")
            files[-1].write_text(text, encoding="utf-8")
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(() if pages == [README] else IN_PAGES), *map(str, files)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
