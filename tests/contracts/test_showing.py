"""What everything that a console or a notebook shows must keep: short, well formed, and without anybody's text."""

import re
from html.parser import HTMLParser

import pytest

import dptext
from contracts.displayed import TAG, everything
from dptext.display import ReprMixin
from secrecy import MARKER

ALLOWED = {"table", "caption", "tbody", "tr", "th", "td", "div", "h4", "p", "ul", "li"}
BY_SCIKIT_LEARN = {"NoisyClassifier", "PrivateEncoder", "SentencePrivatizer", "WordPrivatizer"}
"""Estimators show themselves as scikit-learn does: by their constructor, in lines of 80 characters."""
ITSELF = {"ApproxDP", "MetricDP", "PureDP", "ZCDP", "PersonalBudgets", "Document", "TextFiles"}
"""A line of Python that makes the same again, or nothing at all, and no table."""
TAKES_A_MODEL = {"ChatEndpoint", "CompletionEndpoint", "LocalModel", "SentenceEncoder"}


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    return list(everything(tmp_path_factory.mktemp("shown")))


class _Tags(HTMLParser):
    """Raises where tags are not closed in their order; nothing but `ALLOWED` may be there."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        assert all(name in ("style", "class", "scope") for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def is_harmless(html):
    tags = _Tags()
    tags.feed(html)
    tags.close()
    assert not tags.open
    assert not re.search(r"url\(|color|background|https?:", re.sub(r">[^<]*<", "><", html))
    return True


def test_lines_are_short_and_tables_well_formed_and_neither_shows_a_private_text(instance):
    for entry in instance:
        name, line = type(entry).__name__, repr(entry)
        assert "\n" not in line and len(line) < 120, name
        assert MARKER not in line and " at 0x" not in line, name
        if hasattr(entry, "_repr_html_"):
            html = entry._repr_html_()
            assert is_harmless(html) and MARKER not in html, name
        else:
            assert name in ITSELF | {"Replacements"}
    tables = [entry._repr_html_() for entry in instance if isinstance(entry, ReprMixin)]
    assert sum("&lt;script&gt;" in table for table in tables) >= 5
    assert not any(TAG in table for table in tables)


def test_everything_public_is_among_those(instance):
    seen = {entry.__name__ for one in instance for entry in type(one).__mro__}
    kinds = {name for name in dir(dptext) if name[0].isupper() and isinstance(getattr(dptext, name), type)}
    kinds -= BY_SCIKIT_LEARN | TAKES_A_MODEL | {"DptextError"}
    assert kinds - seen - ITSELF == set()


def test_a_count_of_private_rows_stands_nowhere():
    """The number of documents is in the output anyway; how many words they had, or were unknown, is not."""
    from contracts.cases import VECTORS

    one, other = (
        dptext.privatize([text], dptext.TEM(VECTORS, epsilon=3.0, document_epsilon=40.0, max_words=9), seed=1)
        for text in ("tea", "tea cup tax law unheard of")
    )
    assert one.tally != other.tally
    assert repr(one) == repr(other) and one._repr_html_() == other._repr_html_()


def test_a_table_that_does_not_escape_is_rejected():
    """Known-broken representations."""
    for table in (
        f"<table><tr><td>{TAG}</td></tr></table>",
        "<table><tr><td>1</tr></table>",
        '<table style="background: url(x)"></table>',
    ):
        with pytest.raises(AssertionError):
            is_harmless(table)
