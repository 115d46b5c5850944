"""papers/dptext on made-up bloggers: splits, senders, the quick forms, and that no post is in a result."""

import json
import math

import numpy as np
import pytest

from dptext import WordVectors
from dptext.errors import DataError

PAPERS = (
    *("dptext.experiment", "dptext.methods", "dptext.report"),
    *("dptext.table1", "dptext.trustpilot", "blogs"),
)
pytest.importorskip("sklearn")
pytest.importorskip("scipy")
pytest.importorskip("torch")

LETTERS = "abcdefghij"
WORDS = {kind: [f"{kind}{one}{other}" for one in LETTERS for other in LETTERS] for kind in "yzvwst"}
KIND = {"Arts": "y", "Law": "z", "female": "v", "male": "w", 15: "s", 40: "t"}


def blogger(papers, place, posts=3):
    """Most words are of the industry, some of the gender and of the age."""
    rng = np.random.default_rng(place)
    values = (("Arts", "Law")[place % 2], ("female", "male")[place // 2 % 2], (15, 40)[place // 4 % 2])
    counts = dict(zip(values, (12, 8, 8), strict=True))
    texts = [
        " ".join(word for value, count in counts.items() for word in rng.choice(WORDS[KIND[value]], count))
        for _ in range(posts)
    ]
    return papers.blogs.Blogger(f"{9000000 + place}", values[1], values[2], values[0], "Leo", tuple(texts))


@pytest.fixture(scope="module")
def people(papers):
    return [blogger(papers, place) for place in range(96)]


@pytest.fixture(scope="module")
def vectors():
    """Words of a kind are near each other, in 12 dimensions."""
    rng = np.random.default_rng(3)
    words = [word for kind in WORDS.values() for word in kind]
    middles = np.repeat(rng.normal(size=(len(WORDS), 12)), 100, axis=0)
    return WordVectors([*words, "<unk>"], np.vstack([middles + 0.2 * rng.normal(size=middles.shape), np.zeros(12)]))


@pytest.fixture(scope="module")
def posts(papers, people):
    return papers.blogs.posts_for("industry", people, max_posts=3, min_bloggers=5)


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


def send(papers, labelled, name, epsilon=None, alpha=1.0, seed=1):
    public, private = labelled.take(np.arange(0, 144)), labelled.take(np.arange(144, 288))
    sender = papers.methods.fit_sender(papers.methods.NAMES[name], epsilon, alpha, public, seed)
    return sender.send(private, seed), public, private


def test_a_blogger_is_public_or_a_sender_or_tested(papers, posts):
    parts = papers.experiment.split(posts, 3, 1)
    assert sorted(np.concatenate([tested for _, _, tested in parts]).tolist()) == list(range(len(posts.texts)))
    for sides in parts:
        owners = [set(posts.people[rows].tolist()) for rows in sides]
        assert [len(entry) for entry in owners] == [32, 32, 32]
        assert len(set.union(*owners)) == 96


def test_every_method_has_its_dimension_and_true_epsilon(papers, labelled):
    methods = papers.methods
    for name, method in methods.NAMES.items():
        true = method.true_epsilon(None if method.noise is None else 4.0, 50)
        assert true == (4.0 if method.noise not in (None, "DPText") else math.inf), name
        if name not in methods.PRINTED_LAMBDA.values():  # another weight of the regulariser
            result, _, _ = send(papers, labelled, name, None if method.noise is None else 16.0)
            width = {methods.LABEL: 2, methods.DECISION: 2}.get(name, method.dimension or 12)
            assert result.shape == (144, width), name
            assert np.isfinite(result).all()
    one, other = (send(papers, labelled, methods.UNTRAINED, 4.0, seed=seed)[0] for seed in (1, 2))
    assert np.abs(one - other).max() > 0.1  # noise differs by the fold


def test_the_decision_is_kept_as_often_as_randomised_response_says(papers, labelled):
    from scipy import stats

    epsilon, draws, kept = 1.0, 60, 0
    sure, _, _ = send(papers, labelled, papers.methods.DECISION, 50.0)
    for seed in range(draws):
        result, _, _ = send(papers, labelled, papers.methods.DECISION, epsilon, seed=seed)
        assert (result.sum(axis=1) == 1).all()
        kept += int((result.argmax(axis=1) == sure.argmax(axis=1)).sum())
    chance = math.exp(epsilon) / (math.exp(epsilon) + 1)
    assert stats.binomtest(kept, draws * 144, chance).pvalue > 1e-6
    assert stats.binomtest(kept, draws * 144, 1 - chance).pvalue < 1e-6


def test_the_quick_form_resumes_reports_and_writes_no_post(papers, people, vectors, tmp_path, monkeypatch, capsys):
    methods = papers.methods
    names = (methods.LABEL, methods.ORIGINAL, methods.ADV_ALL, methods.PRINTED, methods.OURS, methods.DIFPRIV)
    small = {"tasks": ("industry",), "names": names, "epsilons": (methods.MAIN,), "alphas": (3.0,), "max_posts": 2}
    small |= {"min_bloggers": 5, "smallest_group": 5, "folds": 3, "resamples": 20, "attackers": ("linear",)}
    monkeypatch.setattr(papers.experiment, "bloggers", lambda _: iter(people))
    monkeypatch.setattr(papers.experiment, "load_vectors", lambda *_, **__: vectors)
    monkeypatch.setattr(papers.experiment, "QUICK", papers.experiment.Plan(**small))
    papers.experiment.main(["--quick", "--out", str(tmp_path)])
    text = (tmp_path / "tables.md").read_text()
    for line in (
        "192 posts of 96 bloggers, 2 classes, 3 folds",
        "| DPText as published | none (0.1 claimed) |",
        "| ours, PrivUnit | 16 |",
        "| ORIGINAL | none |",
    ):
        assert line in text
    path = tmp_path / "industry, GloVe.jsonl"
    before = path.read_text()
    path.write_text("".join(before.splitlines(keepends=True)[:-1]))
    printed = "".join(capsys.readouterr())
    papers.experiment.main(["--quick", "--out", str(tmp_path)])
    assert capsys.readouterr().err.count(" of 9:") == 1
    assert json.loads(path.read_text().splitlines()[-1])["numbers"] == json.loads(before.splitlines()[-1])["numbers"]
    kept = "".join(path.read_text() for path in tmp_path.iterdir() if path.suffix in (".md", ".jsonl"))
    for output in (kept, printed):
        assert "900000" not in output
        assert not set(people[0].posts[0].split()) & set(output.split())


def test_an_auto_encoder_of_each_fold_sees_its_public_posts_only(papers, posts, tmp_path, monkeypatch):
    seen = []

    class Encoder:
        def encode(self, texts):
            return np.ones((len(texts), 4), dtype=np.float32)

    def train(texts, **_):
        seen.append(set(texts))
        return Encoder(), [1.0]

    monkeypatch.setattr(papers.experiment, "train_autoencoder", train)
    parts = papers.experiment.split(posts, 3, 1)
    public = [entry for entry, _, _ in parts]
    assert len(papers.experiment.stored_vectors("GRU", posts, tmp_path, public, seed=1)) == len(seen) == 3
    for texts, (rows, senders, tested) in zip(seen, parts, strict=True):
        assert texts == {posts.texts[row] for row in rows}
        assert not texts & {posts.texts[row] for row in [*senders, *tested]}
    papers.experiment.stored_vectors("GRU", posts, tmp_path, public, seed=1)
    assert len(seen) == 3  # stored
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


# -- TrustPilot --------------------------------------------------------------------------------------------------------


def reviews(tmp_path, rows):
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(["text,rating,gender,age,country", *rows]) + "\n")
    return path


def test_unusable_reviews_are_reported_without_a_word_of_them(papers, tmp_path):
    path = reviews(tmp_path, ["secret,5,M,30,UK", "words,5,Q,30,DK"])
    with pytest.raises(DataError, match="expected at least 2") as caught:
        papers.trustpilot.read_reviews(path)
    assert "secret" not in str(caught.value)


# -- table 1: three attributes, a learned budget, the first claim ------------------------------------------------------


def test_likelihoods_rank_as_densities_do(papers):
    methods, likelihoods = papers.methods, papers.table1.likelihoods
    clean = np.array([[0.6, 0.8], [1.0, 0.0]])
    sent = np.array([[0.6, 0.8], [2.0, 0.9]])
    for name, epsilon in ((methods.OURS_L2, 4.0), (methods.DIFPRIV, 4.0)):
        result = likelihoods(methods.NAMES[name].randomizer(epsilon), 2)(clean, sent)
        assert result[0, 0] == 0.0 > result[0, 1]
        assert result[0, 0] - result[1, 0] <= 4.0 + 1e-6  # no more than the budget
    one_sided = likelihoods(methods.NAMES[methods.PRINTED].randomizer(4.0), 2)(clean, sent)
    assert one_sided[1, 0] < -1e6 < one_sided[1, 1]  # below a coordinate: ruled out
    caps = likelihoods(methods.NAMES[methods.OURS].randomizer(4.0), 2)(clean, sent)
    assert set(np.unique(caps)) <= {0.0, 4.0}
    assert caps[0, 0] == 4.0


def test_table_1_runs_on_a_file_of_trustpilot(papers, vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(papers.experiment, "load_vectors", lambda *_, **__: vectors)
    monkeypatch.setattr(papers.table1, "SMALLEST_GROUP", 5)
    rng = np.random.default_rng(5)
    kinds = list(WORDS.values())
    lines = []
    for place in range(160):
        country, gender, stars, age = place % 4, place // 4 % 2, place // 8 % 2, (20, 40, 60)[place % 3]
        words = [*rng.choice(kinds[country], 6), *rng.choice(kinds[4 + gender], 4), *rng.choice(kinds[stars], 8)]
        lines.append(f"{' '.join(words)},{(1, 5)[stars]},{'MF'[gender]},{age},{('DK', 'FR', 'UK', 'US')[country]}")
    path = reviews(tmp_path, lines)
    papers.table1.main(["--quick", "--trustpilot", str(path), "--out", str(tmp_path / "out")])
    text = (tmp_path / "out" / "table1.md").read_text()
    for part in ("160 texts of 160 people, 2 classes, 3 folds, three attributes", "| 0.749 |", "country: macro-F1"):
        assert part in text
    assert "| DPText, learnt | none (0.1 claimed) |" in text or "DPText, learned" in text
    kept = text + "".join(entry.read_text() for entry in (tmp_path / "out").glob("*.jsonl"))
    assert not any(word in kept.split() for word in WORDS["s"])
