"""The blogs of papers/dpnr on made-up bloggers: what is drawn of them, what a server sees, and that nobody is shown."""

import json
from pathlib import Path

import numpy as np
import pytest

from dptext import WordVectors
from dptext.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
PAPERS = (
    "dpnr.blogs",
    "dpnr.blogs_cells",
    "dpnr.blogs_figure",
    "dpnr.blogs_printed",
    "dpnr.blogs_report",
    "blogs_posts",
)
pytest.importorskip("sklearn")
pytest.importorskip("scipy")


LETTERS = "abcdefghij"
WORDS = {kind: [f"{kind}{one}{other}" for one in LETTERS for other in LETTERS] for kind in "xyzvw"}
OF = {"Student": "x", "Arts": "y", "Law": "z", "female": "v", "male": "w"}
INDUSTRIES = ("Student", "Arts", "Law", "indUnk")


def blogger(papers, place, posts=3):
    """Most words are of the industry, the others of the gender."""
    rng = np.random.default_rng(place)
    industry, gender = INDUSTRIES[place % 4], ("female", "male")[place // 4 % 2]
    words = [
        *rng.choice(WORDS[OF.get(industry, "x")], (posts, 20)),
        *rng.choice(WORDS[OF[gender]], (posts, 10)),
    ]
    texts = [" ".join([*words[post], *words[posts + post]]) for post in range(posts)]
    age = (15, 25, 40)[place // 8 % 3]
    return papers.blogs_posts.Blogger(f"{9000000 + place}", gender, age, industry, "Leo", (*texts, "too short"))


@pytest.fixture(scope="module")
def people(papers):
    return [blogger(papers, place) for place in range(96)]


@pytest.fixture(scope="module")
def vectors():
    """Words of a kind lie together, in 20 dimensions."""
    rng = np.random.default_rng(3)
    words = [word for kind in WORDS.values() for word in kind]
    middles = np.repeat(rng.normal(size=(len(WORDS), 20)), 100, axis=0)
    return WordVectors([*words, "<unk>"], np.vstack([middles + 0.2 * rng.normal(size=middles.shape), np.zeros(20)]))


@pytest.fixture(scope="module")
def device(papers, vectors):
    return papers.blogs_cells.Device(vectors, smallest_group=5, folds=2)


@pytest.fixture(scope="module")
def posts(papers, people):
    return papers.blogs_posts.posts_for("industry", people, most=2, smallest=5)


def test_posts_are_drawn_of_people_whose_industry_is_known(papers, people, posts):
    assert set(posts.labels) == {"Student", "Arts", "Law"}
    assert len(posts.texts) == 2 * 72
    assert np.bincount(posts.people).tolist() == [2] * 72
    assert "too short" not in posts.texts
    repeated = papers.blogs_posts.posts_for("industry", people, most=2, smallest=5)
    assert repeated.texts == posts.texts
    assert set(posts.age) == set(papers.blogs_posts.AGES)
    known = [person for person in people if person.industry != "indUnk"]
    for text, owners, gender in zip(posts.texts, posts.people, posts.gender, strict=True):
        assert text in known[owners].posts
        assert gender == known[owners].gender
    without = papers.blogs_posts.posts_for(papers.blogs_posts.NO_STUDENT, people, most=2, smallest=5)
    assert set(without.labels) == {"Arts", "Law"}
    assert without.facts["bloggers"] == 48
    assert without.facts["digest"] != posts.facts["digest"]
    assert sum(value for name, value in posts.facts.items() if name.startswith("age ")) == pytest.approx(1, abs=1e-3)


def test_labels_that_few_have_are_left_out(papers, people):
    few = [person for person in people if person.industry != "Law"] + [blogger(papers, 2)]
    result = papers.blogs_posts.posts_for("industry", few, most=2, smallest=5)
    assert set(result.labels) == {"Student", "Arts"}
    assert result.people.max() + 1 == len(set(result.people)) == 48
    with pytest.raises(DataError, match="two labels of at least 30 bloggers"):
        papers.blogs_posts.posts_for("industry", people, most=2, smallest=30)
    with pytest.raises(DataError, match="no blogger for the task") as caught:
        papers.blogs_posts.posts_for(
            "industry", [papers.blogs_posts.Blogger("9000", "male", 20, "Law", "Leo", ("secret",))], most=2, smallest=5
        )
    assert "secret" not in str(caught.value)


def test_topics_are_those_of_the_posts(papers):
    """Of 240 posts in two vocabularies, those that the model is sure of are in topics of one vocabulary."""
    rng = np.random.default_rng(5)
    texts = []
    for place in range(240):
        words = rng.integers(600, size=40)
        texts.append(
            " ".join(f"{'yz'[place % 2]}{LETTERS[n // 100]}{LETTERS[n // 10 % 10]}{LETTERS[n % 10]}" for n in words)
        )
    topics = papers.blogs_posts._topics(texts, passes=10)
    kinds = np.arange(240) % 2
    sure = topics != ""
    assert sure.sum() > 100
    shares = [(kinds[topics == topic].mean(), (topics == topic).sum()) for topic in np.unique(topics[sure])]
    wrong = sum(min(share, 1 - share) * count for share, count in shares)
    assert wrong / sure.sum() < 0.15  # where they tell nothing: about .4


def test_blogs_with_topics_are_of_the_young_and_the_old(papers, people, monkeypatch):
    monkeypatch.setattr(
        papers.blogs_posts, "_topics", lambda texts, _: np.array(["a", "b", "b", ""] * len(texts))[: len(texts)]
    )
    result = papers.blogs_posts.posts_for("topic", people, most=1, smallest=5)
    assert set(result.age) == {"13-17", "33-48"}
    assert len(result.texts) == 2 * 48 * 3 // 4  # two posts each, one in four without a topic
    assert np.bincount(result.people).min() > 0


def cell(mechanism, epsilon=None, mu=0.0):
    return {"mechanism": mechanism, "epsilon": epsilon, "mu": mu}


def test_one_scalar_is_undone_and_noise_on_every_coordinate_is_not(papers, device, posts):
    cells = papers.blogs_cells
    clean = device.seen(posts, cell(cells.NONE), 1)
    assert clean.min() == 0.0
    assert clean.max() == 1.0
    for epsilon in (0.05, 5.0):
        np.testing.assert_allclose(device.seen(posts, cell(cells.SCALAR, epsilon), 1), clean, atol=1e-4)
    sent = device.seen(posts, cell(cells.AS_SENT, 0.05), 1)
    assert np.abs(sent - clean).max() > 10
    np.testing.assert_allclose(sent - sent.min(axis=1, keepdims=True), clean, atol=1e-4)
    noise = device.seen(posts, cell(cells.DPNR, 1.0), 1) - clean
    assert noise.std() == pytest.approx(2**0.5, rel=0.2)  # 2,880 draws
    assert np.abs(np.diff(noise, axis=1)).max() > 1


def test_masked_words_count_for_nothing(papers, device, posts, vectors):
    encoded = papers.blogs_cells._encoded
    assert (encoded(device, posts, 1.0, 1) == 0).all()  # "<unk>", where no word is left
    assert (encoded(device, posts, 0.0, 1) != 0).any()
    half = [len(text.split()) for text in papers.blogs_cells.mask_words(posts.texts, mu=0.5, mask="#", seed=1).texts]
    assert half == [30] * len(posts.texts)
    no_mask = papers.blogs_cells.MASK
    assert no_mask not in vectors.words
    np.testing.assert_array_equal(device.encoder.encode([f"xaa {no_mask} {no_mask}"]), device.encoder.encode(["xaa"]))


def test_true_epsilons(papers):
    true = papers.blogs_cells.true_epsilon_of
    assert true("DPNR", 0.05, 50) == 2.5
    assert true("DPNR, one scalar", 5.0, 50) == true("DPNR, one scalar, as sent", 5.0, 50) == np.inf
    assert true("no noise", None, 50) == np.inf
    for name in papers.blogs_cells.OURS:
        assert true(name, 4.0, 50) == 4.0


def test_printed_numbers(papers):
    printed = papers.blogs_printed.printed_accuracy
    assert printed(None, 0.0) == pytest.approx(0.9707)
    assert printed(0.05, 0.0) == pytest.approx(0.9669)
    assert printed(1.0, 0.8) == pytest.approx(0.8294)
    assert printed(16.0, 0.0) is None


@pytest.fixture(scope="module")
def out(papers, people, vectors, tmp_path_factory):
    """Results of a small plan."""
    patch = pytest.MonkeyPatch()
    patch.setattr(papers.blogs, "bloggers", lambda _: iter(people))
    patch.setattr(papers.blogs, "load_vectors", lambda *_, **__: vectors)
    patch.setattr(papers.blogs, "QUICK", small(papers))
    patch.setattr("sklearn.neural_network.MLPClassifier", small_network())
    folder = tmp_path_factory.mktemp("out")
    papers.blogs.main(["--quick", "--out", str(folder)])
    yield folder
    patch.undo()


def small_network():
    """The attacker of a minute's work, in place of two layers of 512."""
    from sklearn.neural_network import MLPClassifier

    class Small(MLPClassifier):
        def fit(self, rows, labels, sample_weight=None):
            self.hidden_layer_sizes = (8,)
            return super().fit(rows, labels, sample_weight=sample_weight)

    return Small


def small(papers):
    return papers.blogs.Plan(
        tasks=("topic", "industry"),
        epsilons=(1.0,),
        mus=(0.5,),
        our_epsilons=(50.0,),
        ours=("PrivUnit",),
        most=2,
        smallest_label=5,
        smallest_topic=3,
        smallest_group=3,
        folds=2,
    )


def rows_of(out, task):
    return [json.loads(line) for line in (out / f"blogs {task}.jsonl").read_text().splitlines()[1:]]


def test_it_runs_and_says_what_it_found(papers, out):
    text = (out / "blogs.md").read_text()
    assert "### Task: industry\n\n144 posts of 72 bloggers, 3 classes" in text
    assert "| DPNR |  | 1 | 20 |" in text  # claimed and true
    assert "| DPNR, one scalar | 50% | 1 | infinite |" in text
    assert "0.9707" not in text
    assert "0.971" in text  # printed, to three digits
    assert "printed: adversarial" in text
    result = {(row["settings"]["mechanism"], row["settings"]["mu"]): row["numbers"] for row in rows_of(out, "industry")}
    clean = result["no noise", 0.0]
    assert clean["task accuracy"] > 0.9
    assert clean["gender linear low"] > clean["gender linear blind"]  # the attack is alive
    assert result["DPNR, one scalar", 0.0]["task accuracy"] == pytest.approx(clean["task accuracy"], abs=0.01)
    assert result["DPNR, one scalar", 0.0]["largest change"] < 1e-5
    gap = clean["gender male"] - clean["gender female"]
    assert clean["gender gap male less female"] == pytest.approx(gap)
    for name, value in clean.items():
        if name.endswith(" low"):
            assert value <= clean[name.removesuffix(" low")] <= clean[name.removesuffix("low") + "high"]


def test_nobody_is_shown(out, people, capsys):
    kept = "".join(file.read_text(errors="ignore") for file in out.iterdir() if file.suffix in (".md", ".jsonl"))
    printed = capsys.readouterr()
    for text in (kept, printed.out, printed.err):
        assert "900000" not in text
        assert not any(word in text.split() for word in people[0].posts[0].split())


def test_it_goes_on_where_it_stopped(papers, out, capsys):
    path = out / "blogs industry.jsonl"
    before = path.read_text()
    path.write_text("".join(before.splitlines(keepends=True)[:-1]))
    first = rows_of(out, "industry")
    papers.blogs.main(["--quick", "--out", str(out)])
    assert capsys.readouterr().out.count(" of 8") == 1
    repeated = rows_of(out, "industry")
    assert repeated[:-1] == first
    assert repeated[-1]["numbers"] == json.loads(before.splitlines()[-1])["numbers"]


def test_the_figure(papers, out, tmp_path):
    pytest.importorskip("matplotlib")
    papers.blogs_figure.draw({"topic": papers.blogs_report.Rows(out / "blogs topic.jsonl")}, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_readme_has_room_for_the_tables(papers, out, tmp_path):
    page = (ROOT / "papers" / "dpnr" / "README.md").read_text()
    assert page.index(papers.blogs_report.START) < page.index(papers.blogs_report.END)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{papers.blogs_report.START}\nold\n{papers.blogs_report.END}\nafter\n")
    papers.blogs_report.write_report(out, readme=readme)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text.split()
    assert text.count("### Task: ") == 1  # the one with printed numbers; the file has all
    assert (out / "blogs.md").read_text().count("### Task: ") == 2
    assert "| printed: adversarial, not run |" in text
    assert "macro-F1" in (out / "blogs.md").read_text()
    assert "macro-F1" not in text


def test_nothing_to_report_is_said(papers, tmp_path):
    with pytest.raises(DataError, match="run the experiment first"):
        papers.blogs_report.write_report(tmp_path, readme=None)
