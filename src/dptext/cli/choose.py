"""Choose a method before a release: ``dptext advise`` and ``dptext playground``."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.cli import options
from dptext.cli.console import can_ask, print_json, say, stdout
from dptext.errors import DptextError
from dptext.methods.questions import QUESTIONS, Holder, Purpose, Question, Recipient

_WIDEST = 100


@dataclass(frozen=True, kw_only=True)
class Looked:
    """Which rows, and which of their columns is what."""

    sources: Annotated[
        tuple[str, ...], typer.Argument(metavar="IN...", help="Private files, folders or patterns: looked at, for you.")
    ]
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The text. Default: guessed.")] = None
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Who wrote a text, and so who is protected. Default: guessed.")
    ] = None
    label: Annotated[
        tuple[str, ...], typer.Option(metavar="COLUMN", help="A label (may be repeated). Default: guessed.")
    ] = ()
    in_format: options.InFormat = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is planned. What is left open is asked for on a terminal; without an answer nothing is ruled out.

    Attributes:
        purpose: What for: texts to read, a classifier, word vectors of the domain, vectors that devices send, or what
            many people write (and everything else).
        trust: central: somebody may hold all texts; local: nobody, each owner or device protects itself.
    """

    purpose: Purpose | None = None
    recipient: Annotated[Recipient | None, typer.Option(help="Who gets it.")] = None
    trust: Holder | None = None


@options.collected
def advise(
    *,
    looked: Looked,
    plan: Plan,
    public: tuple[str, ...] = (),
    public_text: Annotated[str, typer.Option(metavar="COLUMN", help="Their column.")] = "text",
    public_label: str | None = None,
    seed: options.AnalysisSeed = None,
    output: options.Output,
) -> None:
    """Which way suits these texts: what each would promise, be good for and give away, and the command. Writes nothing.

    It looks at columns and sizes of the private rows, for their owner alone.

    Args:
        public (FILE): Public texts for previews and commands (may be repeated). Default: bundled ones.
        public_label (COLUMN): Their column of public labels, to predict the accuracy of a corpus.
    """
    answers = {question.name: getattr(plan, question.name) for question in QUESTIONS}
    if not (output.as_json or output.quiet) and can_ask():
        answers |= _asked([each for each in QUESTIONS if answers[each.name] is None])
    from dptext.methods import advise as comparison  # loads every method: the help does without

    given: Any = answers
    found = comparison.advise(
        [Path(each) for each in looked.sources],
        text=looked.text,
        user=looked.user,
        label=looked.label or None,
        public=[Path(each) for each in public] or None,
        public_text=public_text,
        public_label=public_label,
        suffix=looked.in_format,
        seed=seed,
        **given,
    )
    console = stdout()
    width = min(console.width, _WIDEST) if console.is_terminal else comparison.WIDTH
    output.answer(found.as_dict, lambda: typer.echo(comparison.as_text(found, width)))


def _asked(questions: Sequence[Question]) -> dict[str, str | None]:
    """The answers to questions on a terminal: a number, a name, or nothing."""
    found: dict[str, str | None] = {}
    for question in questions:
        names = list(question.choices)
        say(question.text)
        for number, (name, meaning) in enumerate(question.choices.items(), 1):
            say(f"  {number}  {name:<11} {meaning}")
        while question.name not in found:
            sys.stderr.write(f"--{question.name} (1 to {len(names)}; Enter: not decided): ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            given = line.strip().casefold()
            if not given:
                found[question.name] = None
            elif given in names:
                found[question.name] = given
            elif given.isascii() and given.isdigit() and 1 <= int(given) <= len(names):
                found[question.name] = names[int(given) - 1]
        say("")
    return found


@options.collected
def playground(
    *,
    port: Annotated[int | None, typer.Option(help="Of 127.0.0.1; a free one without it.")] = None,
    opens: bool = False,
    output: options.Output,
) -> None:
    """Try the ways on a text in the browser, on this machine alone: a teaching aid, not a release.

    Args:
        opens (--open): Open the page in the browser, too; while it starts, its command line shows the address.
    """
    from dptext.playground.model import SETTINGS, Playground
    from dptext.playground.server import Server

    model = Playground()
    server = Server(model, port=port)
    if output.as_json:
        print_json({"address": server.address})
    else:
        typer.echo(f"The playground is at {server.address}")
    output.say("Only this machine reaches it, with this address. Ctrl-C stops it.")

    def warm() -> None:
        """What takes long is read while the browser opens; an error comes again when the page asks."""
        with suppress(DptextError):
            first = next(iter(SETTINGS))
            model.show(first, model.samples[0][1], SETTINGS[first].epsilons[2], draws=1)

    threading.Thread(target=warm, daemon=True).start()
    if opens:
        webbrowser.open(server.address)
    with suppress(KeyboardInterrupt):
        server.run()
    output.say("Stopped.")
