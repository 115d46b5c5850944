"""Tables 1 and 2 of papers/ome: the perceptron on bits is the library's, decay is read as said, no cell is blank."""

import json
import re

import numpy as np
import pytest
from papers.sweeps import sweep

from dptext.errors import ParameterError
from dptext.representations.networks import TrainingOptions, train_mlp

PAPERS = ("ome.decay", "ome.perceptron", "ome.printed", "ome.printed_report", "reports")
OPTIONS = {"hidden": 14, "epochs": 6, "validation_fraction": 0.0, "batch_size": 16}
torch = pytest.importorskip("torch")
pytest.importorskip("numba")


@pytest.fixture(scope="module")
def bits():
    """Half of the bits are rare, as those that OME sends as 1 by chance alone; one never occurs."""
    draws = np.random.default_rng(1).random((70, 90)) < np.where(np.arange(90) % 2, 0.03, 0.4)
    draws[:, 3] = False
    return draws.astype(np.uint8), np.arange(70) % 3


@pytest.mark.parametrize("decay", [1e-6, 1e-2])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_it_trains_what_the_library_trains(papers, monkeypatch, bits, decay, dropout):
    """With dropout drawn as torch draws it, weights differ by rounding; 1e-6 of them is 300 times less than a step."""
    if dropout:
        monkeypatch.setattr(
            papers.perceptron,
            "_kept",
            lambda _, rows, width, share: torch.empty(rows, width).bernoulli_(1 - share).numpy().astype(np.uint8),
        )
    options = TrainingOptions(**OPTIONS, weight_decay=decay, dropout=dropout)
    one = papers.perceptron.BitPerceptron(options, 3).fit(*bits)
    other = train_mlp(bits[0].astype(np.float64), bits[1], 3, options, seed=3)
    for (weights, bias), (theirs, their_bias) in zip(one.layers, other.layers, strict=True):
        np.testing.assert_allclose(weights, theirs, atol=1e-6)
        np.testing.assert_allclose(bias, their_bias, atol=1e-6)


def test_dropout_leaves_half_of_the_bits_and_another_half_each_time(papers):
    random = papers.perceptron.RandomBits(seed=2)
    first, second = (papers.perceptron._kept(random, 32, 1001, 0.5) for _ in range(2))
    for entry in (first, second, first == second):
        assert abs(entry.mean() - 0.5) < 5.5 * 0.5 / entry.size**0.5  # false alarms below 1e-7


def test_the_learning_rate_decays_as_that_of_keras(papers, bits):
    """A rate that is divided by 1 + 1e9 t is none after the first step."""
    options = TrainingOptions(**OPTIONS | {"batch_size": 70, "epochs": 3}, weight_decay=0.0)
    stopped = papers.perceptron.BitPerceptron(options, 5, rate_decay=1e9).fit(*bits)
    once = papers.perceptron.BitPerceptron(TrainingOptions(**vars(options) | {"epochs": 1}), 5).fit(*bits)
    np.testing.assert_allclose(stopped.layers[0][0], once.layers[0][0], atol=1e-7)


def test_the_perceptron_refuses_what_it_would_not_do(papers):
    for wrong in ({"validation_fraction": 0.1}, {"hidden": (4, 4)}, {"dropout": 0.2}):
        with pytest.raises(ParameterError):
            papers.perceptron.BitPerceptron(TrainingOptions(**OPTIONS | wrong), 0)


def test_a_gpu_is_used_where_there_is_one(papers, monkeypatch, bits):
    """There is none here: that the training is asked to go there is all that is seen."""
    requested = []

    def trained(*given, device, **options):
        requested.append(device)
        return train_mlp(*given, **options)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(papers.perceptron, "train_mlp", trained)
    assert papers.reports.torch_device() == "cuda"
    papers.perceptron.BitPerceptron(TrainingOptions(**OPTIONS), 3).fit(*bits)
    assert requested == ["cuda"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert papers.reports.torch_device() == "cpu"


def test_readings_of_decay_are_those_of_the_paper(papers):
    assert set(papers.decay.READINGS.values()) == {(1e-6, 0.0), (0.0, 1e-6), (0.0, 0.0)}


@pytest.fixture
def rows(papers, tmp_path):
    """Two runs of IMDb and MRPC, without noise and with PrivUnit's; one of OME on IMDb."""

    def measured(settings, seed):
        return {"accuracy": 0.7 + 0.01 * seed, "accuracy without noise at use": 0.6, "majority": 0.5, "dimension": 50.0}

    def settings_of(name, *settings):
        return [
            dict(zip(("set", "mechanism", "epsilon", "lambda"), (name, *setting), strict=True)) for setting in settings
        ]

    for name in ("IMDb", "MRPC"):
        path = tmp_path / f"printed-{name.lower()}.jsonl"
        several = settings_of(name, ("none", None, None), ("PrivUnit", 4.0, None))
        sweep(measured, several, range(2), path=path, name="made up")
    sweep(measured, settings_of("IMDb", ("OME", 1.0, 100.0)), [0], path=tmp_path / "printed-imdb.jsonl", name="made up")
    return tmp_path


def test_no_cell_of_the_tables_is_blank(papers, rows):
    papers.printed_report.write_report(rows, readme=None)
    text = (rows / "printed.md").read_text()
    cells = [cell.strip() for line in text.splitlines() if line.startswith("| ") for cell in line.split("|")[1:-1]]
    assert cells and all(cells)
    assert "| not run (printed 66.91) |" in text
    assert "| SUE | 1 | none |  |" not in text
    assert "not printed" in text
    assert "70.0 (67.33; 1 run)" in text


def test_agreement_is_counted_from_the_rows(papers, rows):
    result = papers.printed_report.Found(rows)
    text = papers.printed_report._agreement(result)
    assert "IMDb 1 of 10 (0 above, 0 below, 9 without an interval of ours)" in text
    assert "MRPC 1 of 8 (0 above, 0 below, 7 without an interval of ours)" in text


def test_the_readme_holds_what_the_report_wrote(papers):
    here = papers.printed.HERE
    readme = (here / "README.md").read_text()
    written = (here / "results" / "printed.md").read_text()
    begin, end = papers.printed_report.START, papers.printed_report.END
    assert readme.partition(begin)[2].partition(end)[0].strip() == written.strip()
    files = (here / "results").glob("printed-*.jsonl")
    heads = {json.loads(file.read_text().partition("\n")[0])["digest"] for file in files}
    assert len(heads) == 1, "rows of one experiment"
    assert re.search(r"IMDb \d+ of 10", written)
