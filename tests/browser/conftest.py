"""A headless Chromium, and pages that fail their test if they complain or ask another host."""

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser.required import missing

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
SCREENSHOTS = Path(os.environ.get("OUT") or Path(__file__).parents[2] / "build" / "screenshots")


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a skipped test that says what to install."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing('Playwright is not installed: pip install "dptext[browser]"')
    if CHROMIUM is None:
        missing("no Chromium on PATH: install the package chromium of the system (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        result = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(ARGUMENTS))
        yield result
        result.close()


@pytest.fixture
def open_page(browser):
    """``open_page(address, **context)``: a page of its own; the test fails on what it complains about.

    A page of the disk (file:) may read the disk, any other its own origin alone.
    """
    contexts, complaints = [], []

    def watched(page, origin):
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: _note_failed(request, complaints))
        page.on("request", lambda request: _note_foreign(request.url, origin, complaints))

    def opened(address, **options):
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        watched(page, _origin(address))
        page.goto(address)
        return page

    yield opened
    for entry in contexts:
        entry.close()
    assert complaints == []


def _note_failed(request, complaints):
    if request.failure != "net::ERR_ABORTED":  # the page itself drops what it asked before
        complaints.append(f"{request.failure}: {request.url}")


def _note_foreign(address, origin, complaints):
    if not address.startswith(("data:", "blob:", "about:")) and _origin(address) != origin:
        complaints.append(f"asked another host: {address}")


def _origin(address):
    result = urlsplit(address)
    return result.scheme, result.netloc


@pytest.fixture(scope="session")
def picture():
    """``picture(page, name)``: a screenshot of the whole page, to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)

    def take(page, name):
        page.screenshot(path=str(SCREENSHOTS / f"{name}.png"), full_page=True)

    return take
