"""Choose a method before a release: ``dptext advise`` and ``dptext playground``."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.cli import options
from dptext.cli.console import can_ask, print_json, say, stdout
from dptext.cli.options import input_option, method_option, privacy_option, run_option
from dptext.errors import DptextError
from dptext.methods.questions import QUESTIONS, Holder, Purpose, Question, Recipient

_WIDEST = 100


@options.collected
def advise(
    *,
    sources: options.Sources,
    text: Annotated[
        str | None, input_option(metavar="COLUMN", help="Column that holds the text.", show_default="guessed")
    ] = None,
    label: Annotated[
        tuple[str, ...],
        input_option(metavar="COLUMN", help="Column that holds a label (repeatable).", show_default="guessed"),
    ] = (),
    public: Annotated[
        tuple[str, ...],
        input_option(
            metavar="FILE", help="Public texts for previews and commands (repeatable).", show_default="bundled ones"
        ),
    ] = (),
    public_text: options.PublicText = "text",
    public_label: options.PublicLabel = None,
    user: Annotated[
        str | None,
        privacy_option(
            metavar="COLUMN",
            help="Column that names the author, whom the guarantee protects.",
            show_default="guessed",
        ),
    ] = None,
    trust: Annotated[
        Holder | None,
        privacy_option(help="central: one party may hold all texts; local: every owner or device protects its own."),
    ] = None,
    recipient: Annotated[Recipient | None, privacy_option(help="Who receives the release.")] = None,
    purpose: Annotated[
        Purpose | None,
        method_option(
            help="Purpose: texts to read, a classifier, word vectors, vectors sent by devices, or statistics."
        ),
    ] = None,
    output: options.Output,
) -> None:
    """Compare the release methods for a file, with the command to run.

    Print the guarantee, utility and attack success of each method, for the owner of the data. Nothing is written. On a
    terminal, it asks for --purpose, --recipient and --trust if they are missing.

    Example: dptext advise notes.csv --purpose read --recipient public --trust central
    """
    answers: dict[str, Any] = {"purpose": purpose, "recipient": recipient, "trust": trust}
    if not (output.as_json or output.quiet) and can_ask():
        answers |= _asked([question for question in QUESTIONS if answers[question.name] is None])
    from dptext.methods import advise as comparison  # loads every method: the help does without

    found = comparison.advise(
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
    width = min(console.width, _WIDEST) if console.is_terminal else comparison.WIDTH
    output.answer(found.as_dict, lambda: typer.echo(comparison.as_text(found, width)))


def _asked(questions: Sequence[Question]) -> dict[str, str | None]:
    """Ask questions on a terminal; an answer is a number, a name, or nothing."""
    answers: dict[str, str | None] = {}
    for question in questions:
        names = list(question.choices)
        say(question.text)
        for number, (name, meaning) in enumerate(question.choices.items(), 1):
            say(f"  {number}  {name:<11} {meaning}")
        while question.name not in answers:
            sys.stderr.write(f"--{question.name} (1 to {len(names)}; Enter: not decided): ")
            sys.stderr.flush()
            answer = sys.stdin.readline().strip().casefold()
            if not answer:
                answers[question.name] = None
            elif answer in names:
                answers[question.name] = answer
            elif answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(names):
                answers[question.name] = names[int(answer) - 1]
        say("")
    return answers


@options.collected
def playground(
    *,
    port: Annotated[int | None, run_option(metavar="N", help="Port of 127.0.0.1.", show_default="a free one")] = None,
    opens: Annotated[bool, run_option("--open", help="Also open the page in the browser.")] = False,
    output: options.Output,
) -> None:
    """Try the release methods on a text in the browser, on this machine only.

    It is a teaching aid, not a release.

    Example: dptext playground --open
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
        """Load what takes long while the browser opens; an error comes again when the page asks."""
        with suppress(DptextError):
            first = next(iter(SETTINGS))
            model.show(first, model.samples[0][1], SETTINGS[first].epsilons[2], draws=1)

    threading.Thread(target=warm, daemon=True).start()
    if opens:
        webbrowser.open(server.address)
    with suppress(KeyboardInterrupt):
        server.run()
    output.say("Stopped.")
