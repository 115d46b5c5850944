"""The doctests of the pages: each page in its own folder, with the output of the demo where a page uses it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from demo_folder import place_demo

collect_ignore = ["scripts"]  # what makes the site, and runs in it only

os.environ["DPTEXT_CACHE"] = "off"  # a test leaves nothing in a home


@pytest.fixture(autouse=True)
def _own_folder(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "dptext-demo" in request.node.path.read_text(encoding="utf-8"):
        place_demo(tmp_path_factory, tmp_path)
