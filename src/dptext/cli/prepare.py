"""Before a release: ``dptext advise``, ``dptext bank`` and ``dptext playground``."""

from __future__ import annotations

import shlex
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import can_ask, print_json, print_paragraph, print_table, progress_bar, resumable, say, stdout
from dptext.cli.options import argument, input_option, method_option, output_option, privacy_option, run_option
from dptext.errors import DptextError, ParameterError
from dptext.features.features import DEFAULT_IN_WORDS, NAMES
from dptext.methods.data import QUESTIONS, Holder, Purpose, Question, Recipient

_MAX_WIDTH = 100
_DRAW_EPSILONS = (4.0, 8.0, 12.0)


# -- advise --------------------------------------------------------------------------------------------------------


def advise(
    *,
    sources: tuple[str, ...] = options.SOURCES,
    text: str | None = input_option(None, "Column that holds the text.", "COLUMN", show_default="guessed"),
    label: tuple[str, ...] = input_option(
        (), "Column that holds a label (repeatable).", "COLUMN", show_default="guessed"
    ),
    public: tuple[str, ...] = input_option(
        (), "Public texts for previews and commands (repeatable).", "FILE", show_default="bundled ones"
    ),
    public_text: str = options.PUBLIC_TEXT,
    public_label: str | None = options.PUBLIC_LABEL,
    user: str | None = privacy_option(
        None, "Column that names the author, whom the guarantee protects.", "COLUMN", show_default="guessed"
    ),
    trust: Holder | None = privacy_option(
        None, "central: one party may hold all texts; local: every owner or device protects its own."
    ),
    recipient: Recipient | None = privacy_option(None, "Who receives the release."),
    purpose: Purpose | None = method_option(
        None, "Purpose: texts to read, a classifier, word vectors, vectors sent by devices, or statistics."
    ),
    output: options.Output,
) -> None:
    """Compare the release methods for a file, with the command to run.

    Print the guarantee, utility and attack success of each method, for the owner of the data. Nothing is written. On a
    terminal, it asks for --purpose, --recipient and --trust if they are missing.

    Example: dptext advise notes.csv --purpose read --recipient public --trust central
    """
    answers: dict[str, Any] = {"purpose": purpose, "recipient": recipient, "trust": trust}
    if not (output.as_json or output.quiet) and can_ask():
        answers |= _ask([question for question in QUESTIONS if answers[question.name] is None])
    from dptext.methods import advise as comparison  # loads every method: the help does without

    advice = comparison.advise(
        [Path(name) for name in sources],
        text=text,
        user=user,
        label=label or None,
        public=[Path(name) for name in public] or None,
        public_text=public_text,
        public_label=public_label,
        **answers,
    )
    console = stdout()
    width = min(console.width, _MAX_WIDTH) if console.is_terminal else comparison.WIDTH
    output.print_result(advice.as_dict, lambda: typer.echo(comparison.as_text(advice, width)))


def _ask(questions: Sequence[Question]) -> dict[str, str | None]:
    """Ask questions on a terminal; an answer is a number, a name, or nothing."""
    answers: dict[str, str | None] = {}
    for question in questions:
        names = list(question.choices)
        valid: dict[str, str | None] = {"": None, **{name: name for name in names}}
        say(question.text)
        for number, (name, meaning) in enumerate(question.choices.items(), 1):
            say(f"  {number}  {name:<11} {meaning}")
            valid[str(number)] = name
        while question.name not in answers:
            sys.stderr.write(f"--{question.name} (1 to {len(names)}; Enter: not decided): ")
            sys.stderr.flush()
            answer = sys.stdin.readline().strip().casefold()
            if answer in valid:
                answers[question.name] = valid[answer]
        say("")
    return answers


# -- bank ----------------------------------------------------------------------------------------------------------


def bank(
    *,
    public: tuple[str, ...] = argument(
        ..., "Public files, folders or patterns, chosen without regard to IN.", "POOL..."
    ),
    text: str = options.TEXT,
    out: Path = output_option(..., "Output folder.", "FOLDER", "--out", "-o"),
    name: str | None = output_option(None, "Name of the public texts in the statement and the card."),
    licence: str | None = options.LICENCE_OPTION,
    force: bool = options.FORCE,
    sentences: bool = method_option(False, "Cut documents into sentences, as private documents will be cut."),
    encoder: str | None = method_option(
        None,
        f"Text similarity: {', '.join(NAMES)}, or the path of word vectors or of a sentence model.",
        "NAME|PATH",
        show_default=DEFAULT_IN_WORDS,
    ),
    output: options.Output,
) -> None:
    """Make a bank of public texts for sentence replacement.

    The table shows how similar replacements are to their originals. The texts of POOL are published unchanged; their
    authors are not protected.

    Example: dptext bank reviews.jsonl -o public --sentences --licence CC0-1.0
    """
    from dptext.features.pool import Pool
    from dptext.sentences.bank import TextBank, check_place

    target = check_place(out, replace=force)
    with resumable(), progress_bar("reading public texts", quiet=output.quiet) as bar:
        documents = Pool([Path(path) for path in public], text=text, name=name, licence=licence)
        if any(target in path.resolve().parents for path in documents.files):
            raise ParameterError(f"{str(out)!r} holds a file of POOL, which would be deleted: choose another folder")
        texts = documents.sentences() if sentences else documents
        count = len(texts)
        saved = TextBank(
            texts, encoder=encoder, progress=lambda done: bar.step(min(done, count), count, "public texts")
        )
        saved.save(out, replace=force)
    similarity = _similarity(saved)
    if output.as_json:
        counts = {"texts": len(saved), "repeated": texts.repeated, "empty": texts.empty}
        print_json({"out": str(out), **counts, **saved.parameters(), "similarity": {"texts_like_the_bank": similarity}})
    if sentences:
        output.say(f"Cut {len(documents):,} documents into {texts.given:,} sentences.")
    features = saved.features
    output.say(f"Wrote a bank of {len(saved):,} texts ({features.name}, {features.dimension:,} dimensions) to {out}.")
    repeated, empty = documents.repeated + (texts.repeated if sentences else 0), documents.empty
    if repeated or empty:
        output.say(f"Left out {repeated:,} repeated and {empty:,} empty texts.")
    if saved.licence is None:
        output.say("Warning: --licence is missing, and the texts of the bank are published unchanged.")
    if not (output.quiet or output.as_json):
        _print_similarity(similarity)
    output.say(f"To use it: dptext privatize IN -o OUT --mechanism bank --bank {shlex.quote(str(out))} --epsilon 8")


def _similarity(saved: Any) -> dict[str, Any]:
    from dptext.noise.subset_selection import SubsetSelection, best_size

    profile, draws = saved.profile, []
    for epsilon in _DRAW_EPSILONS:
        size = min(best_size(epsilon, profile), profile.candidates - 1)
        share = size * SubsetSelection(len(saved), size, epsilon).probabilities[0]
        draws.append({"epsilon": epsilon, "size": size, "share": share, "similarity": profile.expected(size, epsilon)})
    nearest, average = (float(profile.cumulative[index] / profile.ranks[index]) for index in (0, -1))
    return {"any": average, "nearest": nearest, "draws": draws}


def _print_similarity(similarity: dict[str, Any]) -> None:
    draws = similarity["draws"]
    names = {"any text": "any", "nearest text": "nearest"}
    rows = [[name, f"{round(similarity[key], 2) + 0.0:.2f}", "", ""] for name, key in names.items()]
    for draw in draws:
        size, share = f"{draw['size']:,}", f"{draw['share']:.0%}"
        rows.append([f"epsilon {draw['epsilon']:g}", f"{round(draw['similarity'], 2) + 0.0:.2f}", size, share])
    typer.echo("Similarity of a replacement to its original (1: equal), for texts like the bank:")
    print_table(("replacement", "similarity", "nearest texts", "share of draws"), rows)
    size = draws[0]["size"]
    nearest = "are the most similar text" if size == 1 else f"fall among the {size:,} most similar texts"
    print_paragraph(
        f"At epsilon {draws[0]['epsilon']:g}, {draws[0]['share']:.0%} of draws {nearest}. Epsilon is per draw: the "
        "epsilon of a document is divided by its number of sentences "
        "(--max-sentences)."
    )


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
    from dptext.playground.server import PREVIEWERS, Playground, Server

    model = Playground()
    server = Server(model, port=port)
    if output.as_json:
        print_json({"address": server.address})
    else:
        typer.echo(f"The playground is at {server.address}")
    output.say("Only this machine can reach it, and only with this address. Ctrl-C stops it.")

    def load() -> None:
        """Load vectors and models while the browser opens; an error is raised again when the page asks."""
        with suppress(DptextError):
            first = next(iter(PREVIEWERS))
            model.show(first, model.samples[0][1], PREVIEWERS[first].epsilons[2], draws=1)

    threading.Thread(target=load, daemon=True).start()
    if opens:
        webbrowser.open(server.address)
    with suppress(KeyboardInterrupt):
        server.run()
    output.say("Stopped.")
