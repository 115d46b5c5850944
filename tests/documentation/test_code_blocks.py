"""Every code block of the documentation runs, or says why it cannot.

``pycon`` blocks are doctests, which pytest collects from the pages (docs/conftest.py gives them a folder). The tests
here run the commands and scripts of a page in their order, in one folder. They compare the lines of a ``text`` block
with the output of the commands if it follows commands, or a sentence that names a command; ``...`` stands for any text.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from demo_folder import place_demo
from documentation.pages import PAGES, ROOT, Block, blocks
from warm import folders_of_programs

RUN = {"console", "python"}
DOCTEST = {"pycon"}
PARSED = {"json": json.loads, "toml": tomllib.loads}
SHOWN = {"text"}

NOT_RUN = 12
"""Maximum number of blocks that do not run. The sentence before each says why no test machine can run it."""


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _is_doctest(block: Block) -> bool:
    return any(line.startswith(">>> ") for line in block.text.splitlines())


def _to_run(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in RUN and block.runs and not _is_doctest(block)]


def _pages_that_run() -> list[object]:
    result = []
    for page in PAGES:
        if not (code := _to_run(page)):
            continue
        marks = [pytest.mark.slow] if any(entry.language == "console" for entry in code) else []
        if any("pyspark" in entry.text for entry in code):
            marks.append(pytest.mark.spark)
        result.append(pytest.param(page, id=_name(page), marks=marks))
    return result


@pytest.mark.parametrize("page", _pages_that_run())
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, tmp_path_factory, monkeypatch) -> None:
    code = _to_run(page)
    on_spark = any("pyspark" in entry.text for entry in code)
    if on_spark:
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java")
    if "dptext-demo" in page.read_text(encoding="utf-8"):
        place_demo(tmp_path_factory, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([folders_of_programs(tmp_path_factory), os.environ["PATH"]]))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))  # pages use the same public texts
    monkeypatch.setenv("COLUMNS", "100")
    if on_spark:  # in a process of its own: a session of Spark is one of its process, and tests have theirs
        _run_scripts([entry for entry in code if entry.language == "python"], tmp_path)
        code = [entry for entry in code if entry.language != "python"]
    names: dict[str, object] = {"__name__": "__main__"}
    shell: list[Block] = []
    text = ""
    for block in [*code, None]:
        if block is not None and block.language == "console":
            shell.append(block)  # blocks in a row are one session: a folder that one enters holds for the next
            continue
        if shell:
            text += _run_console(shell, tmp_path)
            shell = []
        if block is not None:
            # compiled with the page's name and line, so that a traceback names them
            source = "\n" * block.line + block.text
            exec(compile(source, str(block.page), "exec"), names)
    words = " ".join(text.split())
    for number, line in _quoted(page):
        for part in line.split("..."):
            assert " ".join(part.split()) in words, f"{_name(page)}:{number}: no command of the page says this"


def _quoted(page: Path) -> list[tuple[int, str]]:
    """The lines of output that a page shows, with their numbers."""
    result, last = [], None
    for block in blocks(page):
        after_commands = not block.before and last is not None and last.language == "console"
        if block.language in SHOWN and (after_commands or "`dptext " in block.before):
            lines = enumerate(block.text.splitlines(), block.line + 1)
            result += lines
        last = block
    return result


def _run_scripts(scripts: list[Block], folder: Path) -> None:
    (folder / "page.py").write_text("\n".join(script.text for script in scripts), encoding="utf-8")
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "page.py"], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{scripts[0].place}: exit code {done.returncode}\n{done.stderr[-2000:]}"


def _run_console(session: list[Block], folder: Path) -> str:
    if os.name == "nt":
        pytest.skip("the commands are for a POSIX shell")
    script, places = [], []
    for block in session:
        for line, command in _commands(block):
            if command.strip() == "dptext demo":  # place_demo has done it
                continue
            places.append(f"{_name(block.page)}:{line}")
            script += [f"echo {len(places) - 1} >&3", command]
    if not places:
        return ""
    reached = folder.parent / f"{folder.name}.reached"
    done = subprocess.run(
        ["sh", "-e", "-c", f"exec 3>'{reached}'\n" + "\n".join(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        last = places[int(reached.read_text().split()[-1])]
        pytest.fail(f"{last}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}", pytrace=False)
    return f"{done.stdout}\n{done.stderr}\n"


def _commands(block: Block) -> list[tuple[int, str]]:
    """The commands after ``$``, with the lines that a backslash or the prompt ``>`` continues; others are output."""
    result: list[tuple[int, str]] = []
    open_ = False
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            result.append((number, line[2:]))
        elif result and (open_ or line.startswith("> ") or line == ">"):
            position, command = result[-1]
            result[-1] = (position, f"{command}\n{line if open_ else line[2:]}")
        else:
            continue
        open_ = line.endswith("\\")
    return result


def test_every_block_runs_or_is_checked() -> None:
    for block in (block for page in PAGES for block in blocks(page)):
        assert block.language in RUN | DOCTEST | PARSED.keys() | SHOWN, f"{block.place}: a fence of {block.language!r}"
        assert set(block.classes) <= {"not-run"}, f"{block.place}: {block.classes}"
        if not block.runs:
            assert block.language == "console", f"{block.place}: only commands may stand unrun"
            assert block.before.endswith((".", ":")), f"{block.place}: no sentence before it says why it cannot run"
            continue
        assert (block.language in DOCTEST) == _is_doctest(block), f"{block.place}: a prompt is missing or misplaced"
        assert block.language != "console" or _commands(block), f"{block.place}: no command after '$ '"
        if block.language in PARSED:
            PARSED[block.language](block.text)
        assert "+SKIP" not in block.text, f"{block.place}: a line that is skipped"
    unrun = [block.place for page in PAGES for block in blocks(page) if not block.runs]
    assert len(unrun) <= NOT_RUN, unrun
