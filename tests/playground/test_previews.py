"""Previews of whole texts, their numbers compared with exact values, and all methods with the bundled data."""

import json
import math
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

from dptext import BankRewriter, Document, MeanOfWords, Synthesizer
from dptext.errors import DptextError
from dptext.methods.bank import BankPreviewer
from dptext.methods.synthesis import CorpusPreviewer
from dptext.noise.gaussian_sums import CELL
from dptext.playground.server import MAX_CHARACTERS, PREVIEWERS, Playground
from dptext.privacy.gaussian import gaussian_delta

TEXT = "the cat and the dog"
SECRET = "Zxqvy"


@pytest.fixture(scope="module")
def previewers(vectors, samples):
    kinds = (BankPreviewer, CorpusPreviewer)
    return {kind.key: kind(vectors, samples) for kind in kinds}


# -- each method ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_numbers_of_sentences_are_those_of_the_rewriter(previewers, samples, epsilon):
    previewer = previewers["sentences"]
    result = previewer.show(TEXT, epsilon)
    rewriter = BankRewriter(previewer._bank, epsilon=epsilon, unit="document")
    assert result.neighbours.second == "tax law and a fee"
    one, other = rewriter.distributions([TEXT, result.neighbours.second])
    rows = {text: row for row, text in enumerate(previewer._bank.texts)}
    assert all(chance == one[rows[name]] for name, chance in result.pieces[0].replacements)
    assert result.pieces[0].replacements[0][1] == one.max() and result.pieces[0].stays == 0.0
    assert result.neighbours.overlap == pytest.approx(1 - np.abs(one - other).sum() / 2, abs=1e-12)
    assert result.neighbours.overlap >= 1 - math.tanh(epsilon / 2) - 1e-12
    known = samples.candidates(TEXT)
    assert result.attack.success == pytest.approx(rewriter.relinking(len(known), known), abs=1e-12)
    assert result.guarantee and set(result.draws) <= set(samples.public)
    assert previewer.show("cat dog", epsilon).pieces[0].stays == rewriter.probabilities("cat dog").max()


def test_membership_in_a_corpus_is_the_total_variation_of_the_release(previewers, vectors, samples):
    """Compared with a run of the synthesizer itself on one person more."""
    previewer = previewers["synthetic"]
    result = previewer.show(TEXT, 2.0)
    synthesizer = Synthesizer(epsilon=2.0, delta=1e-6, features=MeanOfWords(vectors), cache=False)
    plan = synthesizer.plan(samples.public)
    people = [Document(text, user=f"user {number}") for number, text in enumerate(samples.people)]
    moved = plan.total_of([*people, Document(TEXT, user="one more")]) - plan.total_of(people)
    length = np.linalg.norm(moved.astype(float)) * CELL
    assert length == pytest.approx(1.0, abs=1e-5)
    distance = gaussian_delta(plan.terms.budget.sigma, epsilon=0.0, sensitivity=float(length))
    assert result.neighbours.overlap == pytest.approx(1 - distance, abs=1e-9)
    assert result.attack.success == pytest.approx((1 + distance) / 2, abs=1e-9) and result.attack.chance == 0.5
    assert result.guarantee.startswith("a person") and set(result.draws) <= set(samples.public)


@pytest.mark.parametrize(("name", "maximum"), [("sentences", 20.0), ("synthetic", 100.0)])
def test_a_larger_epsilon_hides_less(previewers, name, maximum):
    results = [previewers[name].show(TEXT, epsilon) for epsilon in (0.05, 0.25, 0.5, 1.0, 2.0, 4.0, maximum)]
    tiny, *_, huge = results
    assert huge.attack.success > 0.8 and huge.neighbours.overlap < 0.1 and not huge.protects
    assert tiny.attack.success < tiny.attack.chance + 0.05 and tiny.neighbours.overlap > 0.9 and tiny.protects
    successes = [result.attack.success for result in results]
    assert successes == sorted(successes)


# -- all methods, with the bundled vectors and texts ---------------------------------------------------------------


@pytest.fixture(scope="module")
def playground():
    return Playground()


@pytest.mark.parametrize("method", PREVIEWERS)
def test_every_method_works_at_both_ends_of_its_slider(playground, method):
    title, text = playground.samples[0]
    assert title and len(playground.samples) >= 5
    for epsilon in PREVIEWERS[method].epsilons[:2]:
        result = playground.show(method, text, epsilon)
        assert (result.method, result.epsilon, len(result.draws)) == (method, epsilon, 3)
        assert 0 <= result.neighbours.overlap <= 1
        assert result.attack.chance - 0.05 <= result.attack.success <= 1
        json.dumps(asdict(result), allow_nan=False)


@pytest.mark.parametrize("method", PREVIEWERS)
def test_any_text_is_shown_unchanged_and_not_kept(playground, method):
    for text in (
        "\x00\x07\x1b[31m <script>alert(1)</script>",
        "東京は 12 です 🎉 مرحبا بالعالم",
        "x" * MAX_CHARACTERS,
        "  x\n\n y \u202etest\u0301" * 20,
        f"{SECRET} {method}",
    ):
        result = playground.show(method, text, 4.0)
        assert "".join(piece.text for piece in result.pieces) == text
    assert SECRET not in repr(_strings(playground))
    playground.secret = SECRET  # the positive control
    assert SECRET in repr(_strings(playground))
    del playground.secret


def _strings(thing, seen=None):
    """All strings that an object refers to, apart from other libraries' objects."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, (type, int, float, bytes)):
        return []
    seen[id(thing)] = thing  # kept, so that no other object gets its id
    if isinstance(thing, str):
        return [thing]
    if isinstance(thing, dict):
        return [entry for pair in thing.items() for part in pair for entry in _strings(part, seen)]
    if isinstance(thing, (list, tuple, set, frozenset)):
        return [entry for part in thing for entry in _strings(part, seen)]
    if type(thing).__module__.startswith("dptext"):
        slots = {name: getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())}
        return _strings({**getattr(thing, "__dict__", {})}, seen) + _strings(slots, seen)
    return []


def test_invalid_arguments_are_refused_without_the_text(playground):
    for change in (
        {"text": " \n"},
        {"text": SECRET * MAX_CHARACTERS},
        {"text": SECRET + "\ud800"},
        {"text": [SECRET]},
        {"method": "letters"},
        *({"epsilon": epsilon} for epsilon in (0.0, 1e9, float("nan"), "many")),
    ):
        with pytest.raises(DptextError) as error:
            playground.show(**{"method": "words", "text": f"{SECRET} text", "epsilon": 4.0} | change)
        assert SECRET not in str(error.value), change


def test_dptext_does_not_import_the_playground():
    code = "import dptext, sys; sys.exit(any(name.startswith('dptext.playground') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
