"""The table of docs/understand/epsilon.md that people choose an epsilon by is the library's own."""

from pathlib import Path

from dptext.privacy.guarantee import rate_at_most
from dptext.privacy.wording import odds, percent_at_most, percent_right


def test_the_odds_on_the_page_are_those_that_the_library_says():
    page = (Path(__file__).parents[2] / "docs" / "understand" / "epsilon.md").read_text(encoding="utf-8")
    table = page.split("| epsilon | odds of one of two |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert len(rows) == 9
    for epsilon, *text in rows:
        nats = float(epsilon)
        guesses = [percent_at_most(rate_at_most(nats, inputs)) for inputs in (10, 300, 100_000)]
        assert text == [f"{odds(nats)} to 1", f"{percent_right(nats):g}%", *guesses]
