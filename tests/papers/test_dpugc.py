"""papers/dpugc on made-up bloggers: MAP as printed, planted pairs, intervals, and the quick form of part one."""

import io
import json
import tarfile

import numpy as np
import pytest
from papers.dpugc.results import character_precision, word_precision
from papers.dpugc.similarity import BENCHMARKS

import dptext
from dptext import WordVectors

PAPERS = (
    *("dpugc.age", "dpugc.experiment", "dpugc.models", "dpugc.probes", "dpugc.similarity"),
    *("dpugc.report", "dpugc.results", "blogs"),
)


def name_of(place):
    return f"{place}.{'female' if place % 2 else 'male'}.{13 + place % 30}.indUnk.Leo.xml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, glove):
    """Bloggers, older ones with more of the later words; benchmarks of words that they use."""
    folder = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(1)
    (folder / "blog_authorship").mkdir()
    with tarfile.open(folder / "blog_authorship" / "blogs_subset.tar.xz", "w:xz") as archive:
        for place in range(24):
            rows = 200 + 10 * (place % 30) + generator.integers(0, 60, (2, 40))
            posts = [" ".join(glove.words[row] for row in post) for post in rows]
            text = (
                "<Blog>\n<date>1,May,2004</date>\n<post>\n &nbsp; urlLink Tea &amp; milk. \n</post>\n<post> </post>\n"
            )
            text += "".join(f"<post>{post}</post>\n" for post in posts) + "</Blog>"
            member = tarfile.TarInfo(f"blogs/{name_of(place)}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        archive.addfile(tarfile.TarInfo(f"blogs/{name_of(99)}"), io.BytesIO(b""))
    write_benchmarks(folder / "wordsim", glove, generator.integers(0, 4000, (60, 2)))
    return folder


def write_benchmarks(folder, glove, pairs, ratings=None):
    folder.mkdir()
    ratings = np.random.default_rng(1).random(len(pairs)) if ratings is None else ratings
    for file in BENCHMARKS.values():
        lines = [
            f"{glove.words[one]}\t{glove.words[other]}\t{r:.6f}" for (one, other), r in zip(pairs, ratings, strict=True)
        ]
        (folder / file).write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def noisy(papers, monkeypatch):
    """In place of the mechanism: public vectors with noise by the run. Without word2vec. Returns plans of totals."""
    totals = []

    def total_of(plan, documents):
        assert all(isinstance(document, dptext.Document) and document.user for document in documents)
        totals.append(plan)
        return np.zeros((len(plan.words), 50), dtype=np.int64)

    def released(plan, total, *, sigma, run):
        points = sigma * np.random.default_rng(run).normal(size=total.shape)
        points[: len(plan.public)] += plan.public.matrix
        return WordVectors(plan.words.words, points)

    monkeypatch.setattr(papers.models, "total_of", total_of)
    monkeypatch.setattr(papers.models, "released", released)
    for name in ("models", "experiment"):
        monkeypatch.setattr(getattr(papers, name), "has_word2vec", lambda: False)
    return totals


# -- MAP gives the numbers of table 2: query, gold, list, MAP-Word, MAP-Char -------------------------------------------

TABLE_2 = [
    ("four:two:five:seven", "zero:one:feeder:nine", 0, 0.3814),  # printed 3.814
    ("seven:nine:six:four", "cornerback:four:stockholders:zero", 0.5, 0.2347),  # printed .1347
    ("we:there:you:he", "morgan:century:contentious:ferroelectric", 0, 0.4237),
    ("four:two:five:seven", "one:in:UNK:zero", 0, 0.1288),
    ("seven:nine:six:four", "integrator:transfection:four:one", 0.33, 0.3561),
    ("we:there:you:he", "that:monorail:it:lesbian", 0, 0.2341),
]


@pytest.mark.parametrize(("gold", "listed", "word", "character"), TABLE_2)
def test_map_gives_the_numbers_of_the_paper(gold, listed, word, character):
    assert word_precision(listed.split(":"), gold.split(":")) == pytest.approx(word, abs=0.0034)
    assert character_precision(listed.split(":"), gold.split(":")) == pytest.approx(character, abs=1.5e-4)


# -- probes ------------------------------------------------------------------------------------------------------------


# -- intervals and features --------------------------------------------------------------------------------------------


def test_intervals_contain_units_and_runs(papers):
    """Both draws widen the interval: var = 1/50 over units, 1/5 over runs, in a table of row and column effects."""
    crossed = papers.results.crossed_bootstrap
    generator = np.random.default_rng(2)
    units, runs = generator.normal(size=400), generator.normal(size=5)
    single = crossed(lambda rows, _: float(units[rows].mean()), 400, 1, of="pairs")
    both = crossed(lambda rows, which: float(units[rows].mean() + runs[which].mean()), 400, 5, of="pairs")
    assert single.value == pytest.approx(units.mean())
    assert both.value == pytest.approx(units.mean() + runs.mean())
    assert both.high - both.low > 3 * (single.high - single.low)
    assert single.high - single.low == pytest.approx(2 * 1.96 * units.std() / 20, rel=0.1)  # 1,000 resamples
    constant = papers.results.share_over_units(np.ones((2, 20), dtype=bool), of="pairs")
    assert constant.value == constant.high == 1.0
    assert constant.low == pytest.approx(0.8316, abs=1e-4)  # .025 ** (1 / 20)


# -- models ------------------------------------------------------------------------------------------------------------


def test_the_mechanism(papers):
    """Equal runs have equal noise, which grows with sigma; a release without users has public vectors only."""
    mechanism, generator = papers.models, np.random.default_rng(3)
    words = [f"{letter}{other}" for letter in "abcdefghij" for other in "klmnopqrst"]
    public = dptext.load_vectors((words, generator.normal(size=(100, 5))))
    texts = [dptext.Document(" ".join(generator.choice(public.words[:100], 30)), user=str(user)) for user in range(9)]
    plan = mechanism.plan_of(public, 8.0)
    total = mechanism.total_of(plan, texts)
    one, repeated, other = (mechanism.released(plan, total, sigma=0.1, run=run).matrix for run in (1, 1, 2))
    assert (one == repeated).all() and (one != other).any()
    exact = mechanism.released(plan, total, sigma=0.0, run=1)
    assert (mechanism.released(plan, total, sigma=1e-9, run=2).matrix - exact.matrix).max() < 1e-4
    nobody = mechanism.released(plan, 0 * total, sigma=plan.budgets.sigma, run=1)
    np.testing.assert_allclose(nobody.matrix, papers.models.processed(public).matrix, atol=1e-6)
    assert plan.budgets.sigma == pytest.approx(0.65294, abs=1e-4)
    vocabulary = mechanism.fixed_vocabulary(["xylem"])
    assert mechanism.plan_of(public, 8.0, vocabulary=vocabulary).words.words[-1] == "xylem"


# -- the quick form ----------------------------------------------------------------------------------------------------


def test_the_quick_form_resumes_reports_and_writes_no_post(papers, folder, glove, noisy, tmp_path, monkeypatch, capsys):
    experiment = papers.experiment
    monkeypatch.setattr(experiment, "load_vectors", lambda *_, **__: glove)
    small = {"epsilons": (1.0, 8.0), "new_epsilons": (8.0,), "draws": (1, 2), "runs": (1, 2), "few_epsilons": (8.0,)}
    monkeypatch.setattr(experiment, "QUICK", experiment.Plan(**small, people=(0, 1), held_out=15, resamples=30))
    arguments = ["--data", str(folder), "--out", str(tmp_path), "--quick"]
    experiment.main(arguments)
    assert "pip install" in capsys.readouterr().out  # the models that are left out
    whole = {file.name: file.read_bytes() for file in sorted(tmp_path.glob("*.jsonl"))}
    assert sorted(whole) == [f"{name}.jsonl" for name in ("age", "difference", "new_words", "probes", "similarity")]
    tables = (tmp_path / "tables.md").read_text(encoding="utf-8")
    for heading in ("Similarity", "Smallest epsilon", "without public vectors", "Planted probes", "Age"):
        assert heading in tables
    assert "24 bloggers (15 of them held out for their age), 72 posts" in tables
    rows = [json.loads(line) for line in whole["similarity.jsonl"].splitlines()[1:]]
    models = [(row["settings"]["model"], row["settings"]["epsilon"], row["seed"]) for row in rows]
    assert models.count(("private", 8.0, 1)) == models.count(("simulated: 16 times the people", 8.0, 2)) == 1
    assert {seed for _, epsilon, seed in models if epsilon is not None} == {1, 2}
    # totals of: all, with plants, without those held out; the first two, the secrets new words; two draws of new words
    assert sorted(len(plan.words) - len(plan.public) for plan in noisy) == [0, 0, 0, 500, 500, 520, 520]
    (tmp_path / "probes.jsonl").write_bytes(b"".join(whole["probes.jsonl"].splitlines(keepends=True)[:-1]))
    experiment.main(arguments)
    for name, content in whole.items():
        before, after = content.splitlines()[1:], (tmp_path / name).read_bytes().splitlines()[1:]
        assert [json.loads(line)["numbers"] for line in after] == [json.loads(line)["numbers"] for line in before]
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"milk" not in b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.suffix != ".png")
