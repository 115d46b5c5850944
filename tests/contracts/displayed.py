"""Small instances of all objects with a representation, made of texts that must never appear in it."""

import dptext
from contracts.cases import RANDOM, UNSAFE, VECTORS, WORDS
from dptext.attacks.base import AttackScore
from dptext.calibration.deniability import replacements
from dptext.intervals import Estimate
from dptext.representations.bounds import Bound
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS
from dptext.words import registry
from secrecy import MARKER

TAG = "<script>alert(1)</script>"
"""Part of every name that a caller may give: it must be escaped."""
SMALL = {"epsilon": 3.0, "delta": 1e-6}
POOL = ["tea cup", "cup of tea", "tax law", "the law"]


def word_objects():
    result = registry.MECHANISMS | registry.PUBLISHED_ONLY
    for name, kind in result.items():
        yield kind(VECTORS, epsilon=9.0, **WORDS.get(name, UNSAFE if name in registry.PUBLISHED_ONLY else {}))
    yield dptext.WordVectors(["<unk>", "tea"], [[0.0], [1.0]], source=TAG * 9)
    yield dptext.Redacted(dptext.TEM(VECTORS, epsilon=3.0), words=[MARKER])
    released = dptext.privatize([f"tea {MARKER} cup", f"{MARKER}"], dptext.TEM(VECTORS, epsilon=3.0), seed=1)
    yield released
    yield released.statement
    yield dptext.deniability(dptext.TEM(VECTORS, epsilon=3.0), ["tea", MARKER])
    yield replacements(dptext.TEM(VECTORS, epsilon=3.0), MARKER)
    yield dptext.calibrate(VECTORS, keep_rate=0.6)
    yield dptext.audit(dptext.TEM(VECTORS, epsilon=9.0), samples=1000)
    yield dptext.Document(MARKER, user=MARKER, label=MARKER, attributes={MARKER: MARKER})


def vector_objects():
    for name, kind in (RANDOMIZERS | PUBLISHED_ONLY).items():
        output = kind(epsilon=3.0, **RANDOM.get(name, UNSAFE if name in PUBLISHED_ONLY else {}))
        yield output
        yield output.channel(8)
    words = dptext.MeanOfWords(VECTORS)
    yield words
    yield dptext.DeviceEncoder(words, Bound(mean=[0.0, 0.0]), dptext.PrivUnit(epsilon=8.0))
    yield dptext.CallableEncoder(lambda texts: [[1.0, 2.0] for _ in texts], name=TAG)


def bank_objects():
    bank = dptext.TextBank(POOL, encoder=dptext.MeanOfWords(VECTORS), cache=False, name=TAG)
    yield bank
    yield bank.features
    yield dptext.BankRewriter(bank, epsilon=8.0, size=1)
    yield dptext.BankRewriter(bank, epsilon=8.0, unit="document", max_sentences=3)
    yield dptext.calibrate(bank, relinking=0.9, people=10)
    yield dptext.Pool(POOL, name=TAG * 9, licence=TAG)


def user_objects(folder):
    documents = [
        dptext.Document(
            f"tea cup tax {MARKER}{number}", user=f"{MARKER}{number}", label=("drinks", "rules")[number % 2]
        )
        for number in range(60)
    ]
    public = {"vectors": VECTORS, **SMALL}
    yield dptext.Cooccurrence(**public)
    yield dptext.SkipGram(**public, public_users=30, steps=2, sampling_rate=0.5)
    yield dptext.private_vocabulary(documents, **SMALL, words_per_user=3)
    yield dptext.private_labels(documents, **SMALL)
    synthesizer = dptext.Synthesizer(
        **SMALL, labels=["drinks", TAG], features=dptext.MeanOfWords(VECTORS), cache=False, seed=1
    )
    yield synthesizer
    described = synthesizer.fit(documents, public=POOL)
    yield described
    yield described.sample(POOL, 2, cache=False)
    yield dptext.describe(documents, **SMALL, topics=["drinks", TAG], phrases=0)
    yield dptext.HidingEncoder(VECTORS, epsilon=8.0)
    yield dptext.PersonalBudgets({"strict": 1.0, "open": 8.0}, delta=1e-6)
    yield dptext.Ledger.create(folder / "ledger.db", epsilon=5.0)


def result_objects():
    yield AttackScore(
        attack="linkage",
        measure="accuracy",
        score=Estimate(0.5, 0.4, 0.6, 90, "people"),
        baseline=0.1,
        baseline_name=TAG,
        detail=TAG,
    )


def everything(folder):
    yield from word_objects()
    yield from vector_objects()
    yield from bank_objects()
    yield from user_objects(folder)
    yield from result_objects()
