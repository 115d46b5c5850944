"""The playground in a browser: results, keyboard, names of controls, typed markup, storage and other origins."""

import http.client
import time
from urllib.parse import urlsplit

import pytest

from dptext.playground.server import PREVIEWERS, Playground
from serving import in_background

MARKUP = "<script>alert(1)</script> <img src=x onerror=alert(2)> cats"


@pytest.fixture(scope="module")
def address(browser):
    from dptext.playground.server import Server

    with in_background(Server(Playground())) as result:
        yield result


@pytest.fixture
def page(open_page, address):
    result = open_page(address)
    wait_for_preview(result)
    return result


def until(page, condition, argument=None):
    """Wait for something in the page, which forbids the evaluation that Playwright's own waiting needs."""
    end = time.monotonic() + 30
    while not page.evaluate(condition, argument):
        assert time.monotonic() < end, f"the page does not come to {condition}"
        time.sleep(0.005)


def wait_for_preview(page):
    """Wait until the page shows what its controls say."""
    until(
        page,
        "state.shown !== null && pending === null && !isStale && state.shown.epsilon === state.epsilon[state.method]",
    )


def slide(page, step):
    page.locator("#slider").evaluate(
        "(each, step) => { each.value = step; each.dispatchEvent(new Event('input', {bubbles: true})); }", str(step)
    )
    wait_for_preview(page)


def choose(page, method):
    page.get_by_role("radio", name=PREVIEWERS[method].title).check()
    until(page, "name => state.shown?.method === name", method)
    wait_for_preview(page)


def write(page, text):
    page.get_by_label("Text", exact=True).fill(text)
    until(page, "text => state.shown?.pieces.map(each => each.text).join('') === text", text)
    wait_for_preview(page)


def first_word(page):
    return page.locator("#pieces .word").first


def test_slider_changes_guarantee_shading_and_draws(page):
    slide(page, 0)
    before = [page.locator(name).inner_text() for name in ("#guarantee", "#draws")] + [first_word(page).inner_text()]
    slide(page, 200)
    after = [page.locator(name).inner_text() for name in ("#guarantee", "#draws")] + [first_word(page).inner_text()]
    # 5 of the words stay with a chance of 99.9% now, and of 0% before
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert page.locator("#epsilon").input_value() == f"{PREVIEWERS['words'].epsilons[1]:g}"
    until(page, "document.getElementById('spoken').textContent.startsWith('Epsilon 20.')")


@pytest.mark.parametrize("method", PREVIEWERS)
def test_a_method_shows_its_results_and_markup_as_text(page, method):
    choose(page, method)
    assert page.locator("#draws li").count() == 3
    assert "Chance level" in page.locator("#attack").inner_text()
    assert page.locator("figure[data-name=attack] svg").is_visible()
    assert page.locator("#problem").is_hidden()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    write(page, MARKUP)
    assert MARKUP in page.locator("#first").inner_text()
    assert (page.locator("#results :is(script, img, b)").count(), dialogs) == (0, [])


def test_keyboard_alone(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "method"
    page.keyboard.press("ArrowDown")
    until(page, "state.shown.method === 'sentences'")
    page.keyboard.press("ArrowUp")
    until(page, "state.shown.method === 'words'")
    tab_to(page, "document.activeElement.id === 'slider'")
    before = page.locator("#epsilon").input_value()
    page.keyboard.press("ArrowRight")
    wait_for_preview(page)
    assert float(page.locator("#epsilon").input_value()) > float(before)
    tab_to(page, "document.activeElement.className.includes('word')")
    first = page.locator("#likeliest h3").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#likeliest h3").inner_text() != first
    assert page.locator("#pieces .word[tabindex='0']").count() == 1
    page.keyboard.press("Tab")  # the words are one stop
    assert page.evaluate("document.activeElement.id") == "again"
    page.evaluate("state.shown = null")
    page.keyboard.press("Enter")
    wait_for_preview(page)


def tab_to(page, condition):
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(condition):
            return
    pytest.fail(f"Tab does not lead to {condition}")


def test_controls_have_distinct_names_that_contain_their_visible_words(page):
    choose(page, "words")
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "checkbox", "radio", "slider", "spinbutton", "textbox", "toolbar", "form", "image"}
    nodes = [node for node in tree if not node.get("ignored") and node["role"]["value"] in roles]
    controls = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes]
    assert {role for role, _ in controls} >= {"button", "radio", "slider", "spinbutton", "textbox", "image"}
    assert all(name.strip() for _, name in controls)
    single = [
        entry for entry in controls if entry[0] != "button" or "stays in" not in entry[1]
    ]  # a word may come twice
    assert len(single) == len(set(single))
    identifiers = page.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(identifiers) == len(set(identifiers))
    # rule label-content-name-mismatch of axe: voice control goes by the visible words
    assert page.evaluate(
        """[...document.querySelectorAll(":is(button, a, summary)[aria-label]")].filter(
            element => !element.getAttribute("aria-label").includes(element.innerText.trim())).length"""
    ) == 0  # fmt: skip
    assert page.get_by_role("button", name="Save as SVG").count() == 1
    assert ", stays in " in first_word(page).text_content()


def test_nothing_is_stored_and_no_text_is_in_an_address(page, address):
    write(page, "zebulon likes rain")
    assert (page.context.cookies(), page.url) == ([], address)
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert page.evaluate("indexedDB.databases().then(found => found.length)") == 0
    addresses = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert addresses and not any("zebulon" in entry for entry in addresses)


def test_another_page_cannot_use_it(browser, address):
    """A page of another origin gets nothing, embeds nothing and sends nothing, though it knows the address."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.route(
            "http://elsewhere.test/", lambda route: route.fulfill(body="<p>Elsewhere</p>", content_type="text/html")
        )
        page.goto("http://elsewhere.test/")
        answered = page.evaluate(
            """async (address) => {
                const sent = {method: "POST", body: JSON.stringify({method: "words", text: "cats", epsilon: 1})};
                const tries = [[address], [address + "show", sent], [address + "show", {...sent, mode: "no-cors"}]];
                const found = await Promise.allSettled(tries.map(each => fetch(...each)));
                return found.map(each => each.status === "fulfilled" ? each.value.status : "refused");
            }""",
            address,
        )
        assert answered == ["refused", "refused", "refused"]
    finally:
        context.close()
    result = urlsplit(address)
    for host, path in (("elsewhere.test", result.path), (result.netloc, "/"), (result.netloc, "/" + "0" * 48 + "/")):
        connection = http.client.HTTPConnection(result.hostname, result.port)
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        assert answer.status in (403, 404) and b"<" not in answer.read()
        connection.close()
