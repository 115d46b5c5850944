"""A headless Chromium, and pages that fail their test if they complain or ask another host."""

import os
import shutil
from urllib.parse import urlsplit

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--no-first-run"]  # fmt: skip


def missing(reason):
    """Skip a test, or fail it if the tests of the browser are required (`make browser-test`)."""
    if os.environ.get("DPTEXT_BROWSER") == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


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
        result = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        yield result
        result.close()


@pytest.fixture
def open_page(browser):
    """``open_page(address, **context)``: a page of its own; the test fails on its errors and on foreign requests.

    A page of the disk (file:) may read the disk, any other its own origin only.
    """
    contexts, complaints = [], []

    def opened(address, **options):
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        page, origin = context.new_page(), _origin(address)

        def note_message(message):
            if message.type in ("error", "warning"):
                complaints.append(message.text)

        def note_failure(request):
            if request.failure != "net::ERR_ABORTED":  # the page itself drops its earlier requests
                complaints.append(f"{request.failure}: {request.url}")

        def note_request(request):
            if not request.url.startswith(("data:", "blob:", "about:")) and _origin(request.url) != origin:
                complaints.append(f"request to another host: {request.url}")

        page.on("console", note_message)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", note_failure)
        page.on("request", note_request)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _origin(address):
    parts = urlsplit(address)
    return parts.scheme, parts.netloc
