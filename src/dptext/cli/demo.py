"""``dptext demo``: readable texts made from a description of bundled ones, what they are good for, what was promised;
and one text made private word by word, to see that this is another thing."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dptext.cli import options
from dptext.cli.console import print_json, stdout
from dptext.cli.options import output_option, privacy_option
from dptext.errors import MissingExtraError, ParameterError, StorageError
from dptext.evaluation.corpus_quality import nearest_labels
from dptext.features.pool import Pool
from dptext.io.atomic import hashed_file
from dptext.io.documents import read_documents
from dptext.privacy.guarantee import MetricDP, at_most
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import not_protected, protected, strength_in_brief
from dptext.release.privatize import privatize
from dptext.release.release import Release
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.release import Draw, PrivateFiles, distribution_path, synthesize_file
from dptext.synthesis.synthesizer import Synthesizer
from dptext.text.tokens import split
from dptext.threads import one_blas_thread
from dptext.vectors.formats import load_vectors
from dptext.words.tem import TEM

_TEXTS = 3000
_SHOWN = 2  # of each intent
_HINTS = 6
_NARROW, _WIDEST = 79, 100

_WORD_BY_WORD = "book a table at a nice italian restaurant for three people"
_NEAR, _WORDS = 4.0, 12
"""The usual epsilon of a word mechanism, and how many words the budget of a text is made for."""


@options.collected
def demo(
    *,
    folder: Annotated[
        Path, output_option(metavar="FOLDER", help="Output folder for the sample and the corpus.")
    ] = Path("dptext-demo"),
    epsilon: Annotated[float, privacy_option(help="Privacy budget (epsilon) per user.")] = 1.0,
    seed: options.Seed = None,
    output: options.Output,
) -> None:
    """Make a synthetic corpus from a bundled sample, and show its guarantee and utility.

    Example: dptext demo --epsilon 1
    """
    sample = _Sample(folder)
    sample.place()
    intents = sorted({each.intent for each in sample.people})
    pool = Pool((each.text for each in sample.public), name="the other half of SNIPS", licence="CC0-1.0")
    begin = (
        f"Half of SNIPS is private here: {len(sample.people):,} utterances, each of a user of its own (users are made "
        f"up). The other half is a public pool without intents: {len(pool):,} different utterances. A noisy "
        "description of the first half is released, and texts of the pool are chosen by it."
    )
    output.say(f"{textwrap.fill(begin, _NARROW)}\n")
    made = synthesize_file(
        PrivateFiles(paths=sample.private_file, user="user"),
        sample.synthetic,
        Synthesizer(epsilon=epsilon, labels=intents, column="intent", features="static", cache=False, seed=seed),
        Draw(n=_TEXTS, public=pool, cache=False, seed=seed),
        force=True,
    )
    description = TextDistribution.load(distribution_path(sample.synthetic))
    if output.as_json:
        accuracy = {name.value: score for name, score in _accuracy(sample, made, description).items()}
        statement = json.loads(made.statement.to_json())
        print_json({"out": str(sample.synthetic), "statement": statement, "accuracy": accuracy})
    elif not output.quiet:
        _show(sample, made, description, epsilon, seed)
    for doubt in made.doubts:
        output.say(f"Note: {doubt}.")


class _Utterance(NamedTuple):
    text: str
    intent: str


class _Sample:
    def __init__(self, folder: Path) -> None:
        train, self.test = _bundled("train"), _bundled("test")
        self.people, self.public = train[::2], train[1::2]
        self.folder, self.private_file = folder, folder / "people.jsonl"
        self.pool_file, self.test_file = folder / "pool.jsonl", folder / "test.jsonl"
        self.synthetic = folder / "synthetic.jsonl"

    def place(self) -> None:
        """Write the sample into the folder, unless something of somebody else is there."""
        rows = {
            self.private_file: _of_users(self.people, first=1),
            self.pool_file: [{"text": each.text} for each in self.public],
            self.test_file: _of_users(self.test, first=len(self.people) + 1),
        }
        path = self.folder
        try:
            contents = {path: _lines(found) for path, found in rows.items()}
            foreign = any(path.exists() and path.read_bytes() != content for path, content in contents.items())
            if foreign or (self.synthetic.exists() and not self.private_file.exists()):
                raise ParameterError(
                    f"{str(self.folder)!r} holds files that are not the demo's: name another one with --folder"
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            for path, content in contents.items():
                with hashed_file(path) as stream:
                    stream.write(content)
        except OSError as error:
            raise StorageError.of("write", path, error) from None


def _of_users(utterances: Sequence[_Utterance], *, first: int) -> list[dict[str, str]]:
    return [
        {"user": f"user {number}", "intent": each.intent, "text": each.text}
        for number, each in enumerate(utterances, first)
    ]


def _bundled(name: str) -> list[_Utterance]:
    found = read_documents(str(files("dptext.cli") / "sample" / f"snips-{name}.jsonl.gz"), label="intent")
    return [_Utterance(str(each.text), str(each.label)) for each in found]


def _lines(rows: Sequence[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


# -- what is shown -----------------------------------------------------------------------------------------------


def _show(sample: _Sample, made: Release, description: TextDistribution, epsilon: float, seed: int | None) -> None:
    console = stdout()
    console.print(_texts(made, description))
    console.print(_stand_out(description))
    console.print(_use(sample, made, description))
    _say(
        console,
        f"{_share_right(sample, made):.0%} of the synthetic texts have the intent that their authors gave them, which "
        "the pool did not show. Some sentences stand in both halves. They stay in the pool: if they were missing, "
        "whoever knows the pool would see which of its sentences are private.",
    )
    _promise(console, made.statement)
    try:
        console.print(_word_by_word(epsilon, seed))
    except MissingExtraError:
        _say(console, 'One text made private word by word: pip install "dptext[glove]", then run the demo again.')
    _say(
        console,
        "A promise for a whole text, kept word by word, leaves random words: a text has too little room to hide in by "
        "itself. What reads better promises less: that a word hides among its neighbours in meaning. Synthetic texts "
        "hide each person among all people, so they can be read; they say what people write, not what one of them "
        "wrote.",
    )
    _to_paste(console, sample)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", expand=True, pad_edge=False, box=SIMPLE_HEAD)


def _texts(made: Release, description: TextDistribution) -> Table:
    table = _table(f"Synthetic texts: {_SHOWN} of each intent, as they came, of {made.documents:,}")
    table.add_column("intent", no_wrap=True)
    table.add_column("text", ratio=1)
    for name in description.labels.names:
        own = [text for text, label in zip(made.texts, made.labels, strict=True) if label == name]
        for row, text in enumerate(own[:_SHOWN]):
            table.add_row(name if row == 0 else "", text)
    return table


def _stand_out(description: TextDistribution) -> Table:
    table = _table("What the description says of the private half")
    table.add_column("intent", no_wrap=True)
    table.add_column("share", justify="right")
    table.add_column("public words that stand out", ratio=1)
    shares = description.shares()
    for name, words in description.hints(_HINTS).items():
        table.add_row(name, f"{shares[name]:.1%}", ", ".join(words))
    return table


class _Trained(StrEnum):
    """What a classifier learns from."""

    SYNTHETIC = "the synthetic texts"
    REAL = "the private texts themselves"
    NAMES = "public texts labelled by the names of the intents (epsilon 0)"
    RANDOM = "the synthetic texts, intents dealt at random"
    NOTHING = "no text: the description itself as a classifier"


def _use(sample: _Sample, made: Release, description: TextDistribution) -> Table:
    table = _table(f"What they are good for ({len(sample.test):,} other real utterances)")
    table.expand = False
    table.add_column("trained on")
    table.add_column("right", justify="right")
    for name, score in _accuracy(sample, made, description).items():
        table.add_row(name, f"{score:.1%}")
    return table


def _accuracy(sample: _Sample, made: Release, description: TextDistribution) -> dict[_Trained, float]:
    texts, labels = [text or "" for text in made.texts], np.array(made.labels)
    real = [each.text for each in sample.people], [each.intent for each in sample.people]
    dealt = labels[np.argsort(RandomBits(0).integers(len(labels)), kind="stable")]
    public, names = [each.text for each in sample.public], description.labels.names
    named = [names[code] for code in nearest_labels(description.features, description.labels, public).tolist()]
    true = [each.intent for each in sample.test]
    tested = [each.text for each in sample.test]
    found = {
        _Trained.SYNTHETIC: _predicted(texts, made.labels, tested),
        _Trained.REAL: _predicted(*real, tested),
        _Trained.NAMES: _predicted(public, named, tested),
        _Trained.RANDOM: _predicted(texts, dealt.tolist(), tested),
        _Trained.NOTHING: description.predict(tested).tolist(),
    }
    return {name: float(np.mean(np.array(each) == true)) for name, each in found.items()}


def _share_right(sample: _Sample, made: Release) -> float:
    intents: dict[str, set[str]] = {}
    for each in sample.public:
        intents.setdefault(each.text, set()).add(each.intent)
    pairs = zip(made.texts, made.labels, strict=True)
    return float(np.mean([label in intents[text or ""] for text, label in pairs]))


def _promise(console: Console, statement: PrivacyStatement) -> None:
    console.print("[italic]What is promised[/italic]\n")
    _say(console, strength_in_brief(statement)[0])
    for head, found in (("Protected:", protected(statement)), ("Not protected:", not_protected(statement))):
        _say(console, head, end="")
        for each in found:
            _say(console, f"- {each}", end="")
        typer.echo()


def _word_by_word(epsilon: float, seed: int | None) -> Table:
    vectors = load_vectors("glove-6b-50d", limit=50_000)
    whole = TEM(vectors, epsilon=_NEAR, document_epsilon=epsilon, max_words=_WORDS)
    near = TEM(vectors, epsilon=_NEAR)
    table = _table("Another thing: one text, word by word")
    table.add_column("promise", no_wrap=True)
    table.add_column("text", ratio=1)
    table.add_row("none", _WORD_BY_WORD)
    for mechanism, name in ((whole, f"epsilon {epsilon:g} for the text"), (near, "")):
        private = privatize([_WORD_BY_WORD], mechanism, seed=seed)
        guarantee = private.statement.guarantee
        if isinstance(guarantee, MetricDP):
            name = f"{_NEAR:g} per unit of distance,\nup to {at_most(guarantee.pure_epsilon, 3)} for the text"
        table.add_row(name, private.texts[0])
    return table


def _to_paste(console: Console, sample: _Sample) -> None:
    made, pool = (shlex.quote(str(each)) for each in (sample.synthetic, sample.pool_file))
    folder = shlex.quote(str(distribution_path(sample.synthetic)))
    _say(
        console,
        f"The corpus is in {made}. What was promised, an audit of that, more texts for nothing, and your own file:",
    )
    typer.echo(f"  dptext explain {made}\n  dptext audit {made} --public {pool}")
    typer.echo(f"  dptext synthesize --distribution {folder} \\\n    --public {pool} -n 500 -o more.jsonl")
    typer.echo(
        "  dptext synthesize notes.jsonl -o readable.jsonl --user author --epsilon 1 \\\n"
        "    --label topic --labels news,sports --public public.jsonl -n 5000"
    )


def _say(console: Console, text: str, *, end: str = "\n") -> None:
    hang = "  " if text.startswith("- ") else ""
    typer.echo(textwrap.fill(text, min(console.width, _WIDEST) - 1, subsequent_indent=hang) + end)


# -- a classifier of few lines -----------------------------------------------------------------------------------

_KNOWN, _SMOOTHING = 2000, 0.5


def _predicted(texts: Sequence[str], labels: Sequence[str], tested: Sequence[str]) -> list[str]:
    """Labels of the tested texts by ridge regression on which words a text has."""
    seen = Counter(word for text in texts for word in _words(text))
    known = {word: place for place, (word, _) in enumerate(seen.most_common(_KNOWN))}
    names = sorted(set(labels))
    bags, wanted = _bags(texts, known), np.eye(len(names))[np.searchsorted(names, labels)]
    middle, share = bags.mean(axis=0), wanted.mean(axis=0)
    with one_blas_thread():
        gram = (bags - middle).T @ (bags - middle) + _SMOOTHING * np.eye(len(known))
        weights = np.linalg.solve(gram, (bags - middle).T @ (wanted - share))
        scores = (_bags(tested, known) - middle) @ weights + share
    return [names[each] for each in scores.argmax(axis=1).tolist()]


def _bags(texts: Sequence[str], known: dict[str, int]) -> npt.NDArray[np.float64]:
    found = np.zeros((len(texts), len(known)))
    for row, text in enumerate(texts):
        found[row, [known[word] for word in _words(text) if word in known]] = 1.0
    length: npt.NDArray[np.float64] = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.maximum(length, 1.0)


def _words(text: str) -> set[str]:
    return {token.text for token in split(text)} - {" "}
