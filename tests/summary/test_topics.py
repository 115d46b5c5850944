"""Public topics and time bins."""

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.summary.topics import OTHER, TimeBins, Topics, read_topics


def test_texts_get_the_topic_with_the_nearest_description():
    topics = Topics.of()
    texts = ["a recipe for chicken soup", "the striker scored two goals", "xqzzk", "", "the guitar solo in that song"]
    names = [topics.names[code] for code in topics.codes(topics.features.units(texts))]
    assert names == ["food and cooking", "sports", OTHER, OTHER, "music"]
    assert len(topics.names) == 62


def test_own_topics_come_from_a_file_a_mapping_or_a_list(tmp_path):
    path = tmp_path / "topics.txt"
    path.write_text("billing: invoices and payments\n\nshipping\tpackages and delivery: late\n")
    assert read_topics(path) == {"billing": "invoices and payments", "shipping": "packages and delivery: late"}
    for topics in (path, str(path), read_topics(path), ["billing", "shipping"]):
        assert Topics.of(topics).names == ("billing", "shipping", OTHER)


@pytest.mark.parametrize("content", ["a name alone", "a: one\na: two", ": no name", "name:"])
def test_a_wrong_line_is_named(tmp_path, content):
    path = tmp_path / "topics.txt"
    path.write_text(f"{content}\n")
    with pytest.raises(DataError, match=r"topics.txt, line \d: expected NAME: DESCRIPTION"):
        Topics.of(path)


def test_wrong_taxonomies_are_errors(tmp_path):
    for topics in ({"one": "only one"}, {OTHER: "a", "b": "c"}):
        with pytest.raises(ParameterError, match="topics must have 2 to 10,000 names"):
            Topics.of(topics)
    with pytest.raises(StorageError):
        Topics.of(tmp_path / "missing.txt")


@pytest.mark.parametrize(
    ("bins", "names"),
    [
        ("2003..2005", ("2003", "2004", "2005")),
        ("2004-11..2005-01", ("2004-11", "2004-12", "2005-01")),
        ("2004-02-28..2004-03-01", ("2004-02-28", "2004-02-29", "2004-03-01")),
        ("2003,2005", ("2003", "2005")),
        (["2004-01", "2004-03"], ("2004-01", "2004-03")),
    ],
)
def test_bins_are_a_range_or_a_list(bins, names):
    assert TimeBins.of("date", bins).names == names


@pytest.mark.parametrize(
    "bins", ["month", "2004", "2005..2004", "2004..2005-01", "2004-13..2005-01", "2004,2003", "1000..9000"]
)
def test_wrong_bins_are_errors(bins):
    with pytest.raises(ParameterError, match="bins must"):
        TimeBins.of("date", bins)


def test_times_are_compared_by_their_beginning():
    bins = TimeBins.of("date", "2004-01..2004-03")
    values = ["2004-01-31", "2004-03", "2004-03-01T10:00:00", "2003-12-31", None, "March", ""]
    assert [bins.code((value,)) for value in values] == [0, 2, 2, 3, 3, 3, 3]
    with pytest.raises(ParameterError, match="belong together"):
        TimeBins.of(None, "2004..2005")


def test_a_topic_depends_on_its_own_text_only():
    topics = Topics.of()
    texts = ["a recipe for soup", "goals and a penalty", "my guitar"]
    together = topics.codes(topics.features.units(texts))
    assert np.array_equal(together, [topics.codes(topics.features.units([text]))[0] for text in texts])


def test_topics_that_cannot_be_told_apart_are_an_error():
    for topics in (
        {"sports": "a game", "SPORTS": "a game"},
        {"спорт": "рынки", "погода": "дождь"},
        {"spаce": "xqzzk", "tea": "a cup"},
    ):
        with pytest.raises(ParameterError, match="cannot tell it from an earlier one"):
            Topics.of(topics)


def test_near_ties_do_not_depend_on_other_texts():
    """Sums of floating-point products differ in the last bits by the size of a batch."""
    topics = Topics.of(
        {
            f"topic {name}": "tea and coffee" if number % 2 else "coffee and tea"
            for number, name in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"))
        }
    )
    words = ("tea", "coffee", "cup", "one", "game", "eight", "law", "the")
    texts = [" ".join(words[(number * step) % 8] for step in (1, 3, 5)) for number in range(1023)]
    units = topics.features.units(texts)
    together = topics.codes(units)
    for size in (1, 2, 3, 5, 8, 17, 100, 511, 1022):
        assert np.array_equal(topics.codes(units[:size]), together[:size])
    assert np.array_equal(topics._directions, np.rint(topics._directions))
