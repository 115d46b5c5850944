"""The playground as a whole, on the vectors and the sample that come with it."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from dptext.errors import DptextError
from dptext.methods.preview import NOTE
from dptext.playground.model import MOST_CHARACTERS, SETTINGS, DroppedError, Playground

SECRET = "Zxqvy"
CHOICES = [(way, choice) for way, entry in SETTINGS.items() for choice in entry.choices]


@pytest.fixture(scope="module")
def playground():
    return Playground()


@pytest.mark.parametrize(("way", "choice"), CHOICES)
@pytest.mark.parametrize("end", [0, 1])
def test_every_way_works_at_both_ends_of_its_slider(playground, way, choice, end):
    text = playground.samples[0][1]
    result = playground.show(way, text, SETTINGS[way].epsilons[end], choice, draws=2)
    assert (result.way, result.epsilon, len(result.draws)) == (way, SETTINGS[way].epsilons[end], 2)
    assert result.note.startswith(NOTE) and 0 <= result.neighbours.overlap <= 1
    assert 0 < result.attacker.blind - 0.05 <= result.attacker.right <= 1 or result.attacker.blind < 0.05
    assert json.loads(json.dumps(result.as_json(), allow_nan=False))["promise"] == result.promise


@pytest.mark.parametrize(
    "text",
    [
        "!!!",
        "\x00\x07\x1b[31m",
        "<script>alert(1)</script>",
        "東京は 12 です 🎉",
        "مرحبا بالعالم",
        "x" * MOST_CHARACTERS,
        "a b " * (MOST_CHARACTERS // 4),
        "don't l'ami me@x.org @you http://a.b 12",
        "  x\n\n y ",
        "\u202etest\u0301" * 20,
    ],
    ids=range(10),
)
@pytest.mark.parametrize("way", SETTINGS)
def test_any_text_is_shown_as_it_is(playground, way, text):
    result = playground.show(way, text, 4.0, draws=1)
    assert "".join(piece.text for piece in result.pieces) == text
    playground.show(way, "other text", 4.0, neighbour=text, draws=1)


def test_a_long_computation_stops_when_it_is_not_wanted_any_more(playground):
    answers = iter([True] * 3 + [False])  # the fourth word is not computed
    with pytest.raises(DroppedError):
        playground.show("words", "tea and milk with sugar or honey", 4.0, "Madlib", is_wanted=lambda: next(answers))
    assert playground.show("words", "tea", 4.0, "Madlib").pieces


@pytest.mark.parametrize(
    "change",
    [
        {"text": ""},
        {"text": " \n"},
        {"text": SECRET * MOST_CHARACTERS},
        {"text": SECRET + "\ud800"},
        {"text": [SECRET]},
        {"neighbour": ""},
        {"neighbour": SECRET * MOST_CHARACTERS},
        {"way": "letters"},
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
def test_what_cannot_be_shown_is_refused_without_the_text(playground, change):
    values = {"way": "words", "text": f"{SECRET} text", "epsilon": 4.0} | change
    with pytest.raises(DptextError) as error:
        playground.show(**values)
    assert SECRET not in str(error.value)


def test_only_the_last_text_is_kept(playground):
    for way in SETTINGS:
        playground.show(way, f"{SECRET} {way}", 4.0)
        playground.show(way, "something else", 4.0)
    assert SECRET not in repr(_held(playground))


def _held(thing, seen=None):
    """All strings that an object leads to, vocabulary and pools aside."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, (type, int, float, bytes)):
        return []
    seen[id(thing)] = thing  # held, so that no other object gets its id
    if isinstance(thing, str):
        return [thing]
    if isinstance(thing, dict):
        return [entry for pair in thing.items() for part in pair for entry in _held(part, seen)]
    if isinstance(thing, (list, tuple, set, frozenset)):
        return [entry for part in thing for entry in _held(part, seen)]
    if type(thing).__module__.startswith("dptext"):
        result = vars(thing) if hasattr(thing, "__dict__") else {}
        slots = {name: getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())}
        return _held(dict(result), seen) + _held(slots, seen)
    return []


def test_what_is_held_is_found(playground):
    """The positive control of the test above."""
    playground.show("words", f"{SECRET} stays", 4.0)
    assert SECRET in repr(_held(playground))


def test_samples_can_be_shown(playground):
    assert len(playground.samples) >= 5
    assert all(title and 0 < len(text) <= MOST_CHARACTERS for title, text in playground.samples)


def test_what_is_shown_is_frozen(playground):
    result = playground.show("words", "a cat", 4.0)
    assert replace(result, epsilon=5.0).epsilon == 5.0
    with pytest.raises(AttributeError):
        result.epsilon = 5.0


def test_dptext_does_not_import_the_playground():
    code = "import dptext, sys; sys.exit(any(name.startswith('dptext.playground') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
