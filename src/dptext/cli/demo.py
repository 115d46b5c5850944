"""``dptext demo``: make a synthetic corpus from a bundled sample, and show its guarantee and utility."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from dptext.cli import options
from dptext.cli.console import filled, print_paragraph, print_paragraphs, print_table
from dptext.cli.options import output_option, privacy_option
from dptext.errors import ParameterError, StorageError
from dptext.evaluation.corpus_quality import nearest_labels
from dptext.features.pool import Pool
from dptext.io.atomic import hashed_file
from dptext.io.documents import read_documents
from dptext.privacy.randomness import RandomBits
from dptext.privacy.wording import not_protected, paragraphs, protected, strength_in_brief
from dptext.release.release import Release
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.release import Draw, PrivateFiles, distribution_path, synthesize_file
from dptext.synthesis.synthesizer import Synthesizer
from dptext.text.tokens import split
from dptext.threads import one_blas_thread

_SENTENCES = "cli/templates/demo.txt"
_TEXTS = 3000
_TEXTS_SHOWN = 2  # per intent
_HINTS = 6
_VOCABULARY, _RIDGE = 2000, 0.5  # of the classifier


def demo(
    *,
    folder: Path = output_option(Path("dptext-demo"), "Output folder for the sample and the corpus.", "FOLDER"),
    epsilon: float = privacy_option(1.0, "Privacy budget (epsilon) per user."),
    seed: int | None = options.SEED,
    output: options.Output,
) -> None:
    """Make a synthetic corpus from a bundled sample, and show its guarantee and utility.

    Example: dptext demo --epsilon 1
    """
    sample = _Sample(folder)
    sample.save()
    pool = Pool((row.text for row in sample.public), name="the other half of SNIPS", licence="CC0-1.0")
    [introduction] = paragraphs(_SENTENCES, topic="introduction", private=len(sample.private), pool=len(pool))
    output.say(f"{filled(introduction, indent='')}\n")
    intents = sorted({row.intent for row in sample.private})
    release = synthesize_file(
        PrivateFiles(paths=sample.private_file, user="user"),
        sample.synthetic,
        Synthesizer(epsilon=epsilon, labels=intents, column="intent", features="static", cache=False, seed=seed),
        Draw(n=_TEXTS, public=pool, cache=False, seed=seed),
        force=True,
    )
    distribution = TextDistribution.load(distribution_path(sample.synthetic))
    accuracy = {} if output.quiet and not output.as_json else _accuracy(sample, release, distribution)
    output.print_result(
        lambda: {
            "out": str(sample.synthetic),
            "statement": json.loads(release.statement.to_json()),
            "accuracy": accuracy,
        },
        lambda: _show(sample, release, distribution, accuracy),
    )
    for doubt in release.doubts:
        output.say(f"Note: {doubt}.")


class _Utterance(NamedTuple):
    text: str
    intent: str


class _Sample:
    def __init__(self, folder: Path) -> None:
        train, self.test = _read_bundled("train"), _read_bundled("test")
        self.private, self.public = train[::2], train[1::2]
        self.folder, self.private_file = folder, folder / "people.jsonl"
        self.pool_file, self.test_file = folder / "pool.jsonl", folder / "test.jsonl"
        self.synthetic = folder / "synthetic.jsonl"

    def save(self) -> None:
        """Write the sample, unless the folder holds other files of these names."""
        rows = {
            self.private_file: _user_rows(self.private, first=1),
            self.pool_file: [{"text": row.text} for row in self.public],
            self.test_file: _user_rows(self.test, first=len(self.private) + 1),
        }
        contents = {path: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[path]) for path in rows}
        path = self.folder
        try:
            is_foreign = any(path.exists() and path.read_bytes() != text.encode() for path, text in contents.items())
            if is_foreign or (self.synthetic.exists() and not self.private_file.exists()):
                raise ParameterError(
                    f"{str(self.folder)!r} holds files that are not the demo's: choose another --folder"
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            for path, text in contents.items():
                with hashed_file(path) as stream:
                    stream.write(text.encode())
        except OSError as error:
            raise StorageError.of("write", path, error) from None


def _user_rows(utterances: Sequence[_Utterance], *, first: int) -> list[dict[str, str]]:
    return [
        {"user": f"user {number}", "intent": row.intent, "text": row.text}
        for number, row in enumerate(utterances, first)
    ]


def _read_bundled(name: str) -> list[_Utterance]:
    documents = read_documents(str(files("dptext.cli") / "sample" / f"snips-{name}.jsonl.gz"), label="intent")
    return [_Utterance(str(document.text), str(document.label)) for document in documents]


def _show(sample: _Sample, release: Release, distribution: TextDistribution, accuracy: dict[str, float]) -> None:
    texts: dict[str, list[str]] = {name: [] for name in distribution.labels.names}
    for text, label in zip(release.texts, release.labels, strict=True):
        texts[str(label)].append(str(text))
    title = f"Synthetic texts: the first {_TEXTS_SHOWN} per intent, of {release.documents:,}"
    rows = [[name, text] for name in texts for text in texts[name][:_TEXTS_SHOWN]]
    print_table(("intent", "text"), rows, title=title, wide="text")
    shares, hints = distribution.shares(), distribution.hints(_HINTS)
    words = "characteristic public words"
    rows = [[name, f"{shares[name]:.1%}", ", ".join(hints[name])] for name in hints]
    print_table(("intent", "share", words), rows, title="The released distribution", wide=words)
    title = f"Utility: accuracy on {len(sample.test):,} other real utterances"
    rows = [[name, f"{share:.1%}"] for name, share in accuracy.items()]
    print_table(("classifier trained on", "accuracy"), rows, title=title)
    intents: dict[str, set[str]] = {}
    for utterance in sample.public:
        intents.setdefault(utterance.text, set()).add(utterance.intent)
    right = np.mean([label in intents[text or ""] for text, label in zip(release.texts, release.labels, strict=True)])
    print_paragraphs(_SENTENCES, topic="right", right=right)
    statement = release.statement
    typer.echo("\nGuarantee")
    print_paragraph(strength_in_brief(statement)[0])
    for title, items in (("Protected", protected(statement)), ("Not protected", not_protected(statement))):
        typer.echo("\n".join([f"\n{title}:", *(filled(f"- {item}", indent="", hang="  ") for item in items)]))
    corpus, pool = (shlex.quote(str(path)) for path in (sample.synthetic, sample.pool_file))
    typer.echo(
        f"\nThe corpus is in {corpus}. Next steps:\n"
        "explain it, audit it, draw more texts at no further budget, and use your file:\n"
        f"  dptext explain {corpus}\n  dptext audit {corpus} --public {pool}\n"
        f"  dptext synthesize --distribution {shlex.quote(str(distribution_path(sample.synthetic)))} \\\n"
        f"    --public {pool} -n 500 -o more.jsonl\n"
        "  dptext synthesize notes.jsonl -o readable.jsonl --user author --epsilon 1 \\\n"
        "    --label topic --labels news,sports --public public.jsonl -n 5000"
    )


def _accuracy(sample: _Sample, release: Release, distribution: TextDistribution) -> dict[str, float]:
    texts, labels = [text or "" for text in release.texts], np.array(release.labels)
    shuffled = labels[np.argsort(RandomBits(0).integers(len(labels)), kind="stable")]
    public, names = [row.text for row in sample.public], distribution.labels.names
    named = [names[code] for code in nearest_labels(distribution.features, distribution.labels, public).tolist()]
    private, intents = ([getattr(row, name) for row in sample.private] for name in ("text", "intent"))
    test = [row.text for row in sample.test]
    predictions = {
        "the synthetic texts": _predict(texts, labels.tolist(), test),
        "the private texts themselves": _predict(private, intents, test),
        "public texts labelled by the names of the intents (epsilon 0)": _predict(public, named, test),
        "the synthetic texts with random intents": _predict(texts, shuffled.tolist(), test),
        "no text: the released distribution as a classifier": distribution.predict(test).tolist(),
    }
    true = [row.intent for row in sample.test]
    return {source: float(np.mean(np.array(predicted) == true)) for source, predicted in predictions.items()}


def _predict(texts: Sequence[str], labels: Sequence[str], test: Sequence[str]) -> list[str]:
    """Predict the labels of test texts by ridge regression on the set of words of a text."""
    counts = Counter(word for text in texts for word in _words(text))
    columns = {word: column for column, (word, _) in enumerate(counts.most_common(_VOCABULARY))}
    names = sorted(set(labels))
    features, targets = _features(texts, columns), np.eye(len(names))[np.searchsorted(names, labels)]
    centre, shares = features.mean(axis=0), targets.mean(axis=0)
    with one_blas_thread():
        gram = (features - centre).T @ (features - centre) + _RIDGE * np.eye(len(columns))
        weights = np.linalg.solve(gram, (features - centre).T @ (targets - shares))
        scores = (_features(test, columns) - centre) @ weights + shares
    return [names[code] for code in scores.argmax(axis=1).tolist()]


def _features(texts: Sequence[str], columns: dict[str, int]) -> npt.NDArray[np.float64]:
    matrix = np.zeros((len(texts), len(columns)))
    for row, text in enumerate(texts):
        matrix[row, [columns[word] for word in _words(text) if word in columns]] = 1.0
    lengths: npt.NDArray[np.float64] = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.maximum(lengths, 1.0)


def _words(text: str) -> set[str]:
    return {token.text for token in split(text)} - {" "}
