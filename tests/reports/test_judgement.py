"""`judge`: findings about planted copies, users, rows and canaries; none without disclosure; bad input."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dptext
from dptext import Document
from dptext.cli import main
from dptext.errors import DataError, ParameterError
from dptext.reports.judgement import ERROR

FALSE_ALARM = 1e-6
_VOCABULARY = (
    "the man of city war music water year house school river doctor film team bank law price green small old new "
    "first last long good bad road car train ship field stone bread milk paper book story song friend child"
)
WORDS = _VOCABULARY.split()


def write_texts(seed, count, length=14):
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=length)) for _ in range(count)]


PRIVATE, HELD_OUT, OTHER = write_texts(0, 300), write_texts(1, 300), write_texts(2, 300)
COPIED = [*PRIVATE[:30], *OTHER[30:]]
COINS = np.random.default_rng(3).random(60) < 0.5
CANARIES = [f"{text} zebra {number}" for number, text in enumerate(write_texts(4, 60))]


def test_planted_copies_are_found_with_their_share():
    result = dptext.judge(PRIVATE, HELD_OUT, COPIED)
    assert {"copies (verbatim)", "copies (half of the word sequences)", "copies (nearest neighbour)"} <= {*result.found}
    verbatim = result.scores[0]
    assert verbatim.score.value == pytest.approx(0.1)
    assert verbatim.score.low > 0.05
    assert verbatim.detail == "30 of 300 private, 0 of 300 held-out"
    assert result.sentences()[0] == "Private texts were copied into the output."
    assert "No bound on epsilon can be stated" in result.sentences()[-1]


def test_chance_copies_are_not_found():
    """A phrase that many texts share is in the output too, as often for held-out texts as for private ones."""
    usual = [f"{text} thank you for calling us and have a nice day" for text in (*PRIVATE, *HELD_OUT, *OTHER)]
    usual[::5] = ["please call me back as soon as you can"] * len(usual[::5])
    result = dptext.judge(usual[:300], usual[300:600], usual[600:])
    assert result.scores[0].detail == "60 of 300 private, 60 of 300 held-out"
    assert result.found == []
    assert "This is not a guarantee." in result.sentences()[0]


@pytest.mark.statistical
def test_false_findings_are_as_rare_as_stated():
    texts, runs, generator = write_texts(5, 360, length=5), 100, np.random.default_rng(6)
    alarms = 0
    for _ in range(runs):
        order = generator.permutation(360)
        private, held_out, output = ([texts[row] for row in order[start : start + 120]] for start in (0, 120, 240))
        alarms += bool(dptext.judge(private, held_out, output).found)
    assert alarms <= stats.binom.isf(FALSE_ALARM, runs, ERROR)


def test_people_are_counted_if_authors_are_named():
    tables = {
        name: pd.DataFrame({"note": texts, "who": [f"{name}{row // 10}" for row in range(300)]})
        for name, texts in (("private", PRIVATE), ("held out", HELD_OUT))
    }
    result = dptext.judge(*tables.values(), OTHER[:250] + PRIVATE[::6], text="note", user="who")
    assert result.unit == "user"
    assert result.sizes == {
        "private": 300, "held_out": 300, "output": 300, "private_units": 30, "held_out_units": 30,
    }  # fmt: skip
    assert result.scores[0].detail == "30 of 30 private, 0 of 30 held-out"
    assert {"copies (verbatim)", "membership (nearest neighbour)"} <= {*result.found}
    shared = tables["held out"].assign(who="private0")
    with pytest.raises(DataError, match="users have texts in both private and held_out"):
        dptext.judge(tables["private"], shared, OTHER, text="note", user="who")


def test_rows_of_an_anonymised_file_are_linked_and_unrelated_rows_are_not():
    private = [Document(f"{text} on 12 May 2021", user=str(row // 3)) for row, text in enumerate(PRIVATE)]
    masked = [" ".join(word for place, word in enumerate(text.split()) if place % 3) for text in PRIVATE]
    result = dptext.judge(private, None, [f"{text} 12 May 2021" for text in masked], user="author", by_row=True, seed=1)
    assert result.found == ["words that stay", "identifiers that stay", "linkage (cosine)"]
    values = {score.attack: score for score in reversed(result.row_scores)}
    assert values["linkage (cosine)"].score.value == 1.0
    assert values["words that stay"].score.value > 0.6 > values["words that stay"].baseline
    assert values["author re-identification (centroid)"].detail.startswith("100 authors")
    unrelated = dptext.judge(private, None, OTHER, user="author", by_row=True, seed=1)
    assert unrelated.found == []


def test_canaries_bound_epsilon_from_below_and_coins_that_the_tool_did_not_see_give_no_bound():
    table = pd.DataFrame({"text": CANARIES, "inserted": COINS.astype(int)})
    output = [*OTHER, *(text for text, coin in zip(CANARIES, COINS, strict=True) if coin)]
    result = dptext.judge(PRIVATE, HELD_OUT, output, canaries=table, seed=1)
    assert 1 < result.canaries.loss <= result.canaries.strongest
    assert result.found == ["canaries"]
    assert "is at least" in result.sentences()[-1]
    unseen = dptext.judge(PRIVATE, HELD_OUT, OTHER, canaries=table, seed=1)
    assert unseen.canaries.loss == 0
    assert "They refute no epsilon." in unseen.sentences()[-1]
    equal = pd.DataFrame({"text": [f"x{number}" for number in range(60)], "inserted": [1] * 30 + [0] * 30})
    assert dptext.judge(PRIVATE, HELD_OUT, OTHER, canaries=equal, seed=1).canaries.loss == 0  # ties, sorted by coin
    for coins, message in (
        ([2] * 60, "row 1: 'inserted' must be 1 or 0"),
        ([1] * 60, "for some rows and 0 for others"),
    ):
        with pytest.raises(DataError, match=message):
            dptext.judge(PRIVATE, HELD_OUT, OTHER, canaries=table.assign(inserted=coins))


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="held_out is required"):
        dptext.judge(PRIVATE, None, OTHER)
    with pytest.raises(DataError, match="most private texts are in held_out as well"):
        dptext.judge(PRIVATE, PRIVATE, OTHER)
    with pytest.raises(DataError, match="one row per private text"):
        dptext.judge(PRIVATE, None, OTHER[1:], by_row=True)
    with pytest.raises(DataError, match="output must have at least two texts, got 1"):
        dptext.judge(PRIVATE, HELD_OUT, OTHER[:1])
    rows = [Document(text, user=None if row == 4 else str(row)) for row, text in enumerate(PRIVATE)]
    with pytest.raises(DataError, match="private, row 5: the author is missing"):
        dptext.judge(rows, rows, OTHER, user="author")


def test_the_page_escapes_names_and_contains_no_text(tmp_path):
    result = replace(dptext.judge(PRIVATE, HELD_OUT, COPIED), title="<b>a.csv</b>")
    page = result.html()
    assert "<b>a.csv</b>" not in page
    assert "disclosure beyond chance" in page
    assert not any(text in page for text in PRIVATE)
    assert json.loads(json.dumps(result.as_dict()))["sizes"]["output"] == 300


def test_the_command_prints_the_result_and_exits_with_3_after_a_finding(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, texts in (("a", PRIVATE), ("b", HELD_OUT), ("c", COPIED), ("d", OTHER)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    files = ["judge", "--private", "a.txt", "--held-out", "b.txt", "--output"]
    assert main([*files, "c.txt", "-o", "page.html"]) == 3
    captured = capsys.readouterr()
    assert "found copies (verbatim)" in captured.out
    assert "disclosure beyond chance was found: copies (verbatim)" in captured.err
    assert (tmp_path / "page.html").stat().st_mode & 0o077 == 0
    assert main([*files, "d.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["found"] == []
    assert main([*files, "d.txt", "-o", "a.txt", "--force"]) == 2
    assert main([*files, "missing.txt"]) == 4
