"""Words and labels of users: what may enter, what one of them can change, what always comes and what never does."""

import io
import unicodedata
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

from dptext.errors import DataError, ParameterError
from dptext.io.atomic import HashedFile
from dptext.io.documents import Document, read_documents
from dptext.noise.set_union import SetUnion
from dptext.privacy.budgets import DeltaWarning
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.text.tokens import Vocabulary, fold, is_single_word, pieces
from dptext.users import private_vocabulary as module
from dptext.users.private_vocabulary import LONGEST_LABEL, LONGEST_WORD, private_labels, private_vocabulary
from dptext.vectors.formats import write_binary, write_text
from dptext.vectors.word_vectors import WordVectors
from secrecy import MARKER, assert_error


@dataclass
class Spy:
    """In place of the mechanism: keeps the sums of weights, lets all of them out."""

    weight: int = 1  # of every word; 0: the weight of the mechanism
    union: SetUnion = None
    noise: str = "gaussian"
    scale: float = 0.0
    threshold: float = 1.0
    counts: list = field(default_factory=list)

    def calibrated(self, *, epsilon, delta, keys):
        self.union = SetUnion("gaussian", 0.0, 1.0, keys, 0.0)
        return self

    def contributions(self, users, counts, bits):
        cells = self.union.contributions(users, counts, bits)
        return np.sign(cells) * self.weight if self.weight else cells

    def release(self, keys, cells, bits):
        kept = cells > 0
        self.counts = cells[kept].tolist()
        return keys[kept], cells[kept].astype(float)


@pytest.fixture
def spy(monkeypatch):
    """No noise, no threshold: a function from documents to words, or labels, with their counts."""
    results = Spy()
    monkeypatch.setattr(module, "SetUnion", results)

    def counted(documents, *, learn=private_vocabulary, weight=1, **options):
        results.weight = weight
        result = learn(documents, epsilon=1.0, delta=1e-6, **options)
        names = result.words if learn is private_vocabulary else result.names
        return dict(zip(names, sorted(results.counts, reverse=True), strict=True))

    return counted


@pytest.fixture
def spy_on_labels(spy):
    return partial(spy, learn=private_labels)


def by(user, *texts):
    return [Document(text, user=user) for text in texts]


# -- counts ------------------------------------------------------------------------------------------


def test_users_are_counted_and_each_counts_once_for_a_word(spy):
    documents = [*by("a", "Zorp zorp", "frab"), *by("b", "zorp"), *by("a", "ZORP"), *by("c", "", None, "7 ...")]
    assert spy(documents) == {"zorp": 2, "frab": 1}
    assert spy([]) == spy(by("a", "", None)) == {}


def test_known_words_are_not_looked_at_however_they_are_written(spy):
    documents = by("a", "Zorp caf\u00e9 CAFE\u0301 don't unk")
    assert spy(documents, known=Vocabulary(["Caf\u00e9", "do", "n't", "<unk>"])) == {"unk": 1, "zorp": 1}
    assert spy(documents, known=["ZORP", "do"]) == {"café": 1, "n't": 1, "unk": 1}
    with pytest.raises(ParameterError, match="known must"):
        spy(documents, known="zorp")


def test_candidates_are_words_that_a_vocabulary_can_hold(spy):
    strange = (
        "ok 3.14 me@x.org https://x.org/zorp @handle ... a\x00b \x01 \ud800x \U0001f600 l'ami don’t x\u00adx "
        "İstanbul ŉ ﬁsh straße ǆ e\u0301 漢字 <unk> a_b x.y "
        f"{'a' * LONGEST_WORD} {'b' * (LONGEST_WORD + 1)} {'c' * 300}"
    )
    words = spy(by("a", strange)).keys()
    assert {"ok", "a" * LONGEST_WORD, "\U0001f600", "l'", "ami", "n't", "xx", "strasse", "漢", "unk"} <= words
    for word in words:
        assert is_single_word(word)
        assert pieces(word) == [word] or word == "l'"  # which is one before a vowel only
        assert fold(word) == word
        assert len(word) <= LONGEST_WORD
        assert not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in word)
        word.encode("utf-8")
    assert len(Vocabulary([*words, "<unk>"])) == len(words) + 1
    repeated = spy(by("a", " ".join(words)))
    assert repeated.keys() - {"l"} == words - {"l'"}


def test_invisible_words_are_no_candidates(spy):
    """White space before a control of direction is one word to Unicode's rules: word2vec's formats cannot hold it, and
    a crowd that writes it would stop every release at its last step, when its budget is spent."""
    strange = "a\u200fb ok \u202e \ufeff x\u202c \u2066y\u2069 z\U000e0061 \u2028\u202e v\u2060w نمی\u200cخواهم"
    words = spy(by("a", strange)).keys()
    assert {"ok", "نمی\u200cخواهم"} <= words  # a joiner is spelling
    for word in words:
        assert not any(map(str.isspace, word))
        assert not any(unicodedata.category(letter) == "Cf" for letter in word.replace("\u200c", ""))
    vectors = WordVectors([*words, "<unk>"], np.ones((len(words) + 1, 2)), source="test")
    for write in (write_binary, write_text):
        write(vectors, HashedFile(io.BytesIO()))


def test_one_user_changes_few_counts_by_one_whatever_they_write(spy):
    others = [*by("a", "zorp frab"), *by("b", "zorp")]
    without = spy(others, words_per_user=5)
    adversaries = [
        [],
        ["zorp " * 10_000],
        [" ".join(f"w{letters(number)}" for number in range(3000))],
        [f"w{letters(number)} zorp" for number in range(3000)],
        ["zorp frab"] * 50,
    ]
    for texts in adversaries:
        together = spy([others[0], *by("mallory", *texts), *others[1:]], words_per_user=5)
        assert together.keys() >= without.keys()
        changes = [count - without.get(word, 0) for word, count in together.items()]
        assert set(changes) <= {0, 1}
        assert sum(changes) <= 5


def letters(number):
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_the_most_frequent_words_of_a_user_are_contributed(spy):
    users = [document for user in "abcd" for document in by(user, "zorp frab zorp", f"frab w{user} w{user} w{user}")]
    assert spy(users, words_per_user=3) == {"zorp": 4, "frab": 4, "wa": 1, "wb": 1, "wc": 1, "wd": 1}
    assert spy(users, words_per_user=1) == {"wa": 1, "wb": 1, "wc": 1, "wd": 1}


def test_equally_frequent_words_of_a_user_are_chosen_uniformly(spy):
    """3,000 users choose 2 of 6; false alarm 1e-7. One who always took the first two would be far off."""
    words = ["ab", "cd", "ef", "gh", "ij", "kl"]
    documents = [document for user in range(3000) for document in by(str(user), " ".join(words))]
    counts = spy(documents, words_per_user=2)
    seen = np.array([counts[word] for word in words])
    assert seen.sum() == 6000

    def is_uniform(seen):
        # the counts of draws without replacement: variance 3000 * 1/3 * 2/3, correlation -1/5
        return ((seen - 1000) ** 2).sum() / (3000 * 2 / 9) * 5 / 6 < chi2.isf(1e-7, 5)

    assert is_uniform(seen)
    assert not is_uniform(np.array([1200, 1200, 900, 900, 900, 900]))


def test_the_order_of_the_input_changes_nothing(spy):
    generator = np.random.default_rng(2)
    documents = [
        Document(" ".join(f"w{letters(number)}" for number in generator.integers(0, 500, 40)), user=str(place % 70))
        for place in range(700)
    ]
    one = spy(documents, words_per_user=10_000)
    assert one == spy(documents[::-1], words_per_user=10_000)
    assert len(one) == 500


def test_the_weights_of_a_user_have_norm_1_whatever_they_write(spy):
    others = [*by("a", "zorp frab"), *by("b", "zorp")]
    without = spy(others, weight=0)
    for count in (1, 2, 7, 100, 3000):
        texts = [f"w{letters(number)}" for number in range(count)]
        together = spy([*others, *by("mallory", *texts, *texts[:3])], weight=0)
        changes = [cells - without.get(word, 0) for word, cells in together.items()]
        assert 2**48 * (1 - 1e-5) <= sum(change**2 for change in changes) <= 2**48


# -- results -------------------------------------------------------------------------------------------


def test_words_of_many_are_released_and_words_of_one_user_never():
    """Misses and false finds: below 1e-7 each (400 users at delta 1e-9; 60 standard deviations)."""
    documents = [
        document
        for user in range(400)
        for document in by(str(user), f"zorp secret{letters(user)}", "Frab" if user < 250 else "")
    ]
    result = private_vocabulary(documents, epsilon=4.0, delta=1e-9, words_per_user=10)
    assert result.words == ("zorp", "frab")
    assert result.vocabulary.words == ("zorp", "frab", "<unk>")
    assert result.after(Vocabulary(["cat", "<unk>", "Zorp"])).words == ("cat", "<unk>", "Zorp", "frab")
    assert "secret" not in repr(result)


def test_the_statement_depends_on_public_numbers_alone_and_composes():
    options = {"epsilon": 2.0, "delta": 1e-7, "words_per_user": 20, "known": ["cat", "Cat"]}
    statement = private_vocabulary(by("a", "zorp"), **options).statement
    assert statement.guarantee == ApproxDP(2.0, 1e-7)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.ADD_REMOVE, Trust.CENTRAL)
    parameters = statement.parameters
    assert [parameters[name] for name in ("words_per_user", "known_words", "noise")] == [20, 1, "gaussian"]
    assert not statement.seeded
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    together = statement.compose(statement.replace(guarantee=ApproxDP(1.0, 1e-6), mechanism="co-occurrence"))
    assert (together.guarantee.epsilon, together.unit) == (3.0, Unit.USER)
    assert together.guarantee.delta == pytest.approx(1.1e-6)
    documents = [document for user in range(300) for document in by(str(user), "frab zorp " * 50)]
    large = private_vocabulary(documents, **options)
    assert large.words and large.statement.replace(release_id=None) == statement.replace(release_id=None)


def test_wrong_budgets_and_arguments_are_refused_and_a_large_delta_is_warned_of():
    budget = {"epsilon": 1.0, "delta": 1e-6}
    words = ({"epsilon": 0.0}, {"delta": 0.0}, {"words_per_user": 0})
    labels = ({"epsilon": 0.0}, {"delta": 0.0}, {"labels_per_user": 0}, {"unit": "word"}, {"column": ""})
    for learn, cases in ((private_vocabulary, words), (private_labels, labels)):
        for wrong in cases:
            with pytest.raises(ParameterError):
                learn([], **{**budget, **wrong})
        with pytest.warns(DeltaWarning, match="not below 1 / 100,000") as caught:
            learn([], epsilon=1.0, delta=1e-3)
        assert caught[0].filename == __file__
        learn([], epsilon=1.0, delta=1e-3, public_users=500)  # a warning is an error here
        rows = [Document(MARKER, user=MARKER, label=MARKER), Document(MARKER, label=MARKER)]
        assert_error(DataError, lambda learn=learn, rows=rows: learn(rows, **budget), "row 2 has no user")


# -- labels ---------------------------------------------------------------------------------------------------


def labelled(user, *labels):
    return [Document(MARKER, user=user, label=label) for label in labels]


def test_users_are_counted_and_each_counts_once_for_a_label(spy_on_labels):
    documents = [*labelled("a", "news", " news", "sports"), *labelled("b", "news"), *labelled("a", "news")]
    assert spy_on_labels(documents) == {"news": 2, "sports": 1}
    assert spy_on_labels(documents, unit="document") == {"news": 4, "sports": 1}
    assert spy_on_labels([]) == spy_on_labels(labelled("a", None)) == {}
    assert spy_on_labels([*labelled("a", 1, True), *labelled("b", 1.0, "1")]) == {"1": 2, "true": 1}


def test_labels_come_from_the_column_that_is_named(spy_on_labels, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,who,topic,stars\nx,a,news,1\nx,b,news,2\nx,b,,1\n")
    for reader in (
        read_documents(path, user="who", keep=["topic", "stars"]),
        read_documents(path, user="who", label="topic", keep=["stars"]),
    ):
        assert spy_on_labels(reader, column="topic") == {"news": 2}
    stars = read_documents(path, user="who", label="topic", keep=["stars"])
    assert spy_on_labels(list(stars), column="stars") == {"1": 2, "2": 1}
    with pytest.raises(ParameterError, match=r"keep=\['topic'\]"):
        private_labels(read_documents(path, user="who"), epsilon=1.0, delta=1e-6, column="topic")


def test_candidates_are_readable_labels(spy_on_labels):
    longest = "a" * LONGEST_LABEL
    enters = ["world news", longest, "été", "نمی\u200cخواهم", "7"]
    stays = ["a\nb", "a\tb", longest + "a", "\u202ex", "\ud800", "a\u2028b", "", " ", ["x"], b"x", float("nan")]
    assert set(spy_on_labels(labelled("a", *enters, *stays), labels_per_user=100)) == set(enters)


def test_one_user_changes_few_counts_by_one_whatever_their_labels(spy_on_labels):
    others = [*labelled("a", "news", "sports"), *labelled("b", "news")]
    without = spy_on_labels(others)
    for labels in ([], ["news"] * 10_000, [f"l{number}" for number in range(3000)], ["news", "sports"] * 50):
        together = spy_on_labels([others[0], *labelled("mallory", *labels), *others[1:]])
        assert together.keys() >= without.keys()
        changes = [count - without.get(label, 0) for label, count in together.items()]
        assert set(changes) <= {0, 1}
        assert sum(changes) <= 3
    for labels in (["news"], ["l"], [None]):
        single = spy_on_labels(labelled("x", *labels), unit="document", labels_per_user=100)
        assert sum(single.values()) <= 1


def test_labels_of_many_are_released_and_labels_of_one_user_never():
    """Misses and false finds: below 1e-7 each, as for words; the same where documents are the unit."""
    documents = [
        Document("", user=str(user), attributes={"topic": label})
        for user in range(400)
        for label in ("news", f"secret {user}", "sports" if user < 250 else None)
    ]
    result = private_labels(documents, epsilon=4.0, delta=1e-9, column="topic")
    assert (result.names, result.column) == (("news", "sports"), "topic")
    assert "secret" not in repr(result)
    result = private_labels(documents, epsilon=4.0, delta=1e-9, column="topic", unit="document")
    assert result.names == ("news", "sports")


@pytest.mark.parametrize("unit", ["user", "document"])
def test_the_statement_of_labels_says_it_and_says_nothing_about_the_data(unit):
    result = private_labels(labelled("a", "rare"), epsilon=2.0, delta=1e-7, labels_per_user=5, unit=unit)
    statement = result.statement
    assert statement.guarantee == ApproxDP(2.0, 1e-7)
    assert (statement.unit, statement.relation, statement.trust) == (
        Unit(unit),
        Relation.ADD_REMOVE,
        Trust.CENTRAL,
    )
    assert statement.parameters["labels_per_user"] == (5 if unit == "user" else 1)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    many = [document for user in range(300) for document in labelled(str(user), "news")]
    large = private_labels(many, epsilon=2.0, delta=1e-7, labels_per_user=5, unit=unit)
    assert large.names == ("news",)
    assert large.statement.replace(release_id=None) == statement.replace(release_id=None)
    together = statement.compose(large.statement)
    assert together.guarantee.epsilon == 4.0
