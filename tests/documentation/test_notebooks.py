"""The notebooks run from top to bottom, on bundled data alone, and say what their committed outputs say.

To write the outputs again: ``jupyter execute --inplace docs/notebooks/*.ipynb``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from documentation.pages import DOCS

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
VARIES = "varies"
"""The tag of a cell whose output may differ: it draws without a seed, or measures time."""


def _text(cell: dict[str, Any]) -> str:
    """What a cell printed and returned; of pictures that there is one."""
    lines = []
    for output in cell["outputs"]:
        assert output["output_type"] != "error", output.get("ename")
        if "image/png" in output.get("data", {}):
            lines.append("(a picture)\n")
        else:
            lines.append("".join(output.get("text", output.get("data", {}).get("text/plain", ""))))
    return "".join(lines)


def _code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _read(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def test_notebooks_are_committed_with_their_outputs_and_without_paths():
    assert [path.stem for path in NOTEBOOKS] == ["private_vectors", "shared_embeddings", "words_and_synthetic_corpora"]
    for path in NOTEBOOKS:
        notebook = _read(path)
        cells = _code(notebook)
        assert all(cell["outputs"] for cell in cells if "print(" in "".join(cell["source"]))
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        assert not re.search(r"/(?:home|root|tmp|work|Users)/", "".join(map(_text, cells)))
        if "seed=1" in path.read_text(encoding="utf-8"):
            assert "A seed voids the guarantee" in "".join(notebook["cells"][0]["source"])


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of Jupyter's own
def test_a_notebook_runs_and_says_what_its_outputs_say(path: Path, tmp_path: Path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    committed = _read(path)
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    for before, after in zip(_code(committed), _code(notebook), strict=True):
        if VARIES not in before["metadata"].get("tags", []):
            assert _text(after) == _text(before), f"{path.name}, cell {before['execution_count']}"
