"""The notebooks as pages: text unchanged, code in a block, committed outputs below it. Nothing is run.

As Markdown they look like all other pages, in light and dark, their links are checked and their words found; and they
load nothing from elsewhere, which the pages that nbconvert makes do. To look at one: ``python docs/scripts/notebooks.py
docs/notebooks/NAME.ipynb``.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def as_page(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook, and its pictures by the names that the page gives them.

    Raises:
        ValueError: an output is neither text nor a picture.
    """
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                parts.append(f"![What this cell draws]({picture})")
            elif text := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
                parts.append(f"```text\n{text}\n```")
            else:
                raise ValueError(f"{name}.ipynb: an output that is neither text nor a picture")
    title, _, rest = parts[0].partition("\n")
    where = f"*A notebook: [{name}.ipynb]({name}.ipynb). Its output stands below each cell.*"
    return "\n\n".join([title, where, rest.strip(), *parts[1:]]) + "\n", pictures


def write_pages() -> None:
    """Put a page for each notebook into the site."""
    import mkdocs_gen_files

    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        page, pictures = as_page(json.loads(path.read_text(encoding="utf-8")), path.stem)
        with mkdocs_gen_files.open(f"notebooks/{path.stem}.md", "w") as stream:
            stream.write(page)
        mkdocs_gen_files.set_edit_path(f"notebooks/{path.stem}.md", f"notebooks/{path.stem}.ipynb")
        for name, picture in pictures.items():
            with mkdocs_gen_files.open(f"notebooks/{name}", "wb") as stream:
                stream.write(picture)


if __name__ == "__main__":
    notebook = Path(sys.argv[1])
    sys.stdout.write(as_page(json.loads(notebook.read_text(encoding="utf-8")), notebook.stem)[0])
elif __name__ == "<run_path>":  # as mkdocs-gen-files runs it
    write_pages()
