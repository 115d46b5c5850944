"""The built site: every link and anchor, a page for each public name and option, nothing loaded from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

import dptext
from documentation.pages import ROOT
from documentation.test_links import PROJECT, script

pytestmark = pytest.mark.slow
pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")

VERSION = PROJECT["project"]["version"]
LOADS = ("script", "img", "source", "iframe", "video", "audio", "embed")
"""Elements that load their ``src``."""


class Html(HTMLParser):
    """What a page links, loads and can be linked at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs) -> None:
        fields = {name: value or "" for name, value in attrs}
        self.anchors |= {fields[name] for name in ("id", "name") if name in fields}
        if tag == "a" and "href" in fields:
            self.links.append(fields["href"])
        if tag == "link" and fields.get("rel") not in ("canonical", "prev", "next", "alternate", "edit"):
            self.loads.append(fields["href"])
        if tag in LOADS and "src" in fields:
            self.loads.append(fields["src"])
        if "srcset" in fields:
            self.loads += [part.split()[0] for part in fields["srcset"].split(",")]


@cache
def read(path: Path) -> Html:
    return Html(path)


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """What `make docs` built, where ``DPTEXT_SITE`` names it; else built once for all processes of the tests."""
    if "DPTEXT_SITE" in os.environ:
        return Path(os.environ["DPTEXT_SITE"])
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with FileLock(f"{folder}.lock"):
        if not (folder / "index.html").exists():
            built = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
                cwd=ROOT,
                env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"},
                capture_output=True,
                text=True,
            )
            assert built.returncode == 0, "".join(x for x in built.stderr.splitlines(True) if not x.startswith("INFO"))
    return folder / VERSION


@pytest.fixture(scope="session")
def pages(site) -> list[Html]:
    # the page for missing addresses is for a server
    return [read(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"]


def target(page: Html, link: str) -> tuple[Path, str]:
    parts = urlsplit(link)
    path = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    return path / "index.html" if path.is_dir() else path, unquote(parts.fragment)


def test_every_link_leads_to_a_page_and_to_an_anchor_on_it(pages) -> None:
    dead, followed = [], 0
    for page in pages:
        for link in page.links:
            if urlsplit(link).scheme:
                continue
            path, anchor = target(page, link)
            followed += 1
            if not path.is_file() or (anchor and path.suffix == ".html" and anchor not in read(path).anchors):
                dead.append(f"{page.path.name}: {link}")
    assert sorted(set(dead)) == []
    assert followed > 5000


def test_nothing_is_loaded_from_outside(pages, site) -> None:
    for page in pages:
        for load in page.loads:
            parts = urlsplit(load)
            assert parts.scheme in ("", "data"), f"{page.path.name} loads {load}"
            assert parts.netloc == "", f"{page.path.name} loads {load}"
            assert parts.scheme or target(page, load)[0].is_file(), f"{page.path.name} lacks {load}"
        text = page.path.read_text(encoding="utf-8")
        assert 'class="mermaid"' not in text  # drawn by a script from outside
        assert 'data-md-component="source"' not in text  # asks the repository's host for figures
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")) == [], (
            sheet.name
        )


def test_every_public_name_has_a_page_with_its_anchor(site) -> None:
    for name in dptext._HOME:
        assert f"dptext.{name}" in read(site / "reference" / f"{name}.html").anchors
    listed = list(script("reference").names())
    assert {entry.path for entry in listed} > {f"dptext.{name}" for name in dptext._HOME}
    for entry in listed:
        assert entry.path in read((site / entry.page).with_suffix(".html")).anchors
