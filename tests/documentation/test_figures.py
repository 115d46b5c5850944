"""Alternative texts of the pictures contain their numbers, and every mechanism has a page."""

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from dptext.representations import registry as randomizers
from dptext.words import registry as words

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "mechanisms"
PICTURE = re.compile(r"!\[([^\]]*)\]\(figures/([a-z-]+)\.svg\)")


@cache
def module():
    spec = importlib.util.spec_from_file_location("figures", ROOT / "docs" / "scripts" / "figures.py")
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


@cache
def numbers(name):
    return module().drawn(name)[1]


def alt_texts():
    return {name: alt for page in sorted(PAGES.glob("*.md")) for alt, name in PICTURE.findall(page.read_text())}


NAMES = sorted(module().FIGURES)


def test_each_picture_is_on_its_own_page_with_an_alternative_text():
    assert sorted(alt_texts()) == NAMES
    for name in NAMES:
        assert f"(figures/{name}.svg)" in (PAGES / f"{name.removesuffix('-plus')}.md").read_text()
        assert 60 <= len(alt_texts()[name]) <= 400
        assert re.search(r"\d", alt_texts()[name])


def share(value):
    return f"{value:.0%}"


SHOWN = {
    "tem": lambda x: [share(x[f"{word} 5"][0]) for word in ("doctor", "monday")] + [share(x["doctor 2"][0])],
    "madlib": lambda x: [share(x["doctor 5"][0]), share(x["doctor 5"][4:].sum()), share(x["doctor 10"][0])],
    "mahalanobis": lambda x: [share(x["doctor 5"][0])],
    "santext": lambda x: [share(x["doctor 5"][0]), share(x["doctor 2"][0])],
    "santext-plus": lambda x: [share(x["doctor 2"][0])],
    "custext": lambda x: [share(x["doctor 5"][0]), share(x["doctor 5"][1])],
    "vickrey": lambda x: [share(x["doctor 10"][0])],
    "subset-selection": lambda x: [
        f"{x['doctor 5'][0]:.1%}", share(x["doctor 5"][2:4].sum()), share(x["doctor 10"][0])
    ],
    "sampler": lambda x: [f"{x['theta']:.1e}".replace("e-06", "e-6")],
    "privunit": lambda x: [f"{x['errors']['PrivUnit'][2]:.0f} at", f"{x['errors']['PrivUnit'][5]:.1f} at"],
    "additive-noise": lambda x: (
        [f"{name} has" if name == "Laplace" else name for name in x["errors"]]
        + [f"{errors[3]:.0f}" for errors in x["errors"].values()]
    ),
    "numbers": lambda x: [f"{x['errors'][name][3]:,.0f}" for name in ("Piecewise", "Hybrid", "PrivUnit")],
    "bits": lambda x: [
        *(f"{x['flips 8'][place]:.2f}"[1:] for place in (-1, 0)),
        *(f"{x[name][2]:.4f}"[1:] for name in ("SymmetricUnary", "OptimizedUnary")),
    ],
    "published-protocols": lambda x: [f"{x['SUE']:g} for SUE", f"{x['OME']:,.0f} for OME", f"{x['DPNR']:g} for DPNR"],
    "private-vectors": lambda x: [
        f"{x['8'][0][1]:.2f} in 2", f"{x['8'][2][1]:.1f} in 32", f"{x['8'][3][1]:.0f} in 128"
    ],
    "synthesis": lambda x: [share(value) for value in x["1"][:3]],
    "sentences": lambda x: [
        share(x["near"][0]), f"is {x['sizes'][0]},", share(x["near"][3]), f"{x['bank']} utterances"
    ],
    "cooccurrence": lambda x: [f"{share(x['4'][1])} with 1,000", f"{share(x['4'][3])} with 10,000"],
    "skip-gram": lambda x: [f"{x['5,000'][0]:.1f} times", f"{x['5,000'][1]:.2f} times"],
    "hiding": lambda x: [
        f"{share(x['no protection'][0][2])} and {share(x['no protection'][0][1])}",
        *(f"{share(row[2])} and {share(row[1])}" for row in x["trained to hide, and noise"][:2]),
        share(x["guess"]),
    ],
}  # fmt: skip
"""Numbers that the alternative text of a picture contains."""


@pytest.mark.slow
def test_the_numbers_in_an_alternative_text_are_those_of_the_picture():
    for name, texts in SHOWN.items():
        for text in texts(numbers(name)):
            assert text in alt_texts()[name]


def test_every_mechanism_has_a_page_that_the_index_links_to():
    tables = {PAGES / "index.md", PAGES / "words.md"}
    prose = "\n".join(page.read_text() for page in PAGES.glob("*.md") if page not in tables)
    kinds = {**words.MECHANISMS, **words.PUBLISHED_ONLY, **randomizers.RANDOMIZERS, **randomizers.PUBLISHED_ONLY}
    assert [kind.__name__ for kind in kinds.values() if f"`{kind.__name__}`" not in prose] == []
    linked = {*re.findall(r"\(([a-z-]+\.md)\)", (PAGES / "index.md").read_text()), "index.md"}
    assert linked == {page.name for page in PAGES.glob("*.md")}
