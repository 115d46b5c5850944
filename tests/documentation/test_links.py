"""Links between files that people read in a clone, and the addresses that the project gives out."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from documentation.pages import DOCS, PAGES, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
URLS = PROJECT["project"]["urls"]
READ = [
    *PAGES,
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "THIRD_PARTY")),
    ROOT / "benchmarks/README.md",
    *sorted((ROOT / "papers").glob("*/README.md")),
]
GENERATED = ("docs/commands/", "docs/mechanisms/figures/", "docs/notebooks/")
"""Folders of the site that stand in no clone."""


def script(name: str):
    """A module of docs/scripts, which is no package."""
    if (loaded := sys.modules.get(f"docs_scripts_{name}")) is not None:
        return loaded
    spec = importlib.util.spec_from_file_location(f"docs_scripts_{name}", DOCS / "scripts" / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_lead_to_existing_files() -> None:
    for page in READ:
        path = page.relative_to(ROOT).as_posix()
        for link, target in script("repository").links(path, page.read_text(encoding="utf-8")):
            assert target.startswith(GENERATED) or (ROOT / target).exists(), f"{path}: {link}"


def test_the_description_of_the_package_has_no_relative_link() -> None:
    description = ProjectMetadata(str(ROOT), PluginManager()).core.readme
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", description)
    assert len(links) == len(re.findall(r"\]\(([^)]+)\)", readme)) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert f"]({URLS['Repository']}/blob/main/docs/start/" in description
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", description)
    assert pictures  # raw files, which a page on another host can show
    assert all(link.startswith("https://raw.githubusercontent.com/") for link in pictures)
    assert re.findall(r"(?:src|href)=", description) == []
