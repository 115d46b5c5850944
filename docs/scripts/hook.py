"""Generated pages of the site: the hook of mkdocs.

The landing page (README.md), the pages of the reference and of the commands, files of the repository, links to all of
them, a folder a version.
"""

from __future__ import annotations

import json
import re
import tomllib
from html import escape
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

import commands
import reference
import repository
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = str(PROJECT["version"])
_GENERATED = {
    "Python": reference.nav,
    "Commands": commands.nav,
    "Experiments": repository.experiments,
    "Project": repository.nav,
}
_building = False


def on_startup(command: str, **_: Any) -> None:
    """A built site stands in the folder of its version; one that is served does not."""
    global _building
    _building = command == "build"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The folder of this version, and the generated parts of the table of contents."""
    config.nav = _filled(config.nav)
    if _building:
        config.site_dir = str(Path(config.site_dir) / VERSION)
        config.site_url = f"{config.site_url}{VERSION}/"
    config.extra["version_name"] = VERSION
    return config


def _filled(nav: Any) -> Any:
    """The table of contents, with ``Name: generated`` filled in."""
    if isinstance(nav, list):
        return [_filled(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: _GENERATED[title]() if below == "generated" else _filled(below) for title, below in nav.items()}
    return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    fields: dict[str, str | Path] = {name.page: reference.content(name) for name in reference.names()}
    fields |= commands.pages()
    fields["index.md"] = f"---\nhide: [navigation, toc]\n---\n\n{(ROOT / 'README.md').read_text(encoding='utf-8')}"
    fields |= repository.beside_docs()
    for place, content in fields.items():
        if isinstance(content, Path):
            files.append(File.generated(config, place, abs_src_path=str(content)))
        else:
            files.append(File.generated(config, place, content=content))
    return files


_BOOSTS = {"howto/": 3, "start/": 6, "understand/": 3, "index.md": 2, "notebooks/": 0.2, "repository/": 0.001}
"""What stands first in a search: pages that say what to do, before long reports of experiments, whose titles count too.

A word of a title counts 1,000 times as much as one of the text."""


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files of the repository lead to their pages; the search ranks a page by its folder."""
    boost = next((entry for start, entry in _BOOSTS.items() if page.file.src_uri.startswith(start)), 1)
    page.meta.setdefault("search", {"boost": boost})
    return repository.to_site_links(page.file.src_uri, markdown)


_TAG = re.compile(r"<code>([^<>]+)</code>|<(/?)(a|pre|h[1-6]|autoref)\b[^>]*>")
_TARGETS = reference.targets()
_INDEX = "reference/names.md"
"""The page where functions too are links: elsewhere `report` may be a command."""


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Public names and pages of the documentation, where they stand as code, are links."""
    depth, page_folder = 0, dirname(page.file.url)

    def linked(tag: re.Match[str]) -> str:
        nonlocal depth
        if tag[1] is None:
            depth += -1 if tag[2] else 1
            return tag[0]
        text = tag[1].removesuffix("()")
        target = _TARGETS.get(f"dptext.{text}" if page.file.src_uri == _INDEX else text, _TARGETS.get(text))
        if target is None and text.startswith(repository.DOCS):
            target = text.removeprefix(repository.DOCS)
        if depth or target is None:
            return tag[0]
        place, mark, anchor = target.partition("#")
        file = files.get_file_from_path(place)
        if file is None or file is page.file:
            return tag[0]
        return f'<a href="{escape(relpath(file.url, page_folder or "."))}{mark}{anchor}">{tag[0]}</a>'

    return _TAG.sub(linked, html)


def on_post_build(config: MkDocsConfig) -> None:
    """Say which versions there are."""
    if _building:
        write_versions(Path(config.site_dir).parent)


def write_versions(folder: Path) -> None:
    """List the versions, and redirect to the newest."""
    versions = [path.parent.name for path in folder.glob("*/index.html")]
    versions = sorted(versions, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    text = json.dumps(versions)
    (folder / "versions.json").write_text(f"{text}\n", encoding="utf-8")
    # a page opened from a disk may run a script of its folder, but not read a file
    (folder / "versions.js").write_text(f"window.dptextVersions = {text};\n", encoding="utf-8")
    newest = f"{versions[0]}/index.html"
    (folder / "index.html").write_text(
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>dptext</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}">\n<p><a href="{newest}">dptext {versions[0]}</a></p>\n',
        encoding="utf-8",
    )
