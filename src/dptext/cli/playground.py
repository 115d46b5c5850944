"""``dptext playground``: a page on this machine on which a text is made private while one looks."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import suppress
from typing import Annotated

import typer

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.errors import DptextError

__all__ = ["playground"]


@options.collected
def playground(
    *,
    port: Annotated[int | None, typer.Option(help="Of 127.0.0.1; a free one without it.")] = None,
    opens: Annotated[
        bool,
        typer.Option(
            "--open", help="Open the page in the browser, too; while it starts, its command line shows the address."
        ),
    ] = False,
    output: options.Output,
) -> None:
    """Try the ways on a text in the browser, on this machine alone: a teaching aid, not a release."""
    from dptext.playground.server import Server
    from dptext.playground.ways import WAYS, Playground

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
            first = next(iter(WAYS))
            model.show(first, model.samples[0][1], WAYS[first].epsilons[2], draws=1)

    threading.Thread(target=warm, daemon=True).start()
    if opens:
        webbrowser.open(server.address)
    with suppress(KeyboardInterrupt):
        server.run()
    output.say("Stopped.")
