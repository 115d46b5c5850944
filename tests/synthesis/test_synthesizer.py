"""A description of people's texts: what it promises, what it may depend on, and what comes out of it."""

import dataclasses
import json

import numpy as np
import pytest

import dptext
import dptext.synthesis.prompts as sources
import dptext.synthesis.synthesizer as synthesizer_module
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.noise.gaussian_sums import MOST_USERS
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement, release_statement
from dptext.synthesis.distribution import noise_is_enough
from dptext.synthesis.planning import COVERED, expected_quality
from dptext.synthesis.prompts import OverlapWarning
from dptext.users.private_vocabulary import PrivateLabels

WORDS = ["tea", "cup", "cocoa", "tax", "law", "court"]
VECTORS = dptext.load_vectors((WORDS, [[2, 0.1], [1.5, 0.3], [2, 0.4], [-1, 2], [-2, 2], [-1.5, 1.8]]))
ENCODER = dptext.MeanOfWords(VECTORS)
POOL = [f"{one} {other} {number}" for one in WORDS for other in WORDS for number in ("", "please", "today")]
LABELS = ["drinks", "rules"]
MARKER = "Zaphod"


def documents(users=100, per_user=2):
    texts = {"drinks": "my cup of tea", "rules": "the law on tax"}
    return [
        dptext.Document(f"{texts[label]} {MARKER}", user=f"{MARKER} {label} {user}", label=label)
        for user in range(users)
        for label in LABELS
        for _ in range(per_user)
    ]


def synthesizer(**changes):
    fields = {"epsilon": 2.0, "labels": LABELS, "features": ENCODER, "cache": False}
    return dptext.Synthesizer(**fields | changes)


def fitted(given=None, **changes):
    return synthesizer(**changes).fit(documents() if given is None else given, public=POOL)


def test_the_statement_says_what_was_promised():
    statement = fitted().statement
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.ADD_REMOVE, Trust.CENTRAL)
    assert statement.guarantee == ApproxDP(2.0, 1e-6)
    sigma = statement.parameters["sigma"]
    assert gaussian_delta(sigma, epsilon=2.0, sensitivity=1.0) <= 1e-6
    assert gaussian_delta(sigma * 0.999, epsilon=2.0, sensitivity=1.0) > 1e-6
    assert statement.parameters["epsilon_under_substitution"] > 4
    assert not statement.seeded
    assert MARKER not in statement.to_json()
    assert MARKER not in " ".join(statement.explain().split())


def test_labels_do_not_cost_one_by_one():
    assert fitted(labels=[*LABELS, *map(str, range(50))]).sigma == fitted(labels=None).sigma


def test_neither_order_nor_chunks_nor_foreign_labels_change_the_release():
    values = documents()
    shuffled = [values[place] for place in np.random.default_rng(1).permutation(len(values))]
    foreign = [dptext.Document("tea " * 99, user=f"{MARKER} {n}", label=n) for n in ("other", None, "", 7)]
    release = fitted(values, seed=3)
    for entry in (shuffled, [*values, *foreign]):
        assert (fitted(entry, seed=3).matrix == release.matrix).all()
    assert release.statement.seeded


def test_without_a_seed_no_two_releases_are_alike():
    assert not np.isin(fitted().matrix, fitted().matrix).any()


def test_every_number_gets_noise_those_of_a_label_that_nobody_has_too():
    matrix = fitted(labels=[*LABELS, "never"]).matrix
    assert (matrix[2] != 0).all()


@pytest.mark.usefixtures("same_draws")
def test_texts_that_are_chosen_carry_the_right_label_and_no_private_word():
    sample = fitted(epsilon=8.0).sample(POOL, 40, seed=1)
    assert sample.documents == len(sample.texts) == len(set(sample.texts)) == 40
    right = [
        label == ("drinks" if text.split()[0] in WORDS[:3] else "rules")
        for text, label in zip(sample.texts, sample.labels, strict=True)
        if len({word in WORDS[:3] for word in text.split()[:2]}) == 1
    ]
    assert np.mean(right) > 0.9
    assert not any(MARKER in text for text in sample.texts)
    assert sample.statement.parameters["texts"] == 40
    assert any("the pool is public" in assumption for assumption in sample.statement.assumptions)


@pytest.mark.parametrize("shares", ["released", "uniform"])
@pytest.mark.usefixtures("same_draws")
def test_shares_of_labels(shares):
    values = [
        document for document in documents(users=200) if document.label == "drinks" or document.user.endswith("7")
    ]
    result = fitted(values, epsilon=8.0).sample(POOL, 40, shares=shares, seed=1).labels.count("rules")
    assert result == 20 if shares == "uniform" else 0 < result < 10


class Boaster:
    """A source that says more than it may, in what no file can hold."""

    name = "boaster"

    def propose(self, request):
        return [f"a cup \udc80 {n}" for n in range(50)]

    def vary(self, texts, request):
        return []

    def parameters(self):
        return {"epsilon": 0.1, "sigma": 99.0, "model": "mine"}

    def assumptions(self):
        return ()

    def exposed(self):
        return ()


def test_a_source_does_not_speak_for_the_release():
    release = fitted()
    generated = release.generate(Boaster(), 4)
    parameters = generated.statement.parameters
    assert (parameters["epsilon"], parameters["sigma"]) == (2.0, release.sigma)
    assert parameters["model"] == "mine"
    assert all(text.encode() for text in generated.texts)


def test_a_prediction_of_what_cannot_be_is_refused():
    for how in [
        {"people": MOST_USERS + 1},
        {"people": 2**62},
        {"people": 0},
        {"people": 1.5},
        {"people": 5, "epsilon": 0},
    ]:
        with pytest.raises(ParameterError):
            expected_quality(POOL, features=ENCODER, labels=LABELS, cache=False, **how)


def test_a_prediction_takes_every_budget_that_a_release_takes():
    weak, strong = (
        expected_quality(POOL, features=ENCODER, labels=LABELS, cache=False, epsilon=entry, people=people)[0]
        for entry, people in ((1e-3, 1), (1e9, MOST_USERS))
    )
    assert weak.sigma == synthesizer(epsilon=1e-3).terms.budget.sigma
    assert strong.agreement == 1.0


def two_kinds(count, seed, shares=(0.5, 0.5)):
    """Made-up texts of two kinds that share half of their words, with their labels."""
    generator = np.random.default_rng(seed)
    labels = generator.choice(LABELS, count, p=shares)
    words = {"drinks": ["tea", "cup", "law"], "rules": ["tax", "law", "cup"]}
    return [" ".join([*generator.choice(words[label], 5), f"n{n}"]) for n, label in enumerate(labels)], labels.tolist()


@pytest.mark.parametrize("people", [60, 1000])
def test_the_interval_covers_the_accuracy_of_releases_at_the_stated_rate(people):
    fields = {"labels": LABELS, "features": ENCODER, "cache": False, "epsilon": 0.5}
    inside, widths = [], []
    for seed in range(20):  # seeded; other public texts, people and noise each time
        pool, labels = two_kinds(300, seed)
        [expected] = expected_quality(pool, people=people, public_labels=labels, seed=seed, **fields)
        texts, right = two_kinds(people, 100 + seed)
        values = [
            dptext.Document(text, user=str(n), label=label)
            for n, (text, label) in enumerate(zip(texts, right, strict=True))
        ]
        release = dptext.Synthesizer(seed=seed, **fields).fit(values, public=pool)
        others, target = two_kinds(2000, 200 + seed)
        score = np.mean(release.predict(others) == np.array(target))
        low, high = expected.accuracy
        inside.append(low <= score <= high)
        widths.append(high - low)
    assert COVERED == 0.9
    assert np.mean(inside) >= 0.75  # at 90%, fewer than 15 of 20 are inside with a chance of 1%
    assert np.median(widths) < (0.8 if people < 100 else 0.15)


def test_accuracy_is_unknown_without_public_labels():
    fields = {"labels": {"drinks": "tea cup cocoa", "rules": "tax law court"}, "features": ENCODER, "cache": False}
    pool, labels = two_kinds(400, 0)
    [unknown] = expected_quality(pool, people=500, epsilon=1.0, seed=1, **fields)
    assert (unknown.accuracy, unknown.descriptions) == (None, None)
    [known] = expected_quality(pool, people=500, epsilon=1.0, public_labels=labels, seed=1, **fields)
    assert known.descriptions > 0.7
    assert known.accuracy[0] > 0.7
    for wrong in (labels[:-1], ["other"] * len(pool)):
        with pytest.raises(ParameterError, match=r"public_labels|public labels"):
            expected_quality(pool, people=500, public_labels=wrong, **fields)
    with pytest.raises(ParameterError, match="need labels="):
        expected_quality(pool, people=500, public_labels=labels, features=ENCODER, cache=False)


def test_a_prediction_warns_before_the_budget_is_spent():
    fields = {"features": ENCODER, "cache": False, "epsilon": 1.0, "seed": 1}
    pool, labels = two_kinds(400, 0)

    def warnings(people=2000, pool=pool, public_labels=labels, labels=LABELS):
        [expected] = expected_quality(pool, people=people, labels=labels, public_labels=public_labels, **fields)
        return " ".join(expected.warnings)

    assert warnings() == ""
    assert "too few for epsilon 1" in warnings(people=10)
    assert "too few for epsilon 1" in warnings(people=10, public_labels=None)
    rare, few = two_kinds(400, 0, shares=(0.95, 0.05))
    assert "public texts have the label 'rules'" in warnings(pool=rare, public_labels=few)
    described = {"drinks": "tea cup cocoa", "rules": "tax law court"}
    assert "no texts like the described labels" not in warnings(labels=described)
    drinks = [f"{text} {number}" for text in ("tea cup", "cocoa tea", "cup cocoa tea", "tea") for number in range(40)]
    far = warnings(pool=drinks, public_labels=None, labels={"rules": "tax law", "judges": "court of law"})
    assert "no texts like the described labels" in far


def test_rare_labels_and_a_far_pool_are_doubts():
    values = [
        document for document in documents(users=1000) if document.label == "drinks" or document.user.endswith("7")
    ]
    release = fitted(values, epsilon=8.0, seed=1)
    [doubt] = release.doubts()
    assert "--shares uniform" in doubt
    assert "few documents have the label 'rules'" in doubt
    assert release.sample(POOL, 4).doubts == (doubt,)
    assert release.sample(POOL, 4, shares="uniform").doubts == release.doubts(shares="uniform") == ()
    assert not fitted(documents(users=1000), seed=1).doubts()
    far = [f"tea cup n{n}" for n in range(100)] + [f"cocoa n{n}" for n in range(100)] + ["tax", "law tea", "court cup"]
    laws = [dptext.Document("tax law court", user=str(n)) for n in range(500)]
    release = synthesizer(labels=None, seed=1).fit(laws, public=far)
    assert any("too few texts like the described ones" in entry for entry in release.sample(far, 150).doubts)
    near = [f"{one} {other} {n}" for one in WORDS for other in WORDS for n in range(5)]
    mixed = [dptext.Document(text, user=str(n)) for n, text in enumerate(near)]
    assert not any("too few texts" in entry for entry in fitted(mixed, labels=None, seed=1).sample(POOL, 20).doubts)


def test_a_prediction_says_how_many_people_it_takes():
    fields = {"features": ENCODER, "labels": LABELS, "cache": False, "seed": 1}
    few, many = (expected_quality(POOL, people=50, epsilon=entry, **fields)[0] for entry in (0.5, 8.0))
    assert many.seen < few.seen
    [enough] = expected_quality(POOL, people=16 * few.seen, epsilon=0.5, **fields)
    [little] = expected_quality(POOL, people=max(1, few.seen // 16), epsilon=0.5, **fields)
    assert little.agreement < 0.8 < enough.agreement
    assert ("too few" in " ".join(little.warnings), enough.warnings) == (True, ())
    # a release of so many people has no doubt whether labels can be told apart, one of far fewer has
    assert not fitted(documents(users=16 * few.seen), epsilon=0.5, seed=1).doubts()
    assert fitted(documents(users=max(1, few.seen // 16)), epsilon=0.5, seed=1).doubts()


def test_what_noise_hides_is_said():
    release = fitted(documents(users=200), labels=[*LABELS, "taxes"], seed=1)
    assert release.doubts() == release.sample(POOL, 4).doubts
    assert [("taxes" in doubt, "'rules'" in doubt) for doubt in release.doubts()] == [(True, False)]
    foreign = [dptext.Document("xyzzy", user=str(user), label=LABELS[user % 2]) for user in range(100)]
    assert ["cannot be told apart" in doubt for doubt in fitted(foreign, features="words", seed=1).doubts()] == [True]
    assert ["told from its noise" in doubt for doubt in fitted(documents(users=1), epsilon=0.1, seed=1).doubts()] == [
        True
    ]
    assert not fitted(documents(users=200), seed=1).doubts()


def test_the_release_is_a_classifier():
    distribution = fitted(seed=1)
    texts = ["a cup of tea", "the tax court", ""]
    probabilities = distribution.predict_proba(texts)
    assert probabilities.shape == (3, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert distribution.predict(texts).tolist()[:2] == LABELS
    assert distribution.predict(texts).tolist() == [LABELS[code] for code in probabilities.argmax(axis=1)]
    assert distribution.predict([]).tolist() == []
    with pytest.raises(ParameterError, match="no labels to predict"):
        fitted(labels=None).predict_proba(texts)


def test_the_release_is_a_fitted_scikit_learn_classifier():
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.ensemble import VotingClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import get_scorer, log_loss
    from sklearn.pipeline import make_pipeline

    release = fitted(labels=LABELS[::-1], seed=1)  # the order of the labels is not the sorted one of scikit-learn
    texts = ["a cup of tea", "the tax court", "cocoa and tea", "law"] * 3
    truth = ["drinks", "rules", "drinks", "rules"] * 3
    assert release.classes_.tolist() == sorted(LABELS)
    assert release.predict(texts).tolist() == truth
    assert release.score(texts, truth) == 1.0
    assert release.score(texts, ["rules"] * 12) == 0.5
    probabilities = release.predict_proba(texts)
    assert probabilities[0].argmax() == 0
    for name in ("accuracy", "f1_macro"):
        assert get_scorer(name)(release, texts, truth) == 1.0
    assert get_scorer("neg_log_loss")(release, texts, truth) == pytest.approx(-log_loss(truth, probabilities))

    learned = make_pipeline(TfidfVectorizer(), LogisticRegression(class_weight="balanced"))
    both = VotingClassifier([("release", FrozenEstimator(release)), ("learned", learned)], voting="soft")
    both.fit(texts, truth)
    expected = (probabilities + both.named_estimators_["learned"].predict_proba(texts)) / 2
    np.testing.assert_allclose(both.predict_proba(texts), expected)
    assert both.predict(texts).tolist() == truth
    with pytest.raises(ParameterError, match="fitted already"):
        release.fit(texts, truth)
    with pytest.raises(ParameterError, match="one for each of 12 texts, got 11"):
        release.score(texts, truth[1:])


def test_descriptions_classify_where_two_users_take_part(tmp_path):
    """Two users are within the noise; the public descriptions decide, before and after the release is saved."""
    described = {"drinks": "tea cup cocoa", "rules": "tax law court"}
    distribution = fitted(documents(users=1, per_user=1), labels=described, epsilon=0.1, seed=2)
    texts = ["a cup of tea", "cocoa", "the tax court", "law"]
    assert distribution.predict(texts).tolist() == ["drinks", "drinks", "rules", "rules"]
    assert "the descriptions of the labels: they are public" in distribution.statement.exposed
    distribution.save(tmp_path / "release")
    loaded = dptext.TextDistribution.load(tmp_path / "release")
    assert loaded.labels == distribution.labels
    np.testing.assert_array_equal(loaded.predict_proba(texts), distribution.predict_proba(texts))


def test_labels_that_nobody_has_may_be_what_is_wrong():
    text = fitted(labels=["Drinks", "Rules"], seed=1).doubts()
    assert ["spelled in another way" in entry for entry in text] == [True]
    assert "label" not in fitted(documents(users=1), labels=None, epsilon=0.1, seed=1).doubts()[0]


@pytest.mark.usefixtures("same_draws")
def test_hints_are_words_of_the_pool_that_stand_out():
    hints = fitted(epsilon=8.0, features="words").hints(3)
    assert set(hints) == set(LABELS)
    assert set(hints["drinks"]) <= {"tea", "cup", "cocoa", "please", "today"}


def test_several_columns_of_labels_are_classes_together():
    values = [
        dptext.Document(entry.text, user=entry.user, attributes={"topic": entry.label, "stars": 1 + place % 2})
        for place, entry in enumerate(documents())
    ]
    result = fitted(values, labels={"topic": LABELS, "stars": ["1", "2"]})
    sample = result.sample(POOL, 8, seed=2)
    assert result.matrix.shape[0] == 4
    assert set(sample.columns) == {"topic", "stars"}
    assert sample.labels[0] == (sample.columns["topic"][0], sample.columns["stars"][0])


@pytest.mark.usefixtures("same_draws")
def test_without_labels_texts_are_near_to_those_described():
    values = [document for document in documents(users=200) if document.label == "drinks"]
    sample = fitted(values, labels=None, epsilon=8.0).sample(POOL, 20, variety=0.0, seed=1)
    assert sample.columns == {}
    assert np.mean([text.split()[0] in WORDS[:3] for text in sample.texts]) > 0.8


def learned(unit=Unit.USER):
    statement = release_statement(
        guarantee=ApproxDP(0.5, 1e-7), unit=unit, relation=Relation.ADD_REMOVE, trust=Trust.CENTRAL,
        mechanism="private labels", parameters={}, assumptions=(),
    )  # fmt: skip
    return PrivateLabels("topic", tuple(LABELS), statement)


def test_labels_that_were_learned_are_counted_in():
    statement = fitted(labels=learned()).statement
    assert statement.guarantee == ApproxDP(2.5, 1e-6 + 1e-7)
    assert any("counted in" in entry for entry in statement.exposed)
    by_column = fitted(labels={"label": learned(), "stars": [1]}).statement
    assert by_column.guarantee == statement.guarantee
    assert "promise_of_labels of label" in by_column.parameters
    with pytest.raises(RefusedError, match="labels were released under a statement about a document"):
        synthesizer(labels=learned(Unit.DOCUMENT))


def test_a_description_of_learned_labels_can_be_loaded(tmp_path):
    release = fitted(labels=learned())
    release.save(tmp_path / "shared")
    loaded = dptext.TextDistribution.load(tmp_path / "shared")
    assert loaded.statement.guarantee == release.statement.guarantee
    # these labels are no more public than they were: the next description counts them in, too
    assert fitted(labels=loaded.labels).statement.guarantee == release.statement.guarantee


def released_vectors(unit=Unit.USER):
    statement = release_statement(
        guarantee=ApproxDP(0.5, 1e-7), unit=unit, relation=Relation.ADD_REMOVE, trust=Trust.CENTRAL,
        mechanism="word vectors", parameters={}, assumptions=(),
    )  # fmt: skip
    public = VECTORS
    return dptext.MeanOfWords(dptext.WordVectors(public.words, public.matrix, source="shared", statement=statement))


def test_a_statement_that_does_not_count_in_what_was_before_is_found():
    release = fitted(labels=learned())
    assert not release._disagreements()
    forgotten = dataclasses.replace(release, statement=release.statement.replace(guarantee=ApproxDP(2.0, 1.2e-6)))
    assert forgotten._disagreements() == ["guarantee"]
    public = dataclasses.replace(release.labels, learned=())
    assert dataclasses.replace(release, labels=public)._disagreements() == ["promise_of_labels"]


def test_vectors_that_were_released_before_are_counted_in(tmp_path):
    release = fitted(features=released_vectors())
    assert release.statement.guarantee == ApproxDP(2.5, 1e-6 + 1e-7)
    assert "promise_of_vectors" in release.statement.parameters
    assumed = " ".join(release.statement.assumptions)
    assert "counted in above" in assumed
    assert "none was computed" not in assumed
    assert "on top" not in assumed
    twice = fitted(features=[released_vectors(), released_vectors()]).statement
    assert twice.guarantee == release.statement.guarantee  # one release, whose words are used twice
    release.save(tmp_path / "shared")
    loaded = dptext.TextDistribution.load(tmp_path / "shared")
    assert loaded.features.prior == release.features.prior
    with pytest.raises(RefusedError, match="vectors were released under a statement about a document"):
        fitted(features=released_vectors(Unit.DOCUMENT))


def test_a_folder_gives_back_the_same_description(tmp_path):
    release = fitted(features="words")
    release.save(tmp_path / "shared")
    result = dptext.TextDistribution.load(tmp_path / "shared")
    assert (result.matrix == release.matrix).all()
    assert result.features.fingerprint == release.features.fingerprint
    assert result.labels == release.labels
    assert result.sample(POOL, 9, seed=4).texts == release.sample(POOL, 9, seed=4).texts
    assert result.statement.release_id == release.statement.release_id
    assert {path.name for path in (tmp_path / "shared").iterdir()} == {
        "README.md", "config.json", "distribution.safetensors", "privacy.json",
    }  # fmt: skip
    for path in (tmp_path / "shared").iterdir():
        assert MARKER.encode() not in path.read_bytes()
    with pytest.raises(ParameterError, match="is there already"):
        release.save(tmp_path / "shared")
    release.save(tmp_path / "shared", replace=True)
    (tmp_path / "shared" / "mine.txt").write_text("mine")
    with pytest.raises(ParameterError, match="holds something besides a description"):
        release.save(tmp_path / "shared", replace=True)


def test_a_changed_folder_is_refused(tmp_path):
    release = fitted()
    release.save(tmp_path / "shared")
    for name, old, new in (
        ("privacy.json", '"sigma": ', '"sigma": 1'),
        ("config.json", '"sigma": ', '"sigma": 1'),
        ("config.json", '"drinks"', '"drunks"'),
    ):
        file = tmp_path / "shared" / name
        content = file.read_text()
        file.write_text(content.replace(old, new, 1))
        assert file.read_text() != content
        with pytest.raises(DataError):
            dptext.TextDistribution.load(tmp_path / "shared")
        file.write_text(content)
    with pytest.raises(DataError, match="is missing"):
        dptext.TextDistribution.load(tmp_path)
    assert dptext.TextDistribution.load(tmp_path / "shared").matrix.shape == release.matrix.shape


def lengths(texts):
    return [[len(text), text.count("a"), 1.0] for text in texts]


def test_a_folder_without_its_encoder_says_so(tmp_path):
    encoder = dptext.CallableEncoder(lengths, dimension=3, name="lengths")
    fitted(features=encoder).save(tmp_path / "shared")
    with pytest.raises(DataError, match="give the same one as encoder="):
        dptext.TextDistribution.load(tmp_path / "shared")
    assert dptext.TextDistribution.load(tmp_path / "shared", encoder=encoder).features.dimension == 3


def test_a_statement_with_too_little_noise_is_found():
    data = json.loads(fitted().statement.to_json())
    assert noise_is_enough(PrivacyStatement.from_json(json.dumps(data)), {})
    for name, value in (("sigma", data["parameters"]["sigma"] / 1.01), ("epsilon", 1.0), ("sensitivity", 0.5)):
        changed = {**data, "parameters": {**data["parameters"], name: value}}
        assert not noise_is_enough(PrivacyStatement.from_json(json.dumps(changed)), {})


def test_bad_arguments_get_one_clear_line():
    for changes, message in [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"labels": []}, "label"),
        ({"labels": ["a", "a"]}, "differ"),
        ({"unit": "word"}, "unit"),
        ({"most_documents": 0}, "most_documents"),
    ]:
        with pytest.raises(ParameterError, match=message) as caught:
            synthesizer(**changes)
        assert "\n" not in str(caught.value)


def test_bad_input_gets_one_clear_line():
    with pytest.raises(DataError, match="row 2 has no user"):
        fitted([dptext.Document("a", user="b"), dptext.Document(MARKER)])
    with pytest.raises(DataError, match="there are no documents"):
        fitted([])
    with pytest.raises(ParameterError, match="100,000"):
        fitted().sample(POOL, 100_000)
    with pytest.raises(ParameterError, match="the pool holds no text"):
        fitted().sample([""], 1)
    values = documents()
    with pytest.raises(ParameterError, match="private documents are also given as the public"):
        synthesizer().fit(values, public=values)


@pytest.mark.parametrize(("copied", "outcome"), [(100, ParameterError), (30, OverlapWarning), (4, None)])
def test_a_pool_of_the_private_texts_is_refused_before_the_release(copied, outcome, recwarn, monkeypatch):
    """Every document counts once, however often it is repeated, and white space does not matter."""
    monkeypatch.setattr(sources, "_SAMPLED", 64)
    texts = [f"{MARKER}  tea {number}" for number in range(100)]
    people = [dptext.Document(text, user=str(place)) for place, text in enumerate(texts + texts[-1:] * 200)]
    pool = [*POOL, *(" ".join(text.split()) for text in texts[:copied])]

    def fit():
        return synthesizer(labels=None, seed=1).fit(people, public=pool)

    draws = []
    real = synthesizer_module.noisy_matrix
    monkeypatch.setattr(synthesizer_module, "noisy_matrix", lambda *how: (draws.append(1), real(*how))[1])
    if outcome is ParameterError:
        with pytest.raises(
            ParameterError, match="100% of the distinct private texts are also in the public pool"
        ) as caught:
            fit()
        assert MARKER not in str(caught.value) and not draws
        return
    fit()
    results = [entry for entry in recwarn if entry.category is OverlapWarning]
    assert [bool(results), bool(draws)] == [outcome is OverlapWarning, True]


def test_documents_can_be_what_is_protected():
    release = fitted(
        [dptext.Document(document.text, label=document.label) for document in documents()], unit="document"
    )
    assert release.statement.unit is Unit.DOCUMENT
    assert not any("under one name" in assumption for assumption in release.statement.assumptions)


@pytest.mark.parametrize(("unit", "said"), [("user", "user=who"), ("document", r"Document\(text\) for")])
def test_a_table_is_answered_with_documents_before_features_are_fitted(unit, said):
    table = pytest.importorskip("pyarrow").table({"text": ["tea"], "author": ["a"]})
    synthesizer = dptext.Synthesizer(epsilon=1.0, unit=unit)
    with pytest.raises(ParameterError, match=rf"got a table.*{said}"):
        synthesizer.fit(table, public=["a text of a pool"])
