"""The playground as a whole, with the vectors and the sample of its extra."""

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from dptext.errors import DptextError
from dptext.playground.server import MAX_CHARACTERS, PREVIEWERS, Playground

SECRET = "Zxqvy"
CHOICES = [(method, choice) for method, entry in PREVIEWERS.items() for choice in entry.choices]


@pytest.fixture(scope="module")
def playground():
    return Playground()


@pytest.mark.parametrize(("method", "choice"), CHOICES)
@pytest.mark.parametrize("end", [0, 1])
def test_every_method_works_at_both_ends_of_its_slider(playground, method, choice, end):
    text = playground.samples[0][1]
    result = playground.show(method, text, PREVIEWERS[method].epsilons[end], choice, draws=2)
    assert (result.method, result.epsilon, len(result.draws)) == (method, PREVIEWERS[method].epsilons[end], 2)
    assert 0 <= result.neighbours.overlap <= 1
    assert result.attack.chance - 0.05 <= result.attack.success <= 1
    assert json.loads(json.dumps(asdict(result), allow_nan=False))["guarantee"] == result.guarantee


@pytest.mark.parametrize(
    "text",
    [
        "!!!",
        "\x00\x07\x1b[31m",
        "<script>alert(1)</script>",
        "東京は 12 です 🎉",
        "مرحبا بالعالم",
        "x" * MAX_CHARACTERS,
        "a b " * (MAX_CHARACTERS // 4),
        "don't l'ami me@x.org @you http://a.b 12",
        "  x\n\n y ",
        "\u202etest\u0301" * 20,
    ],
    ids=range(10),
)
@pytest.mark.parametrize("method", PREVIEWERS)
def test_any_text_is_shown_as_it_is(playground, method, text):
    result = playground.show(method, text, 4.0, draws=1)
    assert "".join(piece.text for piece in result.pieces) == text
    playground.show(method, "other text", 4.0, neighbour=text, draws=1)


@pytest.mark.parametrize(
    "change",
    [
        {"text": ""},
        {"text": " \n"},
        {"text": SECRET * MAX_CHARACTERS},
        {"text": SECRET + "\ud800"},
        {"text": [SECRET]},
        {"neighbour": ""},
        {"neighbour": SECRET * MAX_CHARACTERS},
        {"method": "letters"},
        {"choice": "Synthesizer"},
        {"epsilon": 0.0},
        {"epsilon": 1e9},
        {"epsilon": float("nan")},
        {"epsilon": "many"},
        {"draws": 0},
        {"draws": 10**6},
    ],
    ids=range(15),
)
def test_invalid_arguments_raise_without_the_text(playground, change):
    values = {"method": "words", "text": f"{SECRET} text", "epsilon": 4.0} | change
    with pytest.raises(DptextError) as error:
        playground.show(**values)
    assert SECRET not in str(error.value)


def test_no_text_is_kept(playground):
    for method in PREVIEWERS:
        playground.show(method, f"{SECRET} {method}", 4.0)
    assert SECRET not in repr(_strings(playground))


def _strings(thing, seen=None):
    """All strings that an object leads to, vocabulary and pools aside."""
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
        result = vars(thing) if hasattr(thing, "__dict__") else {}
        slots = {name: getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())}
        return _strings(dict(result), seen) + _strings(slots, seen)
    return []


def test_kept_strings_are_found(playground):
    """The positive control of the test above."""
    playground.secret = SECRET
    assert SECRET in repr(_strings(playground))
    del playground.secret


def test_samples_can_be_shown(playground):
    assert len(playground.samples) >= 5
    assert all(title and 0 < len(text) <= MAX_CHARACTERS for title, text in playground.samples)


def test_a_preview_is_frozen(playground):
    result = playground.show("words", "a cat", 4.0)
    assert replace(result, epsilon=5.0).epsilon == 5.0
    with pytest.raises(AttributeError):
        result.epsilon = 5.0


def test_dptext_does_not_import_the_playground():
    code = "import dptext, sys; sys.exit(any(name.startswith('dptext.playground') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
