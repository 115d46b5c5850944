"""The experiment of papers/dpnr on made-up news: it runs, goes on where it stopped, and says what it found."""

import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dptext.errors import DataError, StorageError
from dptext.intervals import Estimate
from dptext.privacy.randomness import RandomBits

ROOT = Path(__file__).resolve().parents[2]
PAPERS = (
    "dpnr.corpus",
    "dpnr.experiment",
    "dpnr.printed",
    "dpnr.report",
    "dpnr.results",
    "dpnr.servers",
    "dpnr.sets",
    "ag_news",
    "hub",
    "yelp_polarity",
)
pytest.importorskip("torch")
parquet = pytest.importorskip("pyarrow.parquet")


WORDS = (
    ["war", "treaty", "minister"],
    ["goal", "match", "coach"],
    ["shares", "profit", "bank"],
    ["chip", "web", "code"],
)


def news(count, seed):
    """Texts of four classes, no two alike."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=count)
    own = ["".join(chr(97 + int(digit)) for digit in f"{seed}{n:03}") for n in range(count)]
    return [
        (f"the {rng.choice(WORDS[label])} and a {rng.choice(WORDS[label])} {word}", label)
        for label, word in zip(labels, own, strict=True)
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of AG News with 120 training rows, of which one is tested as well, and 60 tested ones."""
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


def test_rows_that_are_tested_are_not_trained_on(papers, data):
    train, test = papers.ag_news.ag_news(data)
    assert len(train.texts) == 120
    assert len(test.texts) == 60
    assert test.texts[0].startswith("Title, no 0 the ")
    assert papers.ag_news.without_overlap([("One, two!", 0), ("three", 1)], ["one TWO"]) == [("three", 1)]


def test_the_full_set_is_taken_where_it_is_there(papers, data, tmp_path):
    folder = tmp_path / "ag_news"
    folder.mkdir()
    (folder / "test.csv").write_text('"1","a","b c"\n')
    (folder / "train.csv").write_text('"4","x","y z"\n"2","a","b c"\n')
    train, _ = papers.ag_news.ag_news(tmp_path)
    assert train.texts == ("x y z",)
    assert train.labels.tolist() == [3]
    (folder / "train.csv").write_text('"5","x","y z"\n')
    with pytest.raises(DataError, match="expected a class from 1 to 4"):
        papers.ag_news.ag_news(tmp_path)
    (folder / "test.csv").unlink()
    with pytest.raises(StorageError, match="cannot read"):
        papers.ag_news.ag_news(tmp_path)


def test_yelps_own_files_are_read(papers, tmp_path):
    (tmp_path / "train.csv").write_text('"1","bad, ""bad""\\nplace"\n"2","good"\n')
    (tmp_path / "test.csv").write_text('"2","fine"\n')
    train, test = papers.yelp_polarity.yelp_polarity(tmp_path / "train.csv")
    assert train.texts == ('bad, "bad" place', "good")
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 1], [1])
    (tmp_path / "test.csv").write_text('"5","fine"\n')
    with pytest.raises(DataError, match=r"test.csv: expected a class, 1 or 2, and a review in each row"):
        papers.yelp_polarity.yelp_polarity(tmp_path / "train.csv")
    (tmp_path / "test.csv").unlink()
    with pytest.raises(StorageError, match="cannot read"):
        papers.yelp_polarity.yelp_polarity(tmp_path / "train.csv")


def test_which_sets_there_are(papers, data, tmp_path):
    sources, there = papers.sets.Sources, tmp_path / "train.csv"
    there.write_text('"1","a","b c"\n')
    assert sources(tmp_path).there == ("AG News", "IMDb")
    assert sources(tmp_path, ag_news=there, yelp=there).there == ("AG News 28,500", "Yelp", "IMDb")
    assert sources(tmp_path, ag_news=there).missing(["AG News", "AG News 28,500", "Yelp"]) == ["Yelp"]
    assert sources(tmp_path, hub=True).missing(["AG News", "Yelp"]) == ["AG News"]
    with pytest.raises(DataError, match="expected 3 training texts of AG News that are not tested, got 1"):
        sources(data, ag_news=there).read("AG News 28,500", least=3)


def test_a_hub_gives_the_same_kind_of_rows(papers, monkeypatch):
    split = {"text": ["a", "b"], "label": [0, 1]}
    stub = SimpleNamespace(load_dataset=lambda name: {"train": split, "test": split} if "yelp" in name else None)
    monkeypatch.setitem(sys.modules, "datasets", stub)
    train, test = papers.hub.from_hub("Yelp")
    assert train.texts == test.texts == ("a", "b")
    assert test.labels.tolist() == [0, 1]


def test_masks_take_the_ngrams_that_masked_words_stand_in(papers):
    ngrams, texts = papers.corpus.NGRAMS, ["a b c d e f g", "", "x", "hello world foo"] * 20
    hashed = ngrams.of(texts)
    for mu in (0.0, 0.4, 1.0):
        kept = iter(RandomBits(3).uniform(int(((hashed.lengths + 1) // 2).sum())) > mu)
        words = [[word if next(kept) else None for word in ngrams.words_of(text)] for text in texts]
        result, expected = papers.corpus.masked(hashed, mu, RandomBits(3)), ngrams.hash_words(words)
        assert result.values.tolist() == expected.values.tolist()
        assert result.starts.tolist() == expected.starts.tolist()


def test_true_epsilons(papers):
    assert papers.servers.true_epsilon("DPNR", 1.0, 64) == 64.0
    assert papers.servers.true_epsilon("DPNR, one scalar", 1.0, 64) == np.inf
    for mechanism in ("PrivUnit", "L2Laplace", "Gaussian"):
        assert papers.servers.true_epsilon(mechanism, 4.0, 8) == 4.0


def test_printed_numbers_stand_where_the_study_has_them(papers):
    printed = papers.printed.printed
    assert printed("AG News", 32, "robust", "epsilon 5") == 0.73
    assert printed("AG News", 64, "adaptive", "epsilon 1") == 0.42
    assert printed("AG News", 32, "adaptive", "epsilon 1") is None
    assert printed("Yelp", 64, "plain", "mu 0.1") == 0.65
    assert printed("Yelp", 64, "plain", "mu 0.3") is None
    assert printed("IMDb", 64, "plain", "mu 0.1") is None


def test_what_counts_as_reproduced(papers):
    runs = [0.60, 0.62, 0.61, 0.63, 0.59]
    assert papers.results.is_reproduced(runs, 0.62)
    assert not papers.results.is_reproduced(runs, 0.65)
    assert papers.results.is_reproduced([0.5, 0.5], 0.504)
    assert not papers.results.is_reproduced([0.5, 0.5], 0.51)


def test_a_decision_by_randomised_response(papers):
    clean = Estimate(0.8, 0.7, 0.9, 5, "runs")
    assert papers.results.decision_accuracy(clean, 0.0, 4) == pytest.approx(0.25)
    assert papers.results.decision_accuracy(clean, 40.0, 4) == pytest.approx(0.8)
    shares = np.linspace(0.1, 0.9, 9)  # by simulation of the channel's matrix
    for epsilon in (0.5, 2.0):
        for accuracy in shares:
            chances = np.ones((4, 4)) + (np.exp(epsilon) - 1) * np.eye(4)
            chances /= chances.sum(axis=1, keepdims=True)
            decisions = np.full((4, 4), (1 - accuracy) / 3) + np.eye(4) * (accuracy - (1 - accuracy) / 3)
            expected = np.trace(decisions @ chances) / 4
            result = papers.results.decision_accuracy(Estimate(accuracy, 0, 1, 5, "runs"), epsilon, 4)
            assert result == pytest.approx(expected)


@pytest.fixture(scope="module")
def out(papers, data, tmp_path_factory):
    """Results of the quick form."""
    folder = tmp_path_factory.mktemp("out")
    papers.experiment.main(["--data", str(data), "--sets", "AG News", "--quick", "--out", str(folder)])
    return folder


def test_it_runs_and_says_what_it_found(out):
    text = (out / "tables.md").read_text()
    assert "120 public training texts, 60 test texts, 4 classes" in text
    assert "| 1 | 32 |" in text  # claimed and true
    assert "majority class" in text
    assert (out / "figure.png").stat().st_size > 10_000
    rows = [json.loads(line) for line in (out / "study AG News.jsonl").read_text().splitlines()]
    assert {row["settings"]["training"] for row in rows[1:]} == {"plain", "robust", "adaptive"}
    assert list(rows[1]["numbers"]) == ["clean", "epsilon 1", "epsilon 4", "mu 0.3"]
    repeated = (out / "printed AG News.jsonl").read_text().splitlines()
    assert json.loads(repeated[1])["numbers"].keys() == rows[1]["numbers"].keys()


def test_servers_that_mask_words_stand_beside_those_that_do_not(out):
    rows = [json.loads(line) for line in (out / "dropout AG News.jsonl").read_text().splitlines()[1:]]
    assert {row["settings"]["word_dropout"] for row in rows} == {0.3}
    assert {row["settings"]["training"] for row in rows} == {"plain", "robust", "adaptive"}
    text = (out / "tables.md").read_text()
    assert "| 0.3 | 4 | 128 |" in text
    assert "The true epsilon is the same: masks" in text


def test_what_was_not_run_stands_there_as_printed(out):
    text = (out / "tables.md").read_text()
    assert "not run (printed 0.88)" in text  # of Yelp, which nothing was read from


def test_a_set_as_large_as_the_studys_has_both_masks_in_a_row(papers, data, tmp_path, monkeypatch):
    small = replace(papers.experiment.QUICK, train_rows=60, epsilons=(4.0,), runs=(1,))
    monkeypatch.setattr(papers.experiment, "QUICK", small)
    lines = [f'"{label + 1}","no {n}","{text}"' for n, (text, label) in enumerate(news(60, 2))]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    options = ["--data", str(data), "--ag-news", str(tmp_path / "train.csv"), "--quick", "--out", str(tmp_path)]
    papers.experiment.main([*options, "--sets", "AG News 28,500", "--parts", "study", "printed"])
    assert not (tmp_path / "printed AG News 28,500.jsonl").exists()
    rows = papers.results.Rows(tmp_path / "study AG News 28,500.jsonl")
    assert rows.names == ["clean", "epsilon 4", "mu 0.3"]
    numbers, others = rows.rows[0].numbers, rows.use_token_masks().rows[0].numbers
    assert others["mu 0.3"] == numbers["token mu 0.3"]
    assert others["epsilon 4"] == numbers["epsilon 4"]


def test_texts_are_repeated_to_as_many_as_there_should_be(papers):
    texts = papers.corpus.NGRAMS.of(["a b", "c"])
    corpus = papers.corpus.Corpus(texts, np.array([0, 1]), texts, np.array([0, 1]))
    assert papers.corpus.repeated(corpus, 5).train.lengths.tolist() == [3, 1, 3, 1]
    assert papers.corpus.repeated(corpus, 5).train_labels.tolist() == [0, 1, 0, 1]
    assert len(papers.corpus.repeated(corpus, 1).train) == 2


def test_it_goes_on_where_it_stopped(papers, data, out, capsys):
    path = out / "ours AG News.jsonl"
    before = path.read_text()
    path.write_text("".join(before.splitlines(keepends=True)[:-2]))
    arguments = ["--data", str(data), "--sets", "AG News", "--quick", "--out", str(out), "--parts", "ours"]
    papers.experiment.main(arguments)
    repeated = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    first = [json.loads(line) for line in before.splitlines()[1:]]
    assert [(row["settings"], row["seed"], row["numbers"]) for row in repeated] == [
        (row["settings"], row["seed"], row["numbers"]) for row in first
    ]
    assert capsys.readouterr().out.count(" of 18") == 2


def test_the_readme_has_room_for_the_tables(papers):
    page = (ROOT / "papers" / "dpnr" / "README.md").read_text()
    assert page.index(papers.report.START) < page.index(papers.report.END)


def test_nothing_to_report_and_sets_that_are_not_there(papers, tmp_path, capsys):
    with pytest.raises(DataError, match="no rows in"):
        papers.experiment.main(["--report", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        papers.experiment.main(["--sets", "Yelp", "--out", str(tmp_path)])
    assert "nothing is named to read Yelp from: --ag-news, --yelp or --hub does" in capsys.readouterr().err
