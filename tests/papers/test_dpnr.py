"""papers/dpnr on made-up news and reviews: the quick form, the printed numbers, and the guarantees."""

import gzip
import json

import numpy as np
import pytest

from dptext import WordVectors
from dptext.intervals import Estimate
from dptext.privacy.randomness import RandomBits

PAPERS = (
    *("dpnr.experiment", "dpnr.printed", "dpnr.report", "dpnr.reviews", "dpnr.servers", "dpnr.split"),
    *("dpnr.blogs_report", "data_sets"),
)
pytest.importorskip("torch")
pytest.importorskip("sklearn")
parquet = pytest.importorskip("pyarrow.parquet")

WORDS = (
    ["war", "treaty", "minister"],
    ["goal", "match", "coach"],
    ["shares", "profit", "bank"],
    ["chip", "web", "code"],
)


def news(count, seed):
    """Texts of four classes, no two equal."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=count)
    unique = ["".join(chr(97 + int(digit)) for digit in f"{seed}{n:03}") for n in range(count)]
    return [
        (f"the {rng.choice(WORDS[label])} and a {rng.choice(WORDS[label])} {word}", label)
        for label, word in zip(labels, unique, strict=True)
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """AG News with 120 training rows, one of which is a test row as well, and 60 test rows."""
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("data") / "ag_news"
    folder.mkdir()
    tested = news(60, 1)
    lines = [f'"{label + 1}","Title, no {n}","{text}"' for n, (text, label) in enumerate(tested)]
    (folder / "test.csv").write_text("\n".join(lines) + "\n")
    names = ("World", "Sports", "Business", "Sci/Tech")
    lines = [f"{text}\t{names[label]}" for text, label in news(60, 2)] + [f"{tested[0][0].upper()}\tWorld"]
    (folder / "alps_train_subset_10k_desc_only.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    for seed, part in ((3, "train"), (4, "validation")):
        texts, labels = zip(*news(30, seed), strict=True)
        table = pa.table({"text": list(texts), "label": [int(label) for label in labels]})
        parquet.write_table(table, folder / f"chimera_hf_train_sample_{part}.parquet")
    return folder.parent


def test_training_rows_are_no_test_rows(papers, data):
    train, test = papers.data_sets.ag_news(data)
    assert (len(train.texts), len(test.texts)) == (120, 60)
    assert test.texts[0].startswith("Title, no 0 the ")
    assert papers.data_sets.without_overlap([("One, two!", 0), ("three", 1)], ["one TWO"]) == [("three", 1)]


def test_masks_remove_the_ngrams_of_masked_words(papers):
    ngrams, texts = papers.servers.NGRAMS, ["a b c d e f g", "", "x", "hello world foo"] * 20
    hashed = ngrams.of(texts)
    for mu in (0.0, 0.4, 1.0):
        kept = iter(RandomBits(3).uniform(int(((hashed.lengths + 1) // 2).sum())) > mu)
        words = [[word if next(kept) else None for word in papers.split.tokens_of(text)] for text in texts]
        result, expected = papers.servers.mask_words(hashed, mu, RandomBits(3)), ngrams.hash_words(words)
        assert (result.values.tolist(), result.starts.tolist()) == (expected.values.tolist(), expected.starts.tolist())


def test_true_epsilons_and_printed_numbers(papers):
    true, printed, accuracy = papers.servers.true_epsilon, papers.printed.printed, papers.printed.printed_accuracy
    assert true("DPNR", 1.0, 64) == 64.0
    assert true("DPNR, one scalar", 1.0, 64) == np.inf
    assert {true(mechanism, 4.0, 8) for mechanism in ("PrivUnit", "L2Laplace", "Gaussian")} == {4.0}
    assert printed("AG News", 32, "robust", "epsilon 5") == 0.73
    assert printed("AG News", 64, "adaptive", "epsilon 1") == 0.42
    assert printed("Yelp", 64, "plain", "mu 0.1") == 0.65
    for missing in (("AG News", 32, "adaptive", "epsilon 1"), ("Yelp", 64, "plain", "mu 0.3")):
        assert printed(*missing) is None
    for numbers, expected in (
        ((None, 0.0), 0.9707),
        ((0.05, 0.0), 0.9669),
        ((1.0, 0.8), 0.8294),
        ((None, 0.0, "TP-US"), 0.8553),
        ((5.0, 0.0, "AG News"), 0.7959),
    ):
        assert accuracy(*numbers) == pytest.approx(expected)
    assert accuracy(16.0, 0.0) is accuracy(1.0, 0.0, "industry") is None


def test_a_decision_by_randomised_response(papers):
    for epsilon in (0.5, 2.0, 40.0):
        for accuracy in np.linspace(0.1, 0.9, 9):  # by the matrix of the channel
            chances = np.ones((4, 4)) + (np.exp(epsilon) - 1) * np.eye(4)
            chances /= chances.sum(axis=1, keepdims=True)
            decisions = np.full((4, 4), (1 - accuracy) / 3) + np.eye(4) * (accuracy - (1 - accuracy) / 3)
            result = papers.report.decision_accuracy(Estimate(accuracy, 0, 1, 5, "runs"), epsilon, 4)
            assert result == pytest.approx(np.trace(decisions @ chances) / 4)


def test_the_quick_form_runs_resumes_and_reports(papers, data, tmp_path, capsys):
    arguments = ["--data", str(data), "--sets", "AG News", "--quick", "--out", str(tmp_path)]
    papers.experiment.main(arguments)
    text = (tmp_path / "tables.md").read_text()
    for part in (
        "120 public training texts, 60 test texts, 4 classes",
        "| 1 | 32 |",  # claimed and true
        "majority class",
        "| 0.3 | 4 | 128 |",
    ):
        assert part in text
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    rows = [json.loads(line) for line in (tmp_path / "study AG News.jsonl").read_text().splitlines()]
    assert {row["settings"]["training"] for row in rows[1:]} == {"plain", "robust", "adaptive"}
    assert list(rows[1]["numbers"]) == ["clean", "epsilon 1", "epsilon 4", "mu 0.3"]
    dropout = [json.loads(line) for line in (tmp_path / "dropout AG News.jsonl").read_text().splitlines()[1:]]
    assert {row["settings"]["word_dropout"] for row in dropout} == {0.3}
    path = tmp_path / "ours AG News.jsonl"
    before = path.read_text()
    path.write_text("".join(before.splitlines(keepends=True)[:-2]))
    capsys.readouterr()
    papers.experiment.main([*arguments, "--parts", "ours"])
    assert capsys.readouterr().err.count(" of 18") == 2
    for old, new in zip(before.splitlines()[1:], path.read_text().splitlines()[1:], strict=True):
        assert json.loads(old)["numbers"] == json.loads(new)["numbers"]


def test_reviews_run_and_missing_sets_say_what_runs_them(papers, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    words = [f"{one}{other}" for one in "abcdefghij" for other in "klmnopqrst"]
    vectors = WordVectors([*words, "<unk>"], np.vstack([rng.normal(size=(len(words), 20)), np.zeros(20)]))
    (tmp_path / "ag_news").mkdir()
    lines = [f'"{1 + place % 4}","{words[place % 4]} {words[place]}","{words[-1 - place]}"' for place in range(48)]
    (tmp_path / "ag_news" / "train.csv").write_text('"1","other","words"\n')
    (tmp_path / "ag_news" / "test.csv").write_text("\n".join(lines) + "\n")
    reviews = ["text,rating,gender,age,country"]
    for place in range(120):
        text = " ".join(rng.choice(words[:50] if place % 2 else words[50:], 12))
        country = "US" if place % 6 else "DK"
        reviews.append(f"{text},{1 + 4 * (place % 2)},{'FM'[place // 2 % 2]},{20 + 20 * (place % 3)},{country}")
    (tmp_path / "reviews.csv").write_text("\n".join(reviews) + "\n")
    result = papers.reviews.read_tp_us(tmp_path / "reviews.csv")  # the young and the old of the United States
    assert set(result.attributes) == {"gender", "age"}
    assert (set(result.attributes["age"]), set(result.labels)) == ({"under 35", "over 45"}, {"1", "5"})
    assert len(result.texts) == len(np.unique(result.people)) == 60
    monkeypatch.setattr(papers.reviews, "load_vectors", lambda *_, **__: vectors)
    setting = {"mechanism": "DPNR", "epsilon": 1.0, "mu": 0.0}
    monkeypatch.setattr(papers.reviews, "settings_of", lambda *_: [setting])
    options = ["--data", str(tmp_path), "--quick", "--out", str(tmp_path / "out")]
    papers.reviews.main(options)
    text = (tmp_path / "out" / "reviews.md").read_text()
    for part in (
        "| DPNR |  | 1 | 20 |",
        "| 0.794 |",
        "Not run: the reviews may not be redistributed; `--trustpilot FILE`",
    ):
        assert part in text
    papers.reviews.main([*options, "--trustpilot", str(tmp_path / "reviews.csv")])
    text = (tmp_path / "out" / "reviews.md").read_text()
    assert "Not run" not in text
    assert "60 texts, 2 classes" in text
