"""The experiment of papers/dpugc on made-up bloggers: it runs, goes on where it stopped, and says what it found."""

import io
import json
import tarfile
from collections import Counter

import numpy as np
import pytest

import dptext
from dptext import WordVectors
from dptext.errors import DataError, MissingExtraError

PAPERS = (
    "dpugc.age",
    "dpugc.corpus",
    "dpugc.experiment",
    "dpugc.intervals",
    "dpugc.mechanism",
    "dpugc.models",
    "dpugc.new_words",
    "dpugc.probes",
    "dpugc.report",
    "dpugc.results",
    "dpugc.semantic",
    "blogs",
)


def _name(place):
    return f"{place}.{'female' if place % 2 else 'male'}.{13 + place % 30}.indUnk.Leo.xml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, glove, papers):
    """Bloggers, the older the more of the later words; benchmarks of words that they use."""
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
            member = tarfile.TarInfo(f"blogs/{_name(place)}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        empty = tarfile.TarInfo(f"blogs/{_name(99)}")
        archive.addfile(empty, io.BytesIO(b""))
    (folder / "wordsim").mkdir()
    for file in papers.semantic.LISTS.values():
        pairs = generator.integers(0, 4000, (60, 2))
        lines = [f"{glove.words[one]}\t{glove.words[other]}\t{generator.random():.2f}" for one, other in pairs]
        (folder / "wordsim" / file).write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def noisy(papers, monkeypatch):
    """A mechanism that is none: public vectors with noise by the run. And no word2vec."""
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


@pytest.fixture(scope="module")
def people(papers, folder):
    return list(papers.blogs.bloggers(folder))


# -- bloggers --------------------------------------------------------------------------------------------------


def test_bloggers_are_read_with_what_their_file_is_called(papers, folder, people):
    assert len(people) == 24  # without the one who has no post
    assert (people[1].user, people[1].gender, people[1].age, people[1].industry) == ("1", "female", 14, "indUnk")
    documents = list(papers.blogs.documents_of(people[:1]))
    assert [document.user for document in documents] == ["0"] * 3
    assert documents[0].text.split() == ["Tea", "&", "milk."]  # neither links nor entities
    assert documents[0].attributes["age"] == 13
    assert "Tea" not in repr(people[0]) + repr(documents[0])


def test_a_folder_is_as_good_as_an_archive_and_a_wrong_name_is_told_by_its_place(papers, people, tmp_path):
    (tmp_path / "blogs").mkdir()
    for person in people[:2]:
        text = "".join(f"<post>{post}</post>" for post in person.posts)
        (tmp_path / "blogs" / _name(int(person.user))).write_text(text, encoding="utf-8")
    assert sorted(blogger.user for blogger in papers.blogs.bloggers(tmp_path)) == ["0", "1"]
    (tmp_path / "blogs" / "0.somebody.xml").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"file \d") as caught:
        list(papers.blogs.bloggers(tmp_path))
    assert "somebody" not in str(caught.value)


def test_a_missing_archive_is_named(papers, tmp_path):
    with pytest.raises(DataError, match="--data"):
        next(papers.blogs.bloggers(tmp_path))


def test_who_is_held_out_does_not_depend_on_the_order(papers, people):
    held_out = papers.corpus.held_out
    out, others = held_out(people, 10)
    repeated, _ = held_out(people[::-1], 10)
    assert [entry.user for entry in out] == [entry.user for entry in repeated]
    assert {entry.user for entry in out}.isdisjoint(other.user for other in others)
    assert len(out) + len(others) == 24
    with pytest.raises(DataError, match="more than 24"):
        held_out(people, 24)


# -- probes ----------------------------------------------------------------------------------------------------


def test_pairs_are_rare_public_words_that_stand_in_no_document_together(papers, people, glove):
    probes, corpus_of = papers.probes, papers.corpus.corpus_of
    base = corpus_of("all", people)
    pairs = probes.pairs_of(glove, base)
    words = [word for pair in pairs for word in (pair.name, pair.secret)]
    assert len(set(words)) == 2 * probes.PAIRS == 40
    first, login = pairs[0], pairs[10]
    for one in (first, login):  # somebody writes of both: the next secret is taken
        known = papers.corpus.Corpus("known", [dptext.Document(f"{one.name} {one.secret}", user="x")], base=base)
        changed = next(entry for entry in probes.pairs_of(glove, known) if entry.name == one.name)
        assert changed.secret != one.secret
    with pytest.raises(DataError, match="15,000"):
        probes.pairs_of(dptext.load_vectors((glove.words[:500], glove.matrix[:500])), base)


def test_planted_people_are_new_and_say_it_as_often_as_they_should(papers, people, glove):
    probes, corpora = papers.probes, papers.corpus
    base = corpora.corpus_of("all", people)
    pairs = probes.pairs_of(glove, base)
    assert probes.planted(base, pairs, 0) is base
    for count, times in ((1, 100), (10, 10), (100, 10)):
        corpus = probes.planted(base, pairs, count)
        assert len({document.user for document in corpus.documents}) == 24 + count * len(pairs)
        assert corpus.name != base.name
        assert corpus.digest != base.digest
        mine = [document for document in corpus.added if pairs[0].name in document.text.split()]
        assert len(mine) == count
        counter = Counter(mine[0].text.split())
        assert counter[pairs[0].name] == counter[pairs[0].secret] == times
    told = corpus.sentences[-1]  # every line holds both within the reach of a window of 5
    names, secrets = (np.flatnonzero(np.array(told) == word) for word in (pairs[-1].name, pairs[-1].secret))
    assert (np.abs(names - secrets) <= 5).all()


def test_ranks_of_planted_secrets(papers):
    probes = papers.probes
    pairs = [probes.Pair("name, disease", *names) for names in (("ann", "flu"), ("bob", "gout"), ("eve", "polio"))]
    words = ["<unk>", "ann", "flu", "bob", "gout", "tax", "polio"]
    points = [[0.1, 0.1], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-1.0, 0.0], [0.1, 0.9], [0.2, 0.9]]
    result = probes.ranks_of(WordVectors(words, points), pairs, blind=3)
    assert result[0] == (1, 1)
    assert result[1] == (4, 3)  # tax, polio and flu are nearer than gout
    assert result[2] == (3, 2)  # "eve" has no vector
    points[words.index("flu")] = points[words.index("gout")] = [0.0, 0.0]  # nothing was learned: equal, and not nearest
    result = probes.ranks_of(WordVectors(words, points), pairs, blind=3)
    assert result == [(3, 2)] * 3


# -- intervals -------------------------------------------------------------------------------------------------


def test_intervals_hold_things_and_runs(papers):
    """Both draws widen the interval: var = 1/50 over things, 1/5 over runs, in a table of row and column effects."""
    crossed = papers.intervals.crossed_bootstrap
    generator = np.random.default_rng(2)
    things, runs = generator.normal(size=400), generator.normal(size=5)
    alone = crossed(lambda rows, _: float(things[rows].mean()), 400, 1, of="pairs")
    both = crossed(lambda rows, which: float(things[rows].mean() + runs[which].mean()), 400, 5, of="pairs")
    assert alone.value == pytest.approx(things.mean())
    assert both.value == pytest.approx(things.mean() + runs.mean())
    assert both.high - both.low > 3 * (alone.high - alone.low)
    assert alone.high - alone.low == pytest.approx(2 * 1.96 * things.std() / 20, rel=0.1)  # 1,000 resamples
    assert (alone.of, alone.count) == ("pairs", 400)


def test_a_share_that_never_varies_still_has_an_interval(papers):
    result = papers.intervals.share_over_units(np.ones((2, 20), dtype=bool), of="pairs")
    assert result.value == result.high == 1.0
    assert result.low == pytest.approx(0.8316, abs=1e-4)  # .025 ** (1 / 20)


# -- age -------------------------------------------------------------------------------------------------------


def test_features_are_means_of_vectors(papers):
    age = papers.age
    vectors = WordVectors(["<unk>", "ab", "b"], [[9.0, 9.0], [1.0, 0.0], [0.0, 2.0]])
    result = age.mean_vectors(vectors.words, vectors.matrix, [Counter(ab=3, b=1, zebra=7), Counter(zebra=1)])
    np.testing.assert_allclose(result, [[0.75, 0.5], [0.0, 0.0]])
    characters, points = age.character_vectors(vectors)
    assert characters == ["a", "b"]  # "<unk>" is no word
    np.testing.assert_allclose(points, [[1.0, 0.0], [0.5, 1.0]])


# -- the whole -------------------------------------------------------------------------------------------------


def test_a_run_is_gone_on_with_and_reported(papers, folder, glove, noisy, monkeypatch, capsys):
    experiment, paths = papers.experiment, []
    monkeypatch.setattr(papers.report, "draw", lambda rows, path: paths.append(path))
    monkeypatch.setattr(experiment, "load_vectors", lambda *_, **__: glove)
    plan = experiment.Plan(
        epsilons=(1.0, 8.0),
        new_epsilons=(8.0,),
        draws=(1, 2),
        runs=(1, 2),
        probe_epsilons=(8.0,),
        people=(0, 1),
        age_epsilons=(8.0,),
        held_out=15,
        resamples=30,
    )
    monkeypatch.setattr(experiment, "QUICK", plan)
    out = folder / "out"
    arguments = ["--data", str(folder), "--out", str(out), "--quick"]
    experiment.main(arguments)
    assert "pip install" in capsys.readouterr().out  # what is left out, and how to have it
    whole = {file.name: file.read_bytes() for file in sorted(out.glob("*.jsonl"))}
    assert sorted(whole) == [f"{name}.jsonl" for name in ("age", "difference", "new_words", "probes", "similarity")]
    tables = (out / "tables.md").read_text(encoding="utf-8")
    for heading in ("Similarity", "Goal", "Smallest epsilon", "without public vectors", "Planted probes", "Age"):
        assert heading in tables
    assert "24 bloggers (15 of them held out for their age), 72 posts" in tables
    rows = [json.loads(line) for line in whole["similarity.jsonl"].splitlines()[1:]]
    assert all("seconds" in row and "seed" in row for row in rows)
    models = [(row["settings"]["model"], row["settings"]["epsilon"], row["seed"]) for row in rows]
    assert models.count(("private", 8.0, 1)) == 1
    assert {seed for model, epsilon, seed in models if epsilon is not None} == {1, 2}
    assert models.count(("simulated: 16 times the people", 8.0, 2)) == 1
    # totals of: all, with plants, without those held out; the first two, the secrets new words; two draws of new words
    assert sorted(len(plan.words) - len(plan.public) for plan in noisy) == [0, 0, 0, 500, 500, 520, 520]
    # cut a row off, as if the run had been stopped: it alone is made again
    cut = whole["probes.jsonl"].splitlines(keepends=True)
    (out / "probes.jsonl").write_bytes(b"".join(cut[:-1]))
    experiment.main(arguments)
    repeated = [json.loads(line)["numbers"] for line in (out / "probes.jsonl").read_bytes().splitlines()[1:]]
    assert repeated == [json.loads(line)["numbers"] for line in cut[1:]]
    assert {file.name: file.read_bytes() for file in out.glob("[ads]*.jsonl")} == {
        name: content for name, content in whole.items() if name[0] in "ads"
    }
    assert len(paths) == 2
    # nobody's words are in what is kept
    kept = b"".join(file.read_bytes() for file in out.iterdir() if file.is_file())
    assert b"milk" not in kept


def test_vectors_of_another_mechanism_are_made_again(papers, people, glove, noisy, monkeypatch, tmp_path):
    models = papers.models
    output = []
    released = models.released
    monkeypatch.setattr(models, "released", lambda *a, **k: output.append(k["sigma"]) or released(*a, **k))
    of = models.Models(glove, tmp_path).of
    corpus = papers.corpus.corpus_of("all", people)
    first = of(models.Model("private", 2.0), corpus, 1)
    assert (of(models.Model("private", 2.0), corpus, 1).matrix == first.matrix).all()
    assert (of(models.Model("private", 2.0), corpus, 2).matrix != first.matrix).any()
    assert len(output) == 2
    assert len(noisy) == 1  # the total is the same for every run and epsilon
    of(models.Model("simulated: 8 times the people", 2.0), corpus, 1)
    of(models.Model("no noise"), corpus)
    assert output[2:] == [output[0] / 8, 0.0]
    monkeypatch.setattr(models, "behaviour", lambda: "other")
    of(models.Model("private", 2.0), corpus, 1)
    assert (len(output), len(noisy)) == (5, 2)
    assert of(models.Model("public"), corpus) is glove
    np.testing.assert_allclose(of(models.Model("public, centred"), corpus).matrix.mean(axis=0), 0.0, atol=1e-5)
    processed = of(models.Model("public, processed"), corpus).matrix[: glove.vocabulary.unknown_row]
    np.testing.assert_allclose(np.linalg.norm(processed, axis=1), 1.0, atol=1e-5)
    with pytest.raises(MissingExtraError, match="pip install"):
        of(models.Model("word2vec"), corpus)


def test_the_mechanism_that_is_plugged_in(papers):
    """Equal runs have equal noise, which grows with sigma; of nobody nothing but public vectors comes out."""
    mechanism, generator = papers.mechanism, np.random.default_rng(3)
    public = dptext.load_vectors(
        ([f"{letter}{other}" for letter in "abcdefghij" for other in "klmnopqrst"], generator.normal(size=(100, 5)))
    )
    texts = [dptext.Document(" ".join(generator.choice(public.words[:100], 30)), user=str(user)) for user in range(9)]
    plan = mechanism.plan_of(public, 8.0)
    total = mechanism.total_of(plan, texts)
    one, repeated, other = (mechanism.released(plan, total, sigma=0.1, run=run).matrix for run in (1, 1, 2))
    assert (one == repeated).all()
    assert (one != other).any()
    exact = mechanism.released(plan, total, sigma=0.0, run=1)
    assert (mechanism.released(plan, total, sigma=1e-9, run=2).matrix - exact.matrix).max() < 1e-4
    nobody = mechanism.released(plan, 0 * total, sigma=plan.budgets.sigma, run=1)
    np.testing.assert_allclose(nobody.matrix, papers.models.processed(public).matrix, atol=1e-6)
    assert plan.budgets.sigma == pytest.approx(0.65294, abs=1e-4)
    values = mechanism.fixed_vocabulary(["xylem"])
    assert mechanism.plan_of(public, 8.0, vocabulary=values).words.words[-1] == "xylem"
    assert "given by the experiment" in " ".join(values.statement.explain().split())


def test_new_words_that_were_learned_are_told_from_those_that_were_not(
    papers, people, glove, noisy, monkeypatch, tmp_path
):
    models, new_words = papers.models, papers.new_words
    folder = tmp_path / "wordsim"
    folder.mkdir()
    taken = new_words.draw_new_words(glove, 1)
    assert len(taken) == len(set(taken)) == 500
    assert taken == new_words.draw_new_words(glove, 1) != new_words.draw_new_words(glove, 2)
    rows = [glove.vocabulary.row(word) for word in taken]
    assert 500 <= min(rows) < max(rows) < 8000
    true = models.processed(glove)
    pairs = [(one, other, float(true[one] @ true[other])) for one, other in zip(taken, glove.words[300:], strict=False)]
    for file in papers.semantic.LISTS.values():
        lines = [f"{one}\t{other}\t{rating:.6f}" for one, other, rating in pairs]
        (folder / file).write_text("\n".join(["the\tof\t1.0", *lines]), encoding="utf-8")
    monkeypatch.setattr(papers.semantic, "rated", papers.semantic.rated.__wrapped__)
    part = new_words.NewWords(
        models.Models(glove, tmp_path),
        papers.corpus.corpus_of("all", people),
        folder,
        draws=[1],
        runs=[1, 2],
        resamples=20,
    )

    def found(of):
        monkeypatch.setattr(
            models,
            "released",
            lambda plan, *_, **__: WordVectors(plan.words.words, [of(word) for word in plan.words.words]),
        )
        return part.cell({"model": "private", "epsilon": 8.0}, 1)

    learned = found(lambda word: true[word])
    assert learned["MEN"] == pytest.approx(1.0, abs=1e-3)
    assert (learned["median rank"], learned["nearest"]) == (1.0, 1.0)
    assert learned["MEN pairs"] == 500
    missed = found(lambda word: 0.0 * true[word] if word in set(taken) else true[word])
    assert missed["MEN"] == 0.0
    assert missed["median rank"] == 10_000
    assert missed["nearest"] == 0.0
    ceiling = part.cell({"model": "public, processed", "epsilon": None}, 1)
    assert ceiling["MEN"] == pytest.approx(1.0, abs=1e-3)


def test_the_smallest_epsilon_that_helps(papers, tmp_path):
    """At 1 by chance, not at 2, from 4 on: 4 is the smallest."""
    lows = {1.0: 0.01, 2.0: -0.01, 4.0: 0.002, 8.0: 0.02}

    def measure(settings, _seed):
        low = lows[settings["epsilon"]]
        return {"difference": low + 0.01, "low": low, "high": low + 0.02, "pairs": 30.0}

    names = list(papers.semantic.LISTS)
    settings = [
        {"model": "private", "epsilon": epsilon, "beside": "public, processed", "benchmark": name}
        for epsilon in lows
        for name in names
    ]
    from papers.sweeps import sweep

    sweep(measure, settings, [1], path=tmp_path / "difference.jsonl", name="made up")
    rows = papers.results.Rows(tmp_path / "difference.jsonl")
    assert "WordSim-353 4" in papers.report.smallest_epsilons(rows)
    table = papers.report.difference_table(rows, "public, processed")
    assert "| private, epsilon 8 | +0.030 [+0.020, +0.040] |" in table


def test_the_figure(papers, tmp_path):
    pytest.importorskip("matplotlib")
    from papers.dpugc.figure import draw
    from papers.sweeps import sweep

    pairs = papers.probes.PAIRS

    def measure(settings, seed):
        return {f"place {pair}": float(pair % 3 + 1) for pair in range(pairs)}

    private = {"model": "private", "epsilon": 8.0, "secrets": papers.probes.AS_NEW}
    random = [private | {"people": people} for people in (0, 1, 10)]
    sweep(measure, random, [1, 2], path=tmp_path / "probes.jsonl", name="made up")
    rows = {name: papers.results.Rows(tmp_path / f"{name}.jsonl") for name in papers.report.FILES}
    draw(rows, tmp_path / "figure.png")  # what is there, however little
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    first = (tmp_path / "figure.svg").read_bytes()
    draw(rows, tmp_path / "figure.png")
    assert (tmp_path / "figure.svg").read_bytes() == first


def test_nothing_to_report_is_said(papers, tmp_path):
    with pytest.raises(DataError, match="run the experiment first"):
        papers.report.write_report(tmp_path, readme=None)
