"""papers/dptext on made-up bloggers: who is in which part, what is sent and written, and that nobody is shown."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dptext import WordVectors
from dptext.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
PAPERS = (
    "dptext.attributed",
    "dptext.cells",
    "dptext.experiment",
    "dptext.first_claim",
    "dptext.methods",
    "dptext.page",
    "dptext.report",
    "dptext.rows",
    "dptext.stored",
    "dptext.table1",
    "dptext.table1_report",
    "dptext.trustpilot",
    "blogs_posts",
)
pytest.importorskip("sklearn")
pytest.importorskip("scipy")
pytest.importorskip("torch")

FALSE_ALARM = 1e-6


LETTERS = "abcdefghij"
WORDS = {kind: [f"{kind}{one}{other}" for one in LETTERS for other in LETTERS] for kind in "yzvwst"}
OF = {"Arts": "y", "Law": "z", "female": "v", "male": "w", 15: "s", 40: "t"}


def blogger(papers, place, posts=3):
    """Most words are of the industry, some of the gender and of the age."""
    rng = np.random.default_rng(place)
    who = (("Arts", "Law")[place % 2], ("female", "male")[place // 2 % 2], (15, 40)[place // 4 % 2])
    texts = [
        " ".join(
            word for entry, count in zip(who, (12, 8, 8), strict=True) for word in rng.choice(WORDS[OF[entry]], count)
        )
        for _ in range(posts)
    ]
    return papers.blogs_posts.Blogger(f"{9000000 + place}", who[1], who[2], who[0], "Leo", tuple(texts))


@pytest.fixture(scope="module")
def people(papers):
    return [blogger(papers, place) for place in range(96)]


@pytest.fixture(scope="module")
def vectors():
    """Words of a kind lie together, in 12 dimensions."""
    rng = np.random.default_rng(3)
    words = [word for kind in WORDS.values() for word in kind]
    middles = np.repeat(rng.normal(size=(len(WORDS), 12)), 100, axis=0)
    return WordVectors([*words, "<unk>"], np.vstack([middles + 0.2 * rng.normal(size=middles.shape), np.zeros(12)]))


@pytest.fixture(scope="module")
def posts(papers, people):
    return papers.blogs_posts.posts_for("industry", people, most=3, smallest=5)


@pytest.fixture(scope="module")
def labelled(papers, posts, vectors):
    from dptext.representations.encoders import MeanOfWords

    stored = MeanOfWords(vectors).encode(posts.texts).astype(np.float64)
    return papers.methods.Labelled(stored, posts.labels, posts.attributes, posts.people)


@pytest.fixture(scope="module", autouse=True)
def short(papers):
    patch = pytest.MonkeyPatch()
    patch.setattr(papers.methods, "_TRAINING", {"epochs": 3, "validation_fraction": 0.0, "learning_rate": 1e-2})
    yield
    patch.undo()


def test_a_blogger_is_public_or_a_sender_or_tested(papers, posts):
    parts = papers.cells.split(posts, 3, 1)
    assert sorted(np.concatenate([tested for _, _, tested in parts]).tolist()) == list(range(len(posts.texts)))
    for sides in parts:
        owners = [set(posts.people[rows].tolist()) for rows in sides]
        assert [len(entry) for entry in owners] == [32, 32, 32]
        assert len(set.union(*owners)) == 96


def send(papers, labelled, name, epsilon=None, alpha=1.0, seed=1):
    public, private = labelled.at(np.arange(0, 144)), labelled.at(np.arange(144, 288))
    return papers.methods.sent(papers.methods.NAMES[name], epsilon, alpha, public, private, seed), public, private


def test_every_method_sends_as_many_numbers_as_it_says(papers, labelled):
    methods = papers.methods
    for name, method in methods.NAMES.items():
        if name in methods.OF_PRINT.values():
            continue  # another weight of the regulariser
        noisy = method.noise is not None
        result, _, private = send(papers, labelled, name, 16.0 if noisy else None)
        width = {methods.LABEL: 2, methods.DECISION: 2}.get(name, method.dimension or 12)
        assert result.shape == (144, width), name
        assert np.isfinite(result).all()
        assert len(private.vectors) == 144


def test_true_epsilons(papers):
    methods = papers.methods
    for name, method in methods.NAMES.items():
        true = methods.true_epsilon(method, None if method.noise is None else 4.0, 50)
        proved = method.noise not in (None, "DPText")
        assert true == (4.0 if proved else math.inf), name


def test_the_eraser_leaves_nothing_to_a_line_and_the_label_is_the_label(papers, labelled):
    from sklearn.linear_model import LogisticRegression

    _, public, private = send(papers, labelled, papers.methods.ORIGINAL)
    erased, _, _ = send(papers, labelled, papers.methods.LEACE)
    gender = private.attributes["gender"]
    told = [LogisticRegression().fit(x[:72], gender[:72]).score(x[72:], gender[72:]) for x in (private.vectors, erased)]
    assert told[0] > 0.85 > told[1] + 0.1
    label, _, _ = send(papers, labelled, papers.methods.LABEL)
    assert (np.unique(public.task)[label.argmax(axis=1)] == private.task).all()


def test_the_decision_is_kept_as_often_as_randomised_response_says(papers, labelled):
    from scipy import stats

    epsilon, draws, kept = 1.0, 60, 0
    sure, _, _ = send(papers, labelled, papers.methods.DECISION, 50.0)
    for seed in range(draws):
        result, _, _ = send(papers, labelled, papers.methods.DECISION, epsilon, seed=seed)
        assert (result.sum(axis=1) == 1).all()
        kept += int((result.argmax(axis=1) == sure.argmax(axis=1)).sum())
    chance = math.exp(epsilon) / (math.exp(epsilon) + 1)
    assert stats.binomtest(kept, draws * 144, chance).pvalue > FALSE_ALARM
    assert stats.binomtest(kept, draws * 144, 1 - chance).pvalue < FALSE_ALARM


def test_noise_of_two_budgets_and_of_two_folds_differs(papers, labelled):
    one, _, _ = send(papers, labelled, papers.methods.UNTRAINED, 4.0, seed=1)
    other, _, _ = send(papers, labelled, papers.methods.UNTRAINED, 4.0, seed=2)
    assert np.abs(one - other).max() > 0.1


@pytest.fixture(scope="module")
def setting(papers, posts, labelled):
    return papers.cells.Setting(
        "made up", posts, (labelled.vectors,) * 3, folds=3, resamples=40, attackers=("linear",), smallest_group=5
    )


def test_a_cell_says_what_is_learnt_and_what_is_told(papers, setting):
    result = papers.cells.measure({"method": "ORIGINAL", "epsilon": None, "alpha": None}, 1, setting=setting)
    assert result["task accuracy"] > 0.9
    assert result["gender linear accuracy low"] > result["gender linear accuracy blind"]  # the attack is alive
    assert result["gender best"] == result["gender linear accuracy"]
    assert result["age best blind"] == 0.5
    assert result["authors low"] <= result["authors"] <= result["authors high"]
    gap = result["gender male"] - result["gender female"]
    assert result["gender gap male less female"] == pytest.approx(gap)
    for name, value in result.items():
        if name.endswith(" low"):
            assert value <= result[name.removesuffix(" low")] <= result[name.removesuffix("low") + "high"]


def test_a_copy_of_a_setting_is_known_again(setting):
    import pickle

    copy = pickle.loads(pickle.dumps(setting))
    assert copy == setting
    assert hash(copy) == hash(setting)


def test_the_reference_does_not_differ_from_itself(papers, setting):
    result = papers.cells.measure(dict(papers.cells.REFERENCE), 1, setting=setting)
    for name in ("task", "gender", "age"):
        assert result[f"{name} less ADV-ALL"] == result[f"{name} less ADV-ALL low"] == 0.0


def small(papers):
    methods = papers.methods
    return papers.experiment.Plan(
        tasks=("industry",),
        encoders=("GloVe",),
        names=(methods.LABEL, methods.ORIGINAL, methods.ADV_ALL, methods.PRINTED, methods.OURS, methods.DIFPRIV),
        epsilons=(methods.MAIN,),
        alphas=(3.0,),
        most=2,
        smallest_label=5,
        smallest_group=5,
        folds=3,
        resamples=20,
        attackers=("linear",),
    )


@pytest.fixture(scope="module")
def out(papers, people, vectors, tmp_path_factory):
    """Results of a small plan."""
    patch = pytest.MonkeyPatch()
    patch.setattr(papers.experiment, "bloggers", lambda _: iter(people))
    patch.setattr(papers.stored, "load_vectors", lambda *_, **__: vectors)
    patch.setattr(papers.experiment, "QUICK", small(papers))
    folder = tmp_path_factory.mktemp("out")
    papers.experiment.main(["--quick", "--out", str(folder), "--work", str(folder / "work")])
    yield folder
    patch.undo()


def test_it_runs_and_says_what_it_found(papers, out):
    text = (out / "tables.md").read_text()
    assert "### Task: industry; stored vectors: GloVe\n\n192 posts of 96 bloggers, 2 classes, 3 folds" in text
    assert "| DPText as published | none (0.1 claimed) |" in text
    assert "| ours, PrivUnit | 16 |" in text
    assert "| ORIGINAL | none | 0.749 | 0.345 | 0.530 |" in text  # printed
    assert "**Asked for**" in text
    page = (out / "page.html").read_text()
    assert page.count("<section>") == 1
    assert "PrivUnit in the loop: any two posts; local" in page
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_asked_for_needs_both_attributes_and_the_task(papers):
    numbers = {"task less ADV-ALL low": -0.02}
    numbers |= {f"{entry} less ADV-ALL high": -0.01 for entry in ("gender", "age")}
    assert papers.rows.reaches(SimpleNamespace(numbers=numbers))
    for name, value in (("task less ADV-ALL low", -0.04), ("age less ADV-ALL high", 0.01)):
        assert not papers.rows.reaches(SimpleNamespace(numbers=numbers | {name: value}))


def test_nobody_is_shown(out, people, capsys):
    kept = "".join(path.read_text() for path in out.iterdir() if path.suffix in (".md", ".jsonl", ".html"))
    printed = capsys.readouterr()
    for text in (kept, printed.out, printed.err):
        assert "900000" not in text
        assert not any(word in text.split() for word in people[0].posts[0].split())
    assert [path.stat().st_mode & 0o777 for path in (out / "work").iterdir()] == [0o600]


def test_it_goes_on_where_it_stopped(papers, out, capsys):
    path = out / "industry, GloVe.jsonl"
    before = path.read_text()
    path.write_text("".join(before.splitlines(keepends=True)[:-1]))
    papers.experiment.main(["--quick", "--out", str(out), "--work", str(out / "work")])
    assert capsys.readouterr().out.count(" of 9:") == 1
    rows = [json.loads(text.splitlines()[-1])["numbers"] for text in (before, path.read_text())]
    assert rows[0] == rows[1]


def test_an_auto_encoder_of_each_fold_knows_its_public_posts_only(papers, posts, tmp_path, monkeypatch):
    seen = []

    class Auto:
        def __init__(self, **_):
            self.text_encoder_ = self

        def fit(self, texts):
            seen.append(set(texts))
            return self

        def encode(self, texts):
            return np.ones((len(texts), 4), dtype=np.float32)

    monkeypatch.setattr(papers.stored, "AutoEncoder", Auto)
    parts = papers.cells.split(posts, 3, 1)
    public = [entry for entry, _, _ in parts]
    result = papers.stored.stored_vectors("GRU", posts, tmp_path, public, seed=1)
    assert len(result) == len(seen) == 3
    for texts, (rows, senders, tested) in zip(seen, parts, strict=True):
        assert texts == {posts.texts[row] for row in rows}
        assert not texts & {posts.texts[row] for row in [*senders, *tested]}
    papers.stored.stored_vectors("GRU", posts, tmp_path, public, seed=1)
    assert len(seen) == 3  # kept


def test_the_readme_has_room_for_the_tables(papers, out, tmp_path):
    page = (ROOT / "papers" / "dptext" / "README.md").read_text()
    assert page.index(papers.report.START) < page.index(papers.report.END)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{papers.report.START}\nold\n{papers.report.END}\nafter\n")
    papers.report.write_report(out, readme=readme)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text.split()
    assert text.count("### Task: ") == 1


def test_nothing_to_report_is_said(papers, tmp_path):
    with pytest.raises(DataError, match="run the experiment first"):
        papers.report.write_report(tmp_path, readme=None)


# -- TrustPilot --------------------------------------------------------------------------------------------------------


def reviews(tmp_path, rows, header="text,rating,gender,age,country,language,user"):
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_reviews_are_english_and_as_many_of_each_country(papers, tmp_path):
    rows = [f"good {n},5,M,{20 + n},UK,en,u{n // 2}" for n in range(8)]
    rows += [f"bad {n},1,F,{50 + n},DK,en,d{n}" for n in range(3)]
    rows += ["schlecht,1,F,30,DE,de,x", "godt,5,F,30,DK,da,y", "fine,4,M,,US,en,z", "odd,9,M,30,US,en,z"]
    result = papers.trustpilot.read_reviews(reviews(tmp_path, rows), user="user", language="language")
    assert len(result.texts) == 6
    assert sorted(result.attributes["country"].tolist()) == ["Denmark"] * 3 + ["United Kingdom"] * 3
    assert set(result.labels) == {"1", "5"}
    for text, label, gender in zip(result.texts, result.labels, result.attributes["gender"], strict=True):
        assert (text.startswith("good"), label, gender) in ((True, "5", "male"), (False, "1", "female"))
    assert set(result.attributes["age"]) == {"under 35", "over 45"}
    assert result.people.max() + 1 <= 6
    repeated = papers.trustpilot.read_reviews(reviews(tmp_path, rows), user="user", language="language")
    assert repeated.texts == result.texts
    few = papers.trustpilot.read_reviews(reviews(tmp_path, rows), language="language", a_country=2)
    assert np.unique(few.people).size == len(few.texts) == 4


def test_reviews_that_cannot_be_used_are_said_without_a_word_of_theirs(papers, tmp_path):
    path = reviews(tmp_path, ["secret,5,M,30,UK", "words,5,Q,30,DK"], "text,rating,gender,age,country")
    with pytest.raises(DataError, match="expected at least two") as caught:
        papers.trustpilot.read_reviews(path)
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match="country"):
        papers.trustpilot.read_reviews(reviews(tmp_path, ["a,5,M,30"], "text,rating,gender,age"))


def test_bins_of_age(papers):
    assert [papers.trustpilot.age_bin(age) for age in (18, 34.9, 35, 45, 45.5, 80)] == [
        "under 35",
        "under 35",
        "35-45",
        "35-45",
        "over 45",
        "over 45",
    ]


# -- table 1 in ten folds: three attributes, a learnt budget, the first claim ------------------------------------------


def of_table1(papers, setting, name, epsilon=None):
    alpha = 1.0 if papers.methods.NAMES[name].trained is not None else None
    return {"method": name, "epsilon": epsilon, "alpha": alpha}


def test_small_industries_are_one_group(papers, people, posts):
    rare = papers.blogs_posts.posts_for("industry", [*people, blogger(papers, 96)], most=3, smallest=5)
    rare = papers.attributed.with_industry(rare, smallest=49)
    assert set(rare.attributes["industry"]) == {"Arts", papers.attributed.OTHER}  # 49 and 48 bloggers
    assert list(rare.attributes) == ["gender", "age", "industry"]
    result = papers.attributed.with_industry(posts, smallest=5)
    assert result.facts["industry Law"] == 0.5
    assert result.digest != posts.digest


def test_without_noise_a_release_tells_who_is_in_it_and_what_was_said(papers, setting):
    result = papers.first_claim.first_claim(of_table1(papers, setting, "ORIGINAL"), 1, setting=setting)
    assert result["released AUC"] == 1.0  # the positive control
    assert result["words precision low"] > result["words precision blind"]
    assert result["trained AUC low"] < 0.5 < result["trained AUC high"]  # nothing was trained
    noisy = papers.first_claim.first_claim(of_table1(papers, setting, "DIFPRIV", 0.1), 1, setting=setting)
    assert noisy["released AUC high"] < 0.7
    assert noisy["words precision"] < result["words precision"]
    assert noisy.keys() == result.keys()


def test_likelihoods_rank_as_densities_do(papers):
    methods, likelihoods = papers.methods, papers.first_claim.likelihoods
    clean = np.array([[0.6, 0.8], [1.0, 0.0]])
    sent = np.array([[0.6, 0.8], [2.0, 0.9]])
    for name, epsilon in ((methods.OURS_L2, 4.0), (methods.DIFPRIV, 4.0)):
        noise = methods.NAMES[name].randomizer(epsilon)
        result = likelihoods(noise, 2)(clean, sent)
        assert result[0, 0] == 0.0 > result[0, 1]
        assert result[0, 0] - result[1, 0] <= 4.0 + 1e-6  # no more than the budget
    one_sided = likelihoods(methods.NAMES[methods.PRINTED].randomizer(4.0), 2)(clean, sent)
    assert one_sided[1, 0] < -1e6 < one_sided[1, 1]  # below a coordinate: ruled out
    caps = likelihoods(methods.NAMES[methods.OURS].randomizer(4.0), 2)(clean, sent)
    assert set(np.unique(caps)) <= {0.0, 4.0}
    assert caps[0, 0] == 4.0


def test_a_learnt_budget_is_recorded_through_training(papers, setting):
    methods = papers.methods
    for name, epsilon in ((methods.LEARNT_L2, 16.0), (methods.LEARNT_PRINTED, 500.0)):
        result = papers.table1.learnt(of_table1(papers, setting, name, epsilon), 1, setting=setting)
        assert 0 < result["share, least"] <= result["share after 1"] < 1
        assert result["slope of task"] != 0
    fixed = papers.table1.learnt(of_table1(papers, setting, methods.OURS_L2, 16.0), 1, setting=setting)
    assert (fixed["share after 40"], fixed["slope of task"]) == (1.0, 0.0)
    assert fixed.keys() == result.keys()


def test_the_settings_of_table_1(papers, check_settings):
    for part in papers.table1.PARTS:
        check_settings(papers.table1.cells(part))
    assert papers.table1.cells()[0] == papers.cells.REFERENCE
    assert {cell["method"] for cell in papers.table1.cells()} >= {"DPText, learnt", "L2-Laplace, learnt", "ORIGINAL"}


def test_table_1_runs_on_a_file_of_trustpilot(papers, vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(papers.stored, "load_vectors", lambda *_, **__: vectors)
    rng = np.random.default_rng(5)
    kinds = list(WORDS.values())
    lines = []
    for place in range(160):
        country, gender, stars, age = place % 4, place // 4 % 2, place // 8 % 2, (20, 40, 60)[place % 3]
        told = [*rng.choice(kinds[country], 6), *rng.choice(kinds[4 + gender], 4), *rng.choice(kinds[stars], 8)]
        lines.append(f"{' '.join(told)},{(1, 5)[stars]},{'MF'[gender]},{age},{('DK', 'FR', 'UK', 'US')[country]},en")
    path = reviews(tmp_path, lines, "text,rating,gender,age,country,language")
    folder = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work"), "--smallest-group", "5"]
    papers.table1.main(["--quick", "--trustpilot", str(path), "--language", "language", *folder])
    text = (tmp_path / "out" / "table1.md").read_text()
    assert "### Table 1: sentiment, GloVe\n\n160 texts of 160 people, 2 classes, 3 folds, three attributes" in text
    assert "| 0.749 |" in text  # printed
    assert "country: macro-F1" in text
    assert "| 0.154 |" in text
    assert "| DPText, learnt | none (0.1 claimed) |" in text
    assert "| L2-Laplace, learnt | 16 |" in text
    kept = text + "".join(entry.read_text() for entry in (tmp_path / "out").glob("*.jsonl"))
    assert not any(word in kept.split() for word in WORDS["s"])
    with pytest.raises(DataError, match=r"run papers\.dptext\.table1 first"):
        papers.table1_report.write_report(tmp_path, readme=None)


def test_other_runs_of_table_1_stand_beside_the_first(papers, tmp_path):
    file = ROOT / "papers" / "dptext" / "results" / "table 1, topic, GloVe.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    first = [row for row in lines if row.get("seed", 1) == 1]
    repeated = [row | {"seed": 2} for row in first if row.get("settings", {}).get("method") == "ORIGINAL"]
    (tmp_path / file.name).write_text("".join(f"{json.dumps(row)}\n" for row in [*first, *repeated]))
    rows = papers.rows.Rows(tmp_path / file.name)
    assert len(rows.rows) == len(first) - 1
    assert [row.seed for row in rows.again] == [2]
    papers.table1_report.write_report(tmp_path, readme=None)
    text = (tmp_path / "table1.md").read_text()
    assert text.count("**Run again**") == 1
    assert "| ORIGINAL | 2 | " in text
