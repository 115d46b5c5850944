"""The blogs of papers/dpnr on made-up bloggers: samples, what a server receives, and that no post is in a result."""

import json

import numpy as np
import pytest

from dptext import WordVectors

PAPERS = ("dpnr.blogs", "dpnr.blogs_report", "blogs")
pytest.importorskip("sklearn")
pytest.importorskip("scipy")

LETTERS = "abcdefghij"
WORDS = {kind: [f"{kind}{one}{other}" for one in LETTERS for other in LETTERS] for kind in "xyzvw"}
KIND = {"Student": "x", "Arts": "y", "Law": "z", "female": "v", "male": "w"}
INDUSTRIES = ("Student", "Arts", "Law", "indUnk")


@pytest.fixture(scope="module")
def all_blogs(papers):
    """The modules papers.blogs (the data) and papers.dpnr.blogs (the experiment) have the same last name."""
    from importlib import import_module

    return import_module("papers.blogs"), import_module("papers.dpnr.blogs")


def blogger(blogs, place, posts=3):
    """Most words are of the industry, the others of the gender."""
    rng = np.random.default_rng(place)
    industry, gender = INDUSTRIES[place % 4], ("female", "male")[place // 4 % 2]
    words = [*rng.choice(WORDS[KIND.get(industry, "x")], (posts, 20)), *rng.choice(WORDS[KIND[gender]], (posts, 10))]
    texts = [" ".join([*words[post], *words[posts + post]]) for post in range(posts)]
    age = (15, 25, 40)[place // 8 % 3]
    return blogs.Blogger(f"{9000000 + place}", gender, age, industry, "Leo", (*texts, "too short"))


@pytest.fixture(scope="module")
def people(all_blogs):
    return [blogger(all_blogs[0], place) for place in range(96)]


@pytest.fixture(scope="module")
def vectors():
    """Words of a kind are near each other, in 20 dimensions."""
    rng = np.random.default_rng(3)
    words = [word for kind in WORDS.values() for word in kind]
    middles = np.repeat(rng.normal(size=(len(WORDS), 20)), 100, axis=0)
    return WordVectors([*words, "<unk>"], np.vstack([middles + 0.2 * rng.normal(size=middles.shape), np.zeros(20)]))


@pytest.fixture(scope="module")
def device(all_blogs, vectors):
    return all_blogs[1].Device(vectors, smallest_group=5, folds=2)


@pytest.fixture(scope="module")
def posts(all_blogs, people):
    return all_blogs[0].posts_for("industry", people, max_posts=2, min_bloggers=5)


def setting(mechanism, epsilon=None, mu=0.0):
    return {"mechanism": mechanism, "epsilon": epsilon, "mu": mu}


def test_one_scalar_is_undone_and_noise_on_every_coordinate_is_not(papers, device, posts):
    names = papers.blogs_report
    clean = device.received(posts, setting(names.NONE), 1)
    assert (clean.min(), clean.max()) == (0.0, 1.0)
    for epsilon in (0.05, 5.0):
        np.testing.assert_allclose(device.received(posts, setting(names.SCALAR, epsilon), 1), clean, atol=1e-4)
    sent = device.received(posts, setting(names.AS_SENT, 0.05), 1)
    assert np.abs(sent - clean).max() > 10
    np.testing.assert_allclose(sent - sent.min(axis=1, keepdims=True), clean, atol=1e-4)
    noise = device.received(posts, setting(names.DPNR, 1.0), 1) - clean
    assert noise.std() == pytest.approx(2**0.5, rel=0.2)  # 2,880 draws
    assert np.abs(np.diff(noise, axis=1)).max() > 1


def small_network():
    """An attacker of a minute's work, in place of two layers of 512."""
    from sklearn.neural_network import MLPClassifier

    class Small(MLPClassifier):
        def fit(self, rows, labels, sample_weight=None):
            self.hidden_layer_sizes = (8,)
            return super().fit(rows, labels, sample_weight=sample_weight)

    return Small


def test_the_quick_form_resumes_reports_and_writes_no_post(all_blogs, people, vectors, tmp_path, monkeypatch, capsys):
    _, experiment = all_blogs
    small = {"tasks": ("topic", "industry"), "epsilons": (1.0,), "mus": (0.5,), "true_epsilons": (50.0,)}
    small |= {"proved": ("PrivUnit",), "max_posts": 2, "min_bloggers": 5, "min_bloggers_of_topic": 3}
    plan = experiment.Plan(**small, smallest_group=3, folds=2)
    monkeypatch.setattr(experiment, "bloggers", lambda _: iter(people))
    monkeypatch.setattr(experiment, "load_vectors", lambda *_, **__: vectors)
    monkeypatch.setattr(experiment, "QUICK", plan)
    monkeypatch.setattr("sklearn.neural_network.MLPClassifier", small_network())
    arguments = ["--quick", "--out", str(tmp_path)]
    experiment.main(arguments)
    text = (tmp_path / "blogs.md").read_text()
    for part in (
        "144 posts of 72 bloggers, 3 classes",
        "| DPNR |  | 1 | 20 |",  # claimed and true
        "| DPNR, one scalar | 50% | 1 | infinite |",
        "0.971",  # printed 0.9707
        "printed: adversarial",
    ):
        assert part in text
    path = tmp_path / "blogs industry.jsonl"
    before = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    result = {(row["settings"]["mechanism"], row["settings"]["mu"]): row["numbers"] for row in before}
    clean, undone = result["no noise", 0.0], result["DPNR, one scalar", 0.0]
    assert clean["task accuracy"] > 0.9
    assert clean["gender linear low"] > clean["gender linear blind"]  # the attack works
    assert undone["task accuracy"] == pytest.approx(clean["task accuracy"], abs=0.01)
    assert undone["largest change"] < 1e-5
    assert clean["gender gap male less female"] == pytest.approx(clean["gender male"] - clean["gender female"])
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    printed = "".join(capsys.readouterr())
    experiment.main(arguments)
    assert capsys.readouterr().err.count(" of 8") == 1
    assert json.loads(path.read_text().splitlines()[-1])["numbers"] == before[-1]["numbers"]
    kept = "".join(file.read_text() for file in tmp_path.iterdir() if file.suffix in (".md", ".jsonl"))
    for output in (kept, printed):
        assert "900000" not in output
        assert not set(people[0].posts[0].split()) & set(output.split())
