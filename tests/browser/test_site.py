"""The documentation site that `make docs` built, as its readers open it: from a disk and from a server."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from browser.conftest import missing

SITE = Path(__file__).parents[2] / "site"
BUILT = sorted(SITE.glob("*/index.html"), key=lambda page: page.stat().st_mtime)[-1:]
FOLDER = BUILT[0].parent if BUILT else SITE
PAGES = (
    sorted(str(entry.relative_to(FOLDER)) for entry in FOLDER.rglob("*.html") if entry.name != "404.html")
    if BUILT
    else []
)
TYPICAL = ("index.html", "start/words.html", "mechanisms/tem.html", "understand/epsilon.html", "papers/index.html")


@pytest.fixture(scope="module", autouse=True)
def built():
    if not BUILT:
        missing("the site is not built: run make docs")


@pytest.fixture(scope="module")
def served():
    """The address of the site on a server."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{FOLDER.name}/"
        server.shutdown()


@pytest.fixture(params=["file", "http"])
def root(request, served):
    return served if request.param == "http" else f"{FOLDER.as_uri()}/"


CUT_OFF = """() => [...document.querySelectorAll(".md-content *")].filter(element => {
  const { width, right } = element.getBoundingClientRect()
  if (!width || right <= innerWidth + 1) return false
  for (let box = element.parentElement; box; box = box.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false
  return true
}).map(element => element.outerHTML.slice(0, 80))"""
"""The elements that no scrolling reaches on a narrow screen."""


def test_no_page_scrolls_sideways_or_is_cut_off_on_a_telephone(open_page):
    root = f"{FOLDER.as_uri()}/"
    page = open_page(root + "index.html", viewport={"width": 390, "height": 800}, color_scheme="light")
    for entry in PAGES:
        assert _fits(page, root + entry, "default"), entry
        assert page.evaluate(CUT_OFF) == [], entry


def test_the_first_screen_has_a_logo_six_tabs_and_the_picture(open_page, root):
    page = open_page(root + "index.html")
    assert page.locator(".md-tabs__link").all_inner_texts() == [
        "Start", "How-to", "Understand", "Mechanisms", "Papers", "Reference"
    ]  # fmt: skip
    for picture in page.locator(".md-header img").first, page.locator(".md-content img").first:
        assert picture.evaluate("image => image.naturalWidth") > 0
        assert picture.bounding_box()["y"] < 900
    page.goto(root + "mechanisms/tem.html")
    page.locator(".md-header .md-logo").click()
    page.wait_for_url("**/index.html")
    assert page.locator("h1").inner_text().startswith("dptext: ")


def _fits(page, address, scheme):
    page.goto(address)
    assert page.locator("h1").first.text_content().strip(), address
    assert page.evaluate("document.body.dataset.mdColorScheme") == scheme, address
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "scheme", "named"), [(360, "light", "default"), (1440, "dark", "slate")])
def test_pages_open_from_a_server(open_page, served, width, scheme, named):
    page = open_page(served + "index.html", viewport={"width": width, "height": 800}, color_scheme=scheme)
    for entry in TYPICAL:
        assert _fits(page, served + entry, named), entry


def test_search_finds_a_mechanism(open_page, root):
    page = open_page(root + "index.html")
    links = page.locator(".md-search-result__link")
    field = page.locator("input.md-search__input")
    field.click()
    for _ in range(20):  # words that are typed before the index is read find nothing
        field.fill("")
        field.press_sequentially("TEM")
        page.wait_for_timeout(500)
        if links.count():
            break
    result = links.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert any("tem" in entry.lower() for entry in result)
