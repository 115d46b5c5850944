"""The release methods as `advise` judges them: what each would promise here, be good for, and the command for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dptext.advice.questions import LABELS, LICENCE, NEW
from dptext.advice.way import PREVIEWED, PROTECTING, Makeup, Method, Objection, Preview, folded, option, rounded_people
from dptext.calibration.deniability import deniability
from dptext.calibration.reidentification import bank_epsilon
from dptext.embeddings.cooccurrence import Cooccurrence, Plan
from dptext.embeddings.plan import ExpectedVectors, expected_vectors
from dptext.io.documents import Document
from dptext.privacy.guarantee import Trust
from dptext.representations.dimension import ON_NEWS, USUAL
from dptext.representations.privunit import PrivUnit
from dptext.sentences.rewriter import BankRewriter
from dptext.synthesis.planning import Expected, expected_quality
from dptext.synthesis.synthesizer import Synthesizer
from dptext.vectors.word_vectors import WordVectors
from dptext.words.tem import TEM

_KEPT = Objection(0, "Labels are kept, and leave as they are: nothing is promised about them.")
_NO_LABEL = Objection(1, "No column of few values is known: name the labels with --label.")
_NO_USER = Objection(0, "No column says who wrote a text: single texts are protected; name it: --user.")

# -- a synthetic corpus -----------------------------------------------------------------------------------------------

_EPSILON = 1.0
_COUNT = 5_000
_ENOUGH = 0.5  # of the way from chance to no noise at all
_FEWEST = 30  # people: with fewer a prediction compares with a description that says nothing even without noise
_POOL = 1_500  # texts that a prediction looks at
_MOST_PEOPLE = 10**6
_MOST_CLASSES = 50
_SEED = 0  # of predictions, from public numbers
_CORPUS = (
    "People read it; a classifier learns from it (news, 5,000 texts: .79 right, .87 with the private ones, "
    "papers/synthesis)."
)
_CLASSIFIER = Objection(
    0,
    "Try the release itself first as the classifier of new texts (dptext classify NEW.jsonl; news .85 right, short "
    "requests .82; by a model trained on the corpus .79 and .94). Use the corpus where people must read, or to train "
    "another model.",
)


class Corpus(Method):
    """One noisy release describes all people's texts, public ones are chosen by it: ``dptext synthesize``."""

    name = "synthetic corpus"
    command = "synthesize"
    trust = Trust.CENTRAL
    serves: ClassVar = {None: 3, "read": 3, "classify": 3, "vectors": 0, "devices": 0, "statistics": 3}
    mismatch: ClassVar = {
        "vectors": "Public texts come out: the words are those of their authors, not of these people.",
        "devices": "Texts are collected first: no device sends a vector of its own.",
    }

    def makeup(self) -> Makeup:
        data, features = self.data, self.public.features
        synthesizer = Synthesizer(epsilon=_EPSILON, features=features, unit=data.unit, cache=False)
        promise, objections = synthesizer.plan(self.public.pool).promise, [*self._objections()]
        people = rounded_people(data.protected)
        expected = self._expected(people)
        if people < _FEWEST:
            few = Objection(2, f"Too few {data.whom} for any epsilon that protects: {people} here.")
            return Makeup(promise, _CORPUS, (few, *objections))
        if expected is None:
            return Makeup(promise, _CORPUS, tuple(objections))
        if _above_chance(expected) < _ENOUGH:
            objections.append(self._too_few(people))
        objections += [Objection(0, f"{each[0].upper()}{each[1:]}.") for each in expected.warnings]
        if data.classes and data.rarest is not None and data.rarest * 4 * data.classes < data.rows:
            uniform = "The rarest label has few texts: choose as many for each (--shares uniform)."
            objections.append(Objection(0, uniform))
        return Makeup(promise, f"{_CORPUS} {self._figure(expected, people)}", tuple(objections))

    def _objections(self) -> Iterator[Objection]:
        if self.data.unit == "document":
            yield _NO_USER
        if self.classifies and self.data.classes is None:
            yield _NO_LABEL
        if self.classifies and self.data.roles.labels:
            yield _CLASSIFIER

    def _figure(self, expected: Expected, people: int) -> str:
        """What is predicted, and what is not known."""
        whom = self.data.whom
        if expected.accuracy is not None:
            low, high = expected.accuracy
            return f"Predicted from public labels, {people:,} {whom}: {low:.0%} to {high:.0%} of labels are right."
        return (
            f"With {people:,} {whom} and {self._classes} classes, {expected.agreement:.0%} of public texts keep their "
            f"class under the noise ({expected.without:.0%} by chance): agreement with the noise-free labels, not "
            "accuracy, which takes public labels (--public-label)."
        )

    def _too_few(self, people: int) -> Objection:
        """How many it would take, and what the largest epsilon that protects would do."""
        needed = people
        while needed < _MOST_PEOPLE:
            needed = rounded_people(2 * needed)
            if self._is_enough(self._expected(needed)):
                enough = f", from about {needed:,} on it would do."
                break
        else:
            enough = "."
        said = f"Too few {self.data.whom} for epsilon {_EPSILON:g}: {people:,} here{enough}"
        most = self._expected(people, PROTECTING)
        if most is None or not self._is_enough(most):
            return Objection(2, said)
        return Objection(
            1, f"{said} At {PROTECTING:g}, which still protects, {most.agreement:.0%} would keep their class."
        )

    def _is_enough(self, expected: Expected | None) -> bool:
        return expected is not None and _above_chance(expected) >= _ENOUGH

    def _expected(self, people: int, epsilon: float = _EPSILON) -> Expected | None:
        """What a budget buys, by public texts and a round number of people; None: too few public texts."""
        pool, right = self.public.pool.texts[:_POOL], self.public.labels if self.public.files else None
        labels = [str(each) for each in range(self._classes)] if right is None else sorted(set(right))
        if len(pool) < 2 * len(labels):
            return None
        [expected] = expected_quality(
            pool,
            people=people,
            labels=labels,
            public_labels=None if right is None else right[PREVIEWED:][: len(pool)],
            epsilon=epsilon,
            features=self.public.features,
            cache=False,
            seed=_SEED,
        )
        return expected

    @property
    def _classes(self) -> int:
        """Into how many a prediction cuts public texts; without labels two, since one has nothing to be told from."""
        return min(max(self.data.classes or 2, 2), _MOST_CLASSES)

    def pasted(self) -> tuple[str, ...]:
        labels = [part for each in self.data.roles.labels for part in (option("label", each), option("labels", LABELS))]
        count = min(_COUNT, rounded_people(self.public.count // 2)) if self.public.count else _COUNT
        made = self.line(".synthetic.jsonl", f"--epsilon {_EPSILON:g}", *labels, self.public.as_options, f"-n {count}")
        if not (self.classifies and self.data.roles.labels):
            return (made,)
        description = f"--distribution {self.data.out('.synthetic.jsonl.distribution')}"
        return made, folded(f"dptext classify {NEW}", description, "-o labels.jsonl", *self.text_option)

    def preview(self) -> Preview:
        """Texts of one half of the public ones, chosen by a description of the other half, as if people wrote it."""
        texts, labels, seed = self.public.texts, self.public.labels, self.public.seed
        half = len(texts) // 2
        people = [
            Document(text, user=f"user {n}", label=None if labels is None else labels[n])
            for n, text in enumerate(texts[:half])
        ]
        classes = None if labels is None else sorted(set(labels))
        pool = list(texts[half:])
        features = self.public.features
        synthesizer = Synthesizer(epsilon=_EPSILON, labels=classes, features=features, cache=False, seed=seed)
        made = synthesizer.fit(people, public=pool).sample(pool, PREVIEWED, cache=False, seed=seed)
        names = made.labels if made.columns else [""] * PREVIEWED
        return Preview(tuple((str(name or ""), text or "") for name, text in zip(names, made.texts, strict=True)))


def _above_chance(expected: Expected) -> float:
    return (expected.agreement - expected.without) / max(1 - expected.without, 1e-9)


# -- shared word vectors ----------------------------------------------------------------------------------------------

_DELTA = 1e-6
_PEOPLE = 1_500  # public texts that play them
_LITTLE, _NOTHING = 0.1, 0.01  # of what people's texts add to public vectors
_SHARED = "Similar words and features for models of this domain."


class SharedVectors(Method):
    """What words mean in people's texts, by one noisy release: ``dptext embed``."""

    name = "shared word vectors"
    command = "embed"
    trust = Trust.CENTRAL
    serves: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 3, "devices": 0, "statistics": 1}
    mismatch: ClassVar = {
        "read": "There is nothing to read: it is a vector for each word.",
        "devices": "Texts are collected first: no device sends a vector of its own.",
    }

    def makeup(self) -> Makeup:
        plan, people = self._plan(self.public.vectors), rounded_people(self.data.protected)
        public = (Document(text) for text in self.public.pool.texts[:_PEOPLE])
        [expected] = expected_vectors(plan, public, people=people, epsilon=PROTECTING)
        half = "" if expected.half is None else f", half with {expected.half:,}"
        figure = (
            f"With {people:,} {self.data.whom}, if each wrote as much as one public text, {expected.passed:.0%} of "
            f"what they add to public vectors comes through the noise{half}."
        )
        promise = plan.statement(plan.levels.most, seeded=False)
        return Makeup(promise, f"{_SHARED} {figure}", tuple(self._objections(expected)))

    def bare(self) -> Makeup:
        plan = self._plan(self.public.stand_in)
        promise = plan.statement(plan.levels.most, seeded=False)
        return Makeup(promise.replace(parameters={}), _SHARED, tuple(self._objections(None)))

    def _plan(self, vectors: WordVectors) -> Plan:
        return Cooccurrence(vectors, epsilon=PROTECTING, delta=_DELTA, unit=self.data.unit).plan()

    def _objections(self, expected: ExpectedVectors | None) -> Iterator[Objection]:
        if self.data.unit == "document":
            yield _NO_USER
        if expected is not None and expected.passed < _LITTLE:
            weight, nearly = (2, "") if expected.passed < _NOTHING else (1, "nearly ")
            few = f"Too few {self.data.whom} for this budget: the vectors stay {nearly}the public ones."
            yield Objection(weight, few)

    def pasted(self) -> tuple[str, ...]:
        return (self.line(".vectors", f"--epsilon {PROTECTING:g}"),)

    def preview(self) -> Preview:
        return Preview(missing="there are no texts: a vector for each public word")


# -- texts of a bank --------------------------------------------------------------------------------------------------

_BANK = (
    "One readable text for each. Topics survive: a classifier of news has .79 at epsilon 4, .88 from the private "
    "texts. Sentiment does not: .58 at epsilon 3, where label descriptions alone have .74 (docs/mechanisms/sentences)."
)


class Bank(Method):
    """Each private text becomes a public one, a similar one more often: ``dptext privatize --mechanism bank``."""

    name = "texts of a bank"
    command = "privatize --mechanism bank"
    trust = Trust.LOCAL
    mismatch: ClassVar = {
        "vectors": "Public texts come out: the words are those of the bank's authors, not of these people."
    }

    @property
    def serves(self) -> dict[str | None, int]:  # type: ignore[override]
        devices = 2 if self.answers.trust == "local" else 1
        return {None: 2, "read": 2, "classify": 2, "vectors": 0, "devices": devices, "statistics": 2}

    @property
    def _rewriter(self) -> BankRewriter:
        return BankRewriter(self.public.bank, epsilon=PROTECTING, unit="document")

    def makeup(self) -> Makeup:
        bank = self.public.bank
        likeness, blind = bank_epsilon(bank, PROTECTING, unit="document").similarity
        figure = f"Likeness {likeness:.2f} to what goes in, of {len(bank):,} public texts; blindly {abs(blind):.2f}."
        return Makeup(self._rewriter.statement, f"{_BANK} {figure}", tuple(self._objections()))

    def _objections(self) -> Iterator[Objection]:
        if self.classifies:
            yield _NO_LABEL if self.data.classes is None else _KEPT
        if self.answers.trust == "local":
            yield Objection(0, "Each owner runs it on their own texts, with the same public bank.")
        if self.answers.trust == "central":
            yield Objection(0, "Where somebody may hold all texts, a synthetic corpus promises more to a person.")

    def pasted(self) -> tuple[str, ...]:
        made = ("--mechanism bank --bank bank --unit document", f"--epsilon {PROTECTING:g}", *self.kept_labels)
        return (
            folded("dptext bank", self.public.as_arguments, f"-o bank --licence {LICENCE}"),
            self.line(".bank.jsonl", *made),
        )

    def preview(self) -> Preview:
        return self.privatized(self._rewriter)


# -- private vectors --------------------------------------------------------------------------------------------------

_FITTED = 1_000  # public texts
_SAVED = "for-devices"
_BELOW, _ABOVE = 2.0, 4.0  # epsilons at which that was measured
_NEWS = (
    f"topics of news, of four, are found with an accuracy of {ON_NEWS[_BELOW][0]:.0%} at epsilon {_BELOW:g}, "
    f"{ON_NEWS[_ABOVE][0]:.0%} at epsilon {_ABOVE:g}; a model of public labelled texts alone is better where there are "
    "such texts (.87 there, docs/mechanisms/private-vectors)."
)


class PrivateVectors(Method):
    """Each text becomes a noisy vector where it is, for a server that nobody trusts: ``dptext encode``."""

    name = "private vectors"
    command = "encode"
    trust = Trust.LOCAL
    serves: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 0, "devices": 3, "statistics": 1}
    mismatch: ClassVar = {
        "read": "There is nothing to read: it is a noisy vector for each text.",
        "vectors": "It is a vector for each text, none for a word.",
    }

    def makeup(self) -> Makeup:
        from dptext.representations.private_encoder import PrivateEncoder

        texts = self.public.pool.texts[:_FITTED]
        fitted = PrivateEncoder(self.public.vectors, PrivUnit(epsilon=PROTECTING)).fit(texts)
        kept = fitted.kept_
        left = (
            "" if kept is None else f" of a vector {kept.recovered:.0%} comes through, in {kept.dimension} dimensions;"
        )
        good = f"A server learns from many:{left} {_NEWS}"
        return Makeup(fitted.release_.statement, good, tuple(self._objections()))

    def bare(self) -> Makeup:
        statement = PrivUnit(epsilon=PROTECTING).statement(USUAL).replace(parameters={})
        return Makeup(statement, f"A server learns from many: {_NEWS}", tuple(self._objections()))

    def _objections(self) -> Iterator[Objection]:
        if self.classifies:
            yield _NO_LABEL if self.data.classes is None else _KEPT
        if self.answers.purpose == "devices":
            yield Objection(
                0, "A device runs what --save keeps: dptext.DeviceEncoder.load. The file plays the devices."
            )

    def pasted(self) -> tuple[str, ...]:
        saved = [f"--save {_SAVED}"] if self.answers.purpose == "devices" else []
        more = (f"--epsilon {PROTECTING:g}", *self.kept_labels, self.public.as_options, *saved)
        return (self.line(".encoded.parquet", *more),)

    def preview(self) -> Preview:
        return Preview(missing="there are no texts: some numbers for each")


# -- words ------------------------------------------------------------------------------------------------------------

_ROWS = 100


class Words(Method):
    """Each word becomes one of similar meaning, at random: ``dptext privatize``."""

    name = "words"
    command = "privatize"
    trust = Trust.LOCAL
    serves: ClassVar = {None: 1, "read": 1, "classify": 1, "vectors": 0, "devices": 1, "statistics": 1}
    mismatch: ClassVar = {"vectors": "Words at random have no neighbours to learn from."}
    never = "No epsilon both protects by its bound and leaves a text that can be read."

    def makeup(self) -> Makeup:
        mechanism = TEM(self.public.vectors, epsilon=PROTECTING)
        result = deniability(mechanism, rows=_ROWS, seed=0)
        good = (
            f"Hiding the exact word among its neighbours in meaning: {result.mean('keep'):.0%} of the words stay "
            f"(public frequencies), half of them could become {int(result.quantile('support', 0.5)):,} others. At 5, "
            "nine of ten stay."
        )
        return Makeup(mechanism.statement, good)

    def bare(self) -> Makeup:
        return Makeup(None, "What its promise is for two words, and how many stay, depends on the word vectors.")

    def pasted(self) -> tuple[str, ...]:
        return (self.line(".words.jsonl", f"--epsilon {PROTECTING:g}"),)

    def preview(self) -> Preview:
        return self.privatized(TEM(self.public.vectors, epsilon=PROTECTING))


METHODS = (Corpus, SharedVectors, Bank, PrivateVectors, Words)
