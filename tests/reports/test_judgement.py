"""`judge`: findings about planted copies, users, rows and canaries; none without disclosure; bad input."""

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dptext
from dptext import Document
from dptext.cli import main
from dptext.errors import DataError, ParameterError
from dptext.reports.judgement import ERROR, _nearest

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
    assert {"copies (verbatim)", "copies (half of the word sequences)", "copies (nearest neighbour)"} <= {
        *result.findings
    }
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
    assert result.findings == []
    assert "This is not a guarantee." in result.sentences()[0]


@pytest.mark.statistical
def test_false_findings_are_as_rare_as_stated():
    texts, runs, generator = write_texts(5, 360, length=5), 100, np.random.default_rng(6)
    alarms = 0
    for _ in range(runs):
        order = generator.permutation(360)
        private, held_out, output = ([texts[row] for row in order[start : start + 120]] for start in (0, 120, 240))
        alarms += bool(dptext.judge(private, held_out, output).findings)
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
    assert {"copies (verbatim)", "membership (nearest neighbour)"} <= {*result.findings}
    shared = tables["held out"].assign(who="private0")
    with pytest.raises(DataError, match="users have texts in both private and held_out"):
        dptext.judge(tables["private"], shared, OTHER, text="note", user="who")


def test_rows_of_an_anonymised_file_are_linked_and_unrelated_rows_are_not():
    dates = [f"{1 + row % 28} May {1900 + 37 * row % 100}" for row in range(300)]
    private = [Document(f"{text} on {dates[row]}", user=str(row // 3)) for row, text in enumerate(PRIVATE)]
    masked = [" ".join(word for place, word in enumerate(text.split()) if place % 3) for text in PRIVATE]
    masked = [f"{text} {date}" for text, date in zip(masked, dates, strict=True)]
    result = dptext.judge(private, None, masked, user="author", by_row=True, seed=1)
    assert result.findings == ["identifiers that stay", "linkage (cosine)"]
    values = {score.attack: score for score in reversed(result.row_scores)}
    assert values["linkage (cosine)"].score.value == 1.0
    assert values["words that stay"].score.value > 0.6 > values["words that stay"].baseline
    assert values["author re-identification (centroid)"].detail.startswith("100 authors")
    unrelated = dptext.judge(private, None, OTHER, user="author", by_row=True, seed=1)
    assert unrelated.findings == []


def test_canaries_bound_epsilon_from_below_and_coins_that_the_tool_did_not_see_give_no_bound():
    table = pd.DataFrame({"text": CANARIES, "inserted": COINS.astype(int)})
    output = [*OTHER, *(text for text, coin in zip(CANARIES, COINS, strict=True) if coin)]
    result = dptext.judge(PRIVATE, HELD_OUT, output, canaries=table, seed=1)
    assert 1 < result.canaries.loss <= result.canaries.strongest
    assert result.findings == ["canaries"]
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


def test_inserted_canaries_among_the_private_texts_change_nothing():
    """Features of the private texts would know the coins, and invented texts differ from held-out ones."""
    table = pd.DataFrame({"text": CANARIES, "inserted": COINS.astype(int)})
    inserted = [text for text, coin in zip(CANARIES, COINS, strict=True) if coin]
    alone, among = (
        dptext.judge(private, HELD_OUT, OTHER, canaries=table, seed=1) for private in (PRIVATE, PRIVATE + inserted)
    )
    assert among.canaries == alone.canaries
    assert among.scores == alone.scores
    assert among.sizes == alone.sizes | {"private": 300 + len(inserted)}
    with pytest.raises(DataError, match="the texts must be different"):
        dptext.judge(PRIVATE, HELD_OUT, OTHER, canaries=pd.concat([table, table]))


def test_equal_texts_have_equal_scores_at_every_place():
    """Products of matrices round the last rows of a block differently, which would separate private from held-out."""
    scores = _nearest([*["pay the small bill"] * 1999, "a new school", "pay the small bill"], OTHER[:151])
    assert set(scores[:1999]) == {scores[-1]}


def test_copies_are_found_in_scripts_without_spaces():
    generator = np.random.default_rng(7)
    texts = ["".join(map(chr, generator.integers(0x4E00, 0x4E00 + 400, size=40))) for _ in range(240)]
    private, held_out, output = texts[:80], texts[80:160], texts[160:]
    output[:20] = [f"{text[:30]}{other[:10]}" for text, other in zip(private, output[:20], strict=False)]
    result = dptext.judge(private, held_out, output)
    assert "copies (half of the word sequences)" in result.findings
    assert result.scores[1].detail == "20 of 80 private, 0 of 80 held-out"


def test_unusual_texts_are_compared():
    unusual = [None, "", "\ud800 half a letter", "x" * 1_000_000, *PRIVATE[:60]]
    result = dptext.judge(unusual, HELD_OUT, [*PRIVATE[:60], *unusual[2:4]])
    assert result.scores[0].detail == "62 of 64 private, 0 of 300 held-out"


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="held_out is required"):
        dptext.judge(PRIVATE, None, OTHER)
    with pytest.raises(DataError, match="most private texts are in held_out as well"):
        dptext.judge(PRIVATE, PRIVATE, OTHER)
    with pytest.raises(DataError, match="one row per private text"):
        dptext.judge(PRIVATE, None, OTHER[1:], by_row=True)
    with pytest.raises(DataError, match="output must have at least two texts with words"):
        dptext.judge(PRIVATE, HELD_OUT, OTHER[:1])
    rows = [Document(text, user=None if row == 4 else str(row)) for row, text in enumerate(PRIVATE)]
    with pytest.raises(DataError, match="private, row 5: 'author' is missing"):
        dptext.judge(rows, rows, OTHER, user="author")
    with pytest.raises(DataError, match="texts must be strings, entry 2 is int"):
        dptext.judge([PRIVATE[0], 5], HELD_OUT, OTHER)
    with pytest.raises(DataError, match="all are equal, or no word of them is known"):
        dptext.judge(["+1", "+2"], ["+3", "+4"], ["+5", "+6"])
    with pytest.raises(DataError, match="must each have at least two users"):
        one = [Document(text, user="a") for text in PRIVATE]
        dptext.judge(one, [Document(text, user=text) for text in HELD_OUT], OTHER, user="author")
    tables = [pd.DataFrame({"text": texts, "user": users}) for texts, users in ((PRIVATE, 1.0), (HELD_OUT, "1"))]
    with pytest.raises(DataError, match="users have texts in both"):
        dptext.judge(*tables, OTHER, user="user")


def test_the_page_escapes_names_and_contains_no_text(tmp_path):
    result = replace(dptext.judge(PRIVATE, HELD_OUT, COPIED), title="<b>a.csv</b>")
    page = result.html()
    assert "<b>a.csv</b>" not in page
    assert "disclosure beyond chance" in page
    assert not any(text in page for text in PRIVATE)
    assert json.loads(json.dumps(asdict(result)))["sizes"]["output"] == 300


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
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert main([*files, "d.txt", "-o", "a.txt", "--force"]) == 2
    assert main([*files, "missing.txt"]) == 4
