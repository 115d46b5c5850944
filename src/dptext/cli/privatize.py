"""``dptext privatize``: a file of texts in, private texts and their statement out."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dptext.cli.console import ConfigOption, JsonOption, QuietOption, VerboseOption, progress_over, say
from dptext.errors import ParameterError
from dptext.privacy.guarantee import at_most
from dptext.privacy.statement import PrivacyStatement
from dptext.text.documents import Document, DocumentReader, DocumentWriter, file_format, read_documents, replacing
from dptext.vectors.formats import KNOWN_VECTORS, load_vectors
from dptext.words.madlib import Madlib
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import Rewriter
from dptext.words.tem import TEM

__all__ = ["privatize", "statement_path", "write_private"]


class MechanismName(StrEnum):
    """The mechanisms that the command line offers."""

    TEM = "tem"
    MADLIB = "madlib"


class UnknownPolicy(StrEnum):
    """What a word outside the vocabulary counts as."""

    UNK = "unk"
    UNIFORM = "uniform"


def statement_path(data: Path) -> Path:
    """Where the statement of a data file stands."""
    return data.with_name(f"{data.name}.privacy.json")


def privatize(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .txt, .jsonl or .csv file, plain or .gz.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Where the private texts go.")],
    epsilon: Annotated[float, typer.Option(help="Nats per unit of distance between two words.")],
    text: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column to keep as it is (may be repeated); it is exposed. All others are dropped."),
    ] = None,
    mechanism: Annotated[MechanismName, typer.Option(help="How words are replaced.")] = MechanismName.TEM,
    vectors: Annotated[
        str, typer.Option(metavar="NAME|PATH", help=f"Public word vectors: {', '.join(KNOWN_VECTORS)}, file or folder.")
    ] = "glove-6b-50d",
    limit: Annotated[int, typer.Option(help="Use this many of the most frequent words.")] = 50_000,
    beta: Annotated[float | None, typer.Option(help="TEM: how rarely a word goes farther than the threshold.")] = None,
    threshold: Annotated[float | None, typer.Option(help="TEM: distances count up to here.")] = None,
    document_epsilon: Annotated[
        float | None, typer.Option(help="TEM: a pure budget for a document (with --max-words).")
    ] = None,
    max_words: Annotated[
        int | None, typer.Option(help="TEM: how many words of a document the budget covers; later ones become <unk>.")
    ] = None,
    unknown: Annotated[
        UnknownPolicy, typer.Option(help="What words outside the vocabulary count as.")
    ] = UnknownPolicy.UNK,
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise, for tests and papers only: it voids the promise.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT and its statement.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    _verbose: VerboseOption = False,
    _config: ConfigOption = None,
) -> None:
    """Replace every word of a corpus, and write OUT and OUT.privacy.json."""
    kept = tuple(keep or ())
    check_output(source, out, force=force)
    reader = read_documents(source, text=text, keep=kept)
    options = {
        "beta": beta,
        "threshold": threshold,
        "document_epsilon": document_epsilon,
        "max_words": max_words,
    }
    built = build_mechanism(mechanism, vectors, limit, epsilon, unknown, options)
    say(promise_before_start(built), quiet=quiet)
    count, statement = write_private(reader, out, Rewriter(built, seed=seed), text=text, keep=kept, quiet=quiet)
    if as_json:
        summary = {"documents": count, "out": str(out), "statement": json.loads(statement.to_json())}
        typer.echo(json.dumps(summary, ensure_ascii=False))
    say(f"Wrote {count:,} private documents to {out} and what was promised to {statement_path(out)}.", quiet=quiet)
    say(f"Read it aloud: dptext explain {out}", quiet=quiet)


def check_output(source: Path, out: Path, *, force: bool) -> None:
    """Refuse an output that would destroy something.

    Raises:
        ParameterError: OUT is IN, OUT is there already (without force), OUT has an unknown suffix.
    """
    file_format(out)
    if out.exists() and source.exists() and out.samefile(source):
        raise ParameterError("OUT is the same file as IN: choose another name for the private texts")
    for target in (out, statement_path(out)):
        if target.is_dir():
            raise ParameterError(f"{str(target)!r} is a folder: name a file in it")
        if target.exists() and not force:
            raise ParameterError(f"{str(target)!r} is there already: choose another name, or add --force")


def build_mechanism(
    name: MechanismName,
    vectors: str,
    limit: int,
    epsilon: float,
    unknown: UnknownPolicy,
    options: dict[str, float | int | None],
) -> WordMechanism:
    """The mechanism that the options ask for."""
    given = {key: value for key, value in options.items() if value is not None}
    if name is MechanismName.MADLIB and given:
        names = ", ".join(f"--{key.replace('_', '-')}" for key in given)
        raise ParameterError(f"the mechanism madlib has no {names}: leave it out, or use --mechanism tem")
    words = load_vectors(vectors, limit=limit)
    if name is MechanismName.MADLIB:
        return Madlib(words, epsilon=epsilon, unknown=unknown.value)
    return TEM(words, epsilon=epsilon, unknown=unknown.value, **given)  # type: ignore[arg-type]


def promise_before_start(mechanism: WordMechanism) -> str:
    """Unit, relation and pure epsilon, for the person who is about to release something."""
    word = mechanism.word_guarantee()
    vectors = mechanism.vectors
    if isinstance(mechanism, TEM) and mechanism.document_epsilon is not None:
        document = (
            f"epsilon {at_most(mechanism.document_epsilon, 4)} for a document (its first {mechanism.max_words} words)"
        )
    else:
        document = f"{at_most(word.pure_epsilon, 4)} times its number of words for a document"
    return (
        f"{mechanism.name} on {vectors.source} ({len(vectors):,} words, {vectors.dimension} dimensions)\n"
        f"  unit      document; relation: substitution among documents of equal layout; local\n"
        f"  promise   {at_most(mechanism.epsilon, 4)} per unit of {word.metric} distance between words\n"
        f"  pure      epsilon at most {at_most(word.pure_epsilon, 4)} for a word, {document}"
    )


@contextmanager
def _no_orphan(out: Path) -> Iterator[None]:
    """A statement whose data could not be put in place speaks of nothing: it goes."""
    beside = statement_path(out)
    before = beside.stat().st_mtime_ns if beside.exists() else None
    try:
        yield
    except BaseException:
        if beside.exists() and beside.stat().st_mtime_ns != before:
            beside.unlink()
        raise


def write_private(
    reader: DocumentReader, out: Path, rewriter: Rewriter, *, text: str, keep: tuple[str, ...], quiet: bool
) -> tuple[int, PrivacyStatement]:
    """Stream the private texts to OUT; the statement appears first, so that no data is ever without one."""
    waiting: deque[Document] = deque()

    def texts() -> Iterator[str]:
        for document in reader:
            waiting.append(document)
            yield document.text

    with _no_orphan(out), replacing(out) as stream, progress_over(reader, quiet=quiet) as step:
        writer = DocumentWriter(out, stream, text=text, keep=keep)
        for private in rewriter.rewrite(texts()):
            writer.write(Document(private, attributes=waiting.popleft().attributes))
            step()
        writer.close()
        statement = rewriter.statement()
        statement = statement.replace(
            data_sha256=stream.digest(),
            exposed=(*statement.exposed, *(f"the column {name!r}, as it was" for name in keep)),
        )
        with replacing(statement_path(out)) as beside:
            beside.write((statement.to_json() + "\n").encode())
    return writer.count, statement
