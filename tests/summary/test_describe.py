"""`dptext.describe`: exact sums of bounded users, the release, its files, its charge and its errors."""

import json

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits
from dptext.summary.describe import SummaryPlan, UserSums
from dptext.summary.text_summary import TextSummary
from dptext.summary.topics import OTHER
from dptext.users.grouping import UserTexts

TOPICS = {"tea": "tea and a cup of coffee", "law": "tax law in court", "sports": "the team won the game"}
SENTENCES = ["a cup of tea", "the court and the law", "our team won", "coffee or tea", "xqzz", ""]
TIMES = {"time": "date", "bins": "2004-01..2004-03"}
POOL = ["green tea with milk", "the judge read the law", "the team lost the game", "a coffee", "an old law", "a match"]


def plan(**settings):
    return SummaryPlan(**{"epsilon": 1.0, "topics": TOPICS, "phrases": 0, **settings})


def someone(random, documents, bins=1):
    texts = random.choice(SENTENCES, size=documents).tolist()
    return texts, random.integers(bins, size=documents).astype(np.int32)


def summed(configuration, *people):
    sums = UserSums(configuration)
    sums.add(UserTexts([person]) for person in people)
    return sums


@pytest.mark.parametrize("settings", [{}, TIMES, {"public": POOL}, {**TIMES, "public": POOL, "phrases": 20}])
def test_the_parts_of_a_user_have_norm_1_together(settings):
    random, configuration = np.random.default_rng(1), plan(**settings)
    left = 2**48 - sum(configuration.units.get(name, 0) ** 2 for name in ("phrases", "counts"))
    for documents in (1, 2, 3, 7, 40, 1100):
        cells = summed(configuration, someone(random, documents, configuration.shape[1])).cells
        squares = sum(int(value) ** 2 for part in cells.values() for value in part.ravel().tolist())
        assert squares <= left
    one = summed(configuration, (["a cup of tea"], np.zeros(1, dtype=np.int32))).cells
    squares = sum(
        int(value) ** 2 for name, part in one.items() if name != "examples" for value in part.ravel().tolist()
    )
    assert squares == sum(configuration.units[name] ** 2 for name in one if name != "examples")  # nothing is wasted


def test_sums_are_the_shares_of_each_user_added_up():
    random, configuration = np.random.default_rng(2), plan(**TIMES)
    people = [someone(random, documents, 4) for documents in (1, 5, 3, 12, 1)]
    sums, topics = summed(configuration, *people), configuration.topics
    expected = np.zeros((4, 4))
    for texts, bins in people:
        codes = topics.codes(topics.features.units(texts))
        for code, time in zip(codes, bins, strict=True):
            expected[code, time] += 1 / len(texts)
    scale = configuration.units
    assert sums.people == 5
    assert np.allclose(sums.cells["cells"] / scale["cells"], expected, atol=1e-5)
    assert np.allclose(sums.cells["topics"][0] / scale["topics"], expected.sum(axis=1), atol=1e-5)
    assert np.allclose(sums.cells["bins"][0] / scale["bins"], expected.sum(axis=0), atol=1e-5)
    assert np.isclose(sums.cells["people"][0, 0] / scale["people"], 5, atol=1e-5)
    assert all(
        np.array_equal(summed(configuration, *people[::-1]).cells[name], sums.cells[name]) for name in sums.cells
    )


def test_the_noise_is_what_the_budget_needs():
    for settings in ({}, {"phrases": 30}, {"epsilon": 0.1, "delta": 1e-9}, {"epsilon": 8.0, "phrases": 5}):
        configuration = plan(**settings)
        names = configuration.delta - configuration.noise.delta
        spent = gaussian_delta(configuration.sigma, epsilon=configuration.noise.epsilon, sensitivity=1.0)
        assert spent + names <= configuration.delta * (1 + 1e-9)
        assert sum(configuration.weights.values()) == pytest.approx(1)
        assert sum(unit**2 for unit in configuration.units.values()) <= 2**48
        if configuration.phrases:
            rates = [union.scale * configuration.units["phrases"] * CELL for union in configuration.rounds]
            assert sum((configuration.sigma / rate) ** 2 for rate in rates) <= 1 + 1e-9


def documents(people=600, texts=("a cup of tea", "our team won the game"), date="2004-01-05"):
    return [
        dptext.Document(text, user=f"u{user}", attributes={"date": date}) for user in range(people) for text in texts
    ]


def test_a_release_shows_shares_phrases_times_and_public_examples():
    settings = {"topics": TOPICS, **TIMES, "public": POOL, "phrases": 4, "seed": 1}
    summary = dptext.describe(documents(), epsilon=4.0, **settings)
    shares = summary.shares()
    assert [*shares] == [*TOPICS, OTHER]
    assert shares["tea"].low <= 0.5 <= shares["tea"].high
    assert shares["law"].low == 0
    assert summary.people.low <= 600 <= summary.people.high
    assert summary.shares("2004-01")["sports"].high > 0.4
    assert {*summary.phrases} <= {"tea", "cup", "team", "won", "game", "team won", "cup of tea", "won the game"}
    assert all(count.low <= 600 <= count.high for count in summary.counts().values())
    assert set(summary.examples["tea"]) <= set(POOL)
    assert "law" not in summary.examples
    assert summary.statement.guarantee == dptext.ApproxDP(4.0, 1e-6)
    assert summary.statement.seeded
    reversed_order = dptext.describe(documents()[::-1], epsilon=4.0, **settings)
    assert all(np.array_equal(reversed_order.sums[name], values) for name, values in summary.sums.items())
    with pytest.raises(ParameterError, match="no time bin"):
        summary.shares("2005-01")


def test_changes_between_two_releases():
    before = dptext.describe(documents(2000), epsilon=4.0, topics=TOPICS, phrases=0, seed=1)
    after = dptext.describe(documents(2000, texts=("a cup of tea",)), epsilon=4.0, topics=TOPICS, phrases=0, seed=2)
    changes = after.changes_since(before)
    assert changes["tea"].significant
    assert changes["tea"].estimate.low > 0.4
    assert changes["sports"].estimate.high < -0.4
    assert not changes["law"].significant
    with pytest.raises(ParameterError, match="same topics"):
        after.changes_since(dptext.describe(documents(20), epsilon=4.0, topics=[*TOPICS, "more"], phrases=0))
    with pytest.raises(ParameterError, match="no times"):
        after.trends()


def test_a_folder_is_the_same_summary_and_a_changed_one_is_an_error(tmp_path):
    folder = tmp_path / "summary"
    settings = {"topics": TOPICS, **TIMES, "public": POOL, "phrases": 3}
    summary = dptext.describe(documents(), epsilon=4.0, **settings)
    summary.save(folder)
    loaded = TextSummary.load(folder)
    assert loaded.as_dict() == summary.as_dict() == json.loads((folder / "summary.json").read_text())
    assert loaded.statement.release_id == summary.statement.release_id
    assert loaded.statement.data_sha256
    page = (folder / "page.html").read_text()
    assert "law" in page.partition("Not distinguishable from 0")[2]
    with pytest.raises(ParameterError, match="already exists"):
        summary.save(folder)
    config = json.loads((folder / "config.json").read_text())
    for name, value in (("scales", {"topics": 1.0}), ("bins", ["date", ["2004"]]), ("topics", ["tea"])):
        (folder / "config.json").write_text(json.dumps({**config, name: value}))
        with pytest.raises(DataError):
            TextSummary.load(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "summary.json").write_text("{}\n")
    with pytest.raises(DataError, match=r"summary\.json"):
        TextSummary.load(folder)


def test_names_on_a_page_are_escaped(tmp_path):
    topics = {"<b>tea": "tea and a cup of coffee", "law": "tax law in court"}
    summary = dptext.describe(documents(), epsilon=4.0, topics=topics, phrases=0)
    summary.save(tmp_path / "summary")
    page = (tmp_path / "summary" / "page.html").read_text()
    assert "<b>tea" not in page
    assert "&lt;b&gt;tea" in page


def test_small_groups_are_not_shown_as_numbers():
    summary = dptext.describe(documents(3), epsilon=0.5, topics=TOPICS, **TIMES, phrases=5, seed=1)
    assert {entry.low for entry in summary.shares().values()} == {0.0}
    assert "Too few people for this epsilon" in summary.html()
    assert "No phrase was found" in summary.html()
    assert '<th scope="row">' not in summary.html()


def test_wrong_input_is_one_clear_error():
    for settings, message in (
        ({"epsilon": 0.0}, "epsilon must"),
        ({"phrases": -1}, "phrases must"),
        ({"unit": "row"}, "unit must"),
        ({"time": "date"}, "belong together"),
        ({"time": "date", "bins": [f"{year}" for year in range(1000, 2000)]}, "bins must"),
        ({"topics": None, "time": "d", "bins": "2000-01..2030-12"}, "at most"),
    ):
        with pytest.raises(ParameterError, match=message):
            plan(**settings)
    with pytest.raises(DataError, match="no documents"):
        dptext.describe([], epsilon=1.0, phrases=0)
    with pytest.raises(DataError, match="row 1 has no user"):
        dptext.describe([dptext.Document("a text")], epsilon=1.0, phrases=0)
    with pytest.raises(ParameterError, match="public pool, and would be released"):
        texts = [f"{sentence} {number}" for sentence in SENTENCES for number in range(40)]
        private = [dptext.Document(text, user=text) for text in texts]
        dptext.describe(private, epsilon=1.0, public=texts, phrases=0)


def test_documents_can_be_the_unit():
    summary = dptext.describe(
        [dptext.Document(text) for text in ["a cup of tea"] * 900], epsilon=2.0, unit="document", phrases=0, seed=1
    )
    assert summary.statement.unit == "document"
    assert summary.people.low <= 900 <= summary.people.high


def test_a_table_needs_its_columns():
    table = {"text": ["a cup of tea"] * 50, "who": [str(number) for number in range(50)], "date": ["2004-01-01"] * 50}
    pandas = pytest.importorskip("pandas")
    summary = dptext.describe(pandas.DataFrame(table), user="who", epsilon=8.0, phrases=0, **TIMES)
    assert summary.shares("2004-01")["food and cooking"].value >= 0
    with pytest.raises(ParameterError, match="no user column"):
        dptext.describe(pandas.DataFrame(table), epsilon=1.0, phrases=0)


def test_every_release_has_new_noise():
    configuration, people = plan(), [(["a cup of tea"], np.zeros(1, dtype=np.int32))]
    sums = summed(configuration, *people)
    first, other = (configuration.released(sums, None, RandomBits()).sums["topics"] for _ in range(2))
    assert not np.array_equal(first, other)


@pytest.mark.statistical
def test_the_noise_has_the_stated_size():
    """A right sampler fails with probability below 1e-6; two thirds of the noise is rejected."""
    configuration, people = plan(), [(["a cup of tea"], np.zeros(1, dtype=np.int32))]
    sums = summed(configuration, *people)
    draws = [configuration.released(sums, None, RandomBits(seed)).part("topics")[0] for seed in range(400)]
    spread = np.std(draws) / configuration.released(sums, None, RandomBits(0)).deviation("topics")
    count = np.size(draws)
    assert abs(spread - 1) < 5.0 / np.sqrt(2 * count)
    assert abs(2 / 3 * spread - 1) > 5.0 / np.sqrt(2 * count)
