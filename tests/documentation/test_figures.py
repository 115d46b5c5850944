"""The pictures show the numbers of the mechanisms, their alternative texts agree, and every mechanism has a page."""

import importlib.util
import io
import math
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import dptext
from dptext.embeddings.participation import EVERYONE, Participation
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


def test_the_numbers_in_an_alternative_text_are_those_of_the_picture():
    for name, texts in SHOWN.items():
        for text in texts(numbers(name)):
            assert text in alt_texts()[name]


EXACT = {
    "tem": dptext.TEM,
    "santext": dptext.SanText,
    "santext-plus": dptext.SanTextPlus,
    "custext": dptext.CusText,
    "subset-selection": dptext.SubsetSelection,
}


def test_bars_are_the_sums_of_the_probabilities_of_the_mechanism():
    for name in EXACT:
        vectors = module().vectors()
        epsilon, word = 5.0, "monday"
        chances = EXACT[name](vectors, epsilon=epsilon).probabilities(word)
        row = vectors.vocabulary.row(word)
        far = np.linalg.norm(vectors.matrix.astype(np.float64) - vectors.matrix[row], axis=1)
        far[row] = -1.0
        rank = np.empty(len(far), dtype=int)
        rank[np.argsort(far, kind="stable")] = np.arange(len(far))
        bounds = [0, 1, 11, 101, 1_001, 10_001, len(far)]
        expected = [chances[(rank >= low) & (rank < high)].sum() for low, high in pairwise(bounds)]
        number = numbers(name)[f"{word} {epsilon:g}"]
        assert number == pytest.approx(expected, abs=1e-9)
        assert number.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", ["madlib", "mahalanobis", "vickrey"])
def test_bars_of_draws_add_up_to_one_and_larger_epsilons_stay_nearer(name):
    for word in module().WORDS:
        low, middle, high = (numbers(name)[f"{word} {epsilon:g}"] for epsilon in module().EPSILONS)
        assert {entry.sum().round(9) for entry in (low, middle, high)} == {1.0}
        assert low[0] < middle[0] < high[0]


def test_true_epsilons_are_those_of_the_closed_forms():
    visible, lambda_ = numbers("published-protocols"), 100.0
    assert visible["SUE"] == pytest.approx(5.0, rel=1e-6)
    assert visible["OUE"] == pytest.approx(500 * math.log((1 + math.exp(0.01)) / 2), rel=1e-6)
    assert visible["OME"] == pytest.approx(250 * math.log(lambda_**3 - lambda_**2 + lambda_), rel=1e-6)
    assert visible["DPNR"] == 50
    assert visible["DPText"] == math.inf


def test_the_integers_of_the_sampler_are_within_what_is_proved():
    visible = numbers("sampler")
    assert 0 < visible["off"].max() <= visible["theta"]
    assert 4 * visible["theta"] < visible["slack"]


def test_the_truncated_gumbel_loses_more_than_it_prints_where_the_picture_says_so():
    visible = numbers("truncated-gumbel")
    beyond = visible["distance"] > 4.8
    assert (visible["lost"][beyond] > visible["printed"][beyond]).mean() > 0.99
    position = np.searchsorted(visible["distance"], 7.0)
    assert (round(visible["lost"][position], -2), round(visible["printed"][position], -2)) == (8_400, 700)


def test_the_noise_of_skip_gram_is_what_its_plan_says():
    pytest.importorskip("dp_accounting")
    training = Participation(
        noise_multiplier=numbers("skip-gram")["noise_multiplier"], steps=1000, delta=1e-6, rates={EVERYONE: 0.05}
    )
    assert training.guarantee().epsilon == pytest.approx(8.0, abs=0.02)
    plan = dptext.SkipGram(module().vectors(), epsilon=training).plan()
    noise = training.noise_multiplier * math.sqrt(len(plan.rows) * plan.dimension)
    assert numbers("skip-gram")["5,000"][1] == pytest.approx(noise / 0.05 / math.sqrt(1000) / 1_000, rel=0.01)


def test_a_picture_has_the_same_bytes_each_time_and_no_paper():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        module().save("skip-gram", file)
    assert files[0].getvalue() == files[1].getvalue()
    root = ElementTree.fromstring(files[0].getvalue())
    assert root.tag.endswith("svg")
    assert b"<dc:date>" not in files[0].getvalue()


def test_every_mechanism_has_a_page_that_the_index_links_to():
    tables = {PAGES / "index.md", PAGES / "words.md"}
    prose = "\n".join(page.read_text() for page in PAGES.glob("*.md") if page not in tables)
    kinds = {**words.MECHANISMS, **words.PUBLISHED_ONLY, **randomizers.RANDOMIZERS, **randomizers.PUBLISHED_ONLY}
    assert [kind.__name__ for kind in kinds.values() if f"`{kind.__name__}`" not in prose] == []
    linked = {*re.findall(r"\(([a-z-]+\.md)\)", (PAGES / "index.md").read_text()), "index.md"}
    assert linked == {page.name for page in PAGES.glob("*.md")}
