"""How each golden file is made: everything that a run may change by chance is taken out."""

import contextlib
import functools
import hashlib
import importlib
import inspect
import io
import json
import os
import re
import shutil
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from typer.main import get_command

import dptext
from contracts.cases import CASES, statements_of
from dptext.representations import bounds

HERE = Path(__file__).parent
WIDTH = 100
CHANGING = (  # what a run may change by chance, and what stands for it
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"(?<![\w.])(?=\d*[a-f])[0-9a-f]{12,16}\b"), "<short digest>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<day>"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|seconds?|s|minutes?)\b(?! of)"), "<duration>"),
    (re.compile(r"[\d,.]+ (rows|texts|words|documents|vectors) a second"), "<rate>"),
    (re.compile(r"(<h3>Before and after</h3>.*?<tbody>).*?</tbody>", re.DOTALL), r"\1<drawn afresh></tbody>"),
    (re.compile(r"(\n### Before and after\n.*?\|---\|---\|\n).*?\n(?=\n##|\n?=== )", re.DOTALL), r"\1<drawn afresh>\n"),
    (re.compile(r"(see|Usage): .*?dptext(?= )"), r"\1: dptext"),
    (re.compile(r"\d+% of the words are unknown to these vectors.*\n"), ""),  # by logging, as a program sets it up
    (re.compile(r"dptext \d+\.\d+\.\d+[\w.+]*"), "dptext <version>"),
)
LONG_NUMBER = re.compile(r"-?\d+\.\d{6,}(e[-+]?\d+)?")


def _stable(text: str) -> str:
    """``text`` without what differs from run to run and from machine to machine."""
    text = LONG_NUMBER.sub(lambda match: f"{float(match[0]):.5g}", text)
    for pattern, stands in CHANGING:
        text = pattern.sub(stands, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@functools.cache
def _statements():
    return [(name, number, item) for name in CASES for number, item in enumerate(statements_of(name))]


def statements() -> str:
    """JSON of every kind of statement, as differences: a line for each field that differs from a reference.

    The reference of a case's first statement is TEM's, that of the others is the first. Of a list or a mapping only the
    entries that differ are written (``-`` marks a missing one), and a long line is written out once.
    """
    lines, known = [], set()
    usual = first = {}
    for name, number, statement in _statements():
        fields = json.loads(_stable(statement.to_json()))
        reference = first if number else usual
        lines.append(f"=== {name} {number}")
        lines += [f"{key}: {line}" for key in fields for line in _differences(reference.get(key), fields[key], known)]
        first = first if number else fields
        usual = usual or fields
    return "\n".join(lines) + "\n"


def _differences(reference, value, known):
    if value == reference:
        return
    if isinstance(value, list):
        added = [item for item in value if item not in (reference or [])]
        removed = [f"- {item}" for item in reference or [] if item not in value]
        yield from (_once(line, known) for line in [*added, *removed] or ["in another order" if value else "none"])
    elif isinstance(value, dict):
        reference = reference or {}
        added = {key: item for key, item in value.items() if key not in reference or reference[key] != item}
        removed = [f"-{key}" for key in reference if key not in value]
        yield _once(" ".join([json.dumps(added, ensure_ascii=False), *removed]), known)
    else:
        yield json.dumps(value, ensure_ascii=False)


def _once(line, known):
    """Shorten a long line that was written out before to its beginning and a digest."""
    is_known = line in known
    known.add(line)
    return f"{line[:50]}... ({_digest(line)})" if is_known and len(line) > 70 else line


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _without_repeats(text: str) -> str:
    """Replace every run of lines that were written before by their number and a digest."""
    lines, known, repeated = [], set(), []
    for line in [*text.splitlines(), "$ "]:
        if (line in known or (repeated and line == "")) and not line.startswith(("$ ", "===")):
            repeated.append(line)
            continue
        if len(repeated) > 1:
            repeated = [f"... {len(repeated)} lines as above ({_digest(chr(10).join(repeated))})"]
        lines += [*repeated, line]
        repeated = []
        known.add(line)
    return "\n".join(lines[:-1]) + "\n"


def explanations() -> str:
    """Explanations of all statements: every sentence once, whatever its numbers, and a digest of each explanation.

    The digest changes with any word or number of an explanation; ``statement.explain()`` shows which.
    """
    lines, known = [], set()
    for name, number, statement in _statements():
        text = _stable(statement.explain())
        lines.append(f"=== {name} {number} ({_digest(text)})")
        for paragraph in re.split(r"\n(?=\S|  - |\n)|(?<=[A-Z]{2})\n", text):
            for sentence in re.split(r"(?<=[.:]) (?=[A-Z])", " ".join(paragraph.split())):
                template = re.sub(r"-?\d[\d.,]*(e-?\d+)?", "#", sentence)
                if template not in known:
                    known.add(template)
                    lines += textwrap.wrap(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def signatures() -> str:
    """Every public name with its parameters, and those of its methods."""
    lines = []
    for name in sorted({*dptext.__all__, *(n for n in dir(dptext) if n[0].isupper())}):
        result = getattr(dptext, name)
        if not callable(result):
            lines.append(f"{name} = {type(result).__name__}")
            continue
        lines.append(f"{name}{_signature(result)}")
        if inspect.isclass(result):
            for method in sorted(dir(result)):
                if method.startswith("_") or not (value := inspect.getattr_static(result, method)):
                    continue
                if not (getattr(value, "__module__", None) or "builtins").startswith("dptext") and not isinstance(
                    value, property | classmethod | staticmethod
                ):
                    continue  # scikit-learn's own, or Python's
                if isinstance(value, property):
                    lines.append(f"    .{method}")
                elif callable(getattr(result, method)):
                    lines.append(f"    .{method}{_signature(getattr(result, method))}")
    return _stable("\n".join(lines))


def _signature(function_value) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(function_value)))
    except (TypeError, ValueError):
        return "(...)"


@contextlib.contextmanager
def _terminal():
    with mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1"}):
        for name in ("typer.rich_utils", "dptext.cli.console"):  # they read the width when they are imported
            module = importlib.import_module(name)
            if hasattr(module, "MAX_WIDTH"):
                module.MAX_WIDTH = WIDTH
        yield


def run(*arguments: str) -> str:
    """What one command writes, both streams and its exit code."""
    from dptext.cli import main

    out, err = io.StringIO(), io.StringIO()
    with (
        _terminal(),
        mock.patch.object(sys, "argv", ["dptext", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            code = main()
        except SystemExit as stopped:
            code = stopped.code
    parts = [f"$ dptext {' '.join(arguments)}", out.getvalue().rstrip()]
    if err.getvalue().strip():
        parts += ["--- standard error", err.getvalue().rstrip()]
    return "\n".join([*parts, f"--- exit code {code or 0}", ""])


def _commands(group, path=()):
    yield path
    for name in getattr(group, "commands", {}):
        yield from _commands(group.commands[name], (*path, name))


def help_texts() -> str:
    """The help of every command."""
    from dptext.cli.app import program

    return _stable("\n".join(run(*path, "--help") for path in _commands(get_command(program()))))


TEXTS = (
    "the government said the city would open the first school",
    "he said that the company would not sell the old house",
    "she was the first woman to play for the national team",
    "people in the country want more time and money",
    "the president said the war would end before the year",
    "his family had a small house in the south of the city",
)


def _inputs() -> None:
    glove = dptext.load_vectors("glove-6b-50d", limit=300)
    dptext.save_vectors(glove, "small.txt")
    rows = [
        {
            "user": f"u{number % 30}",
            "text": TEXTS[number % 6],
            "age": "old" if number % 2 else "young",
            "topic": number % 3,
        }
        for number in range(60)
    ]
    Path("in.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    Path("in.txt").write_text("\n".join(TEXTS) + "\n")
    pairs = zip(glove.words[10:130:20], glove.words[150:270:20], strict=True)
    Path("pairs.csv").write_text("\n".join(["name,secret", *map(",".join, pairs)]) + "\n")
    Path("in.csv").write_text(
        "id,review,name\n" + "\n".join(f"{n},{text},someone" for n, text in enumerate(TEXTS)) + "\n"
    )


WORDS = ("--vectors", "small.txt", "--seed", "1")
COMMANDS = (
    "privatize in.txt -o tem.txt --epsilon 6 {words}",
    "privatize in.txt -o tem.txt --epsilon 6 {words}",
    "privatize in.txt -o tem.txt --epsilon 6 {words} --force --json",
    "privatize in.jsonl -o a.jsonl --epsilon 12 --text text --keep topic {words}",
    "privatize in.jsonl -o user.jsonl --epsilon 12 --set document_epsilon=40 --text text {words}",
    "privatize in.jsonl -o user.jsonl --set document_epsilon=90 --set max_words=9 --text text {words}",
    "ledger create book.db",
    "ledger create book.db --epsilon 2000",
    "privatize in.jsonl -o charged.jsonl --epsilon 12 --text text --ledger book.db --user user {words}",
    "ledger show book.db",
    "ledger settle book.db nothing",
    "privatize in.csv -o b.csv --epsilon 12 --text review {words} --mechanism madlib",
    "privatize in.txt -o c.txt --epsilon 12 {words} --mechanism santext",
    "privatize in.txt -o c2.txt --epsilon 12 {words} --mechanism nothing",
    "privatize in.txt -o c3.txt {words}",
    "privatize in.txt -o c4.txt --epsilon -1 {words}",
    "privatize missing.txt -o c5.txt --epsilon 2 {words}",
    "privatize in.jsonl -o c6.jsonl --epsilon 2 --text nothing {words}",
    "explain tem.txt",
    "explain tem.txt --json",
    "explain a.jsonl",
    "explain b.csv.privacy.json",
    "explain in.txt",
    "audit tem.txt",
    "audit b.csv --text review {few}",
    "audit tem.txt --json",
    "calibrate {vectors} --epsilon 6",
    "calibrate {vectors} --keep-rate 0.3",
    "calibrate {vectors} --mechanism vickrey --epsilon 6 --json",
    "encode in.jsonl -o vectors.parquet --epsilon 4 --keep topic {text}",
    "encode in.jsonl -o gauss.parquet --epsilon 1 --delta 1e-6 --randomizer gaussian {text}",
    "encode in.jsonl -o no.parquet --epsilon 4 --randomizer nothing {text}",
    "explain vectors.parquet",
    "audit vectors.parquet {few}",
    "embed in.jsonl -o shared --user user --epsilon 2 --delta 1e-5 {words}",
    "embed in.jsonl -o shared --user user --epsilon 2 {words}",
    "embed in.jsonl -o levels --user user --level age --levels old=1,young=2 --delta 1e-5 {words}",
    "explain shared",
    "embed in.jsonl -o learnt --user user --epsilon 2 --delta 1e-6 --new-words 1 {words}",
    "embed in.jsonl -o skip --method skip-gram --user user --epsilon 2 {delta} --public-users 40 --steps 2 {words}",
    "attack linkage in.jsonl a.jsonl",
    "attack recovery in.jsonl a.jsonl --informed",
    "attack attribute a.jsonl --label topic",
    "attack neighbours shared --pairs pairs.csv",
    "attack neighbours a.jsonl --pairs pairs.csv",
    "report a.jsonl -o page.html --label topic --card page.md",
    "report a.jsonl -o owner.html --original in.jsonl --attribute topic --card owner.md",
    "report vectors.parquet -o vectors.html --label topic",
    "report shared -o shared.html",
    "bank in.txt -o bank --encoder small.txt --name texts",
    "privatize in.jsonl -o bank.jsonl --keep topic {bank} --unit document --epsilon 8 --set size=1 --seed 1",
    "privatize in.jsonl -o sentences.jsonl {bank} --epsilon 2 --set size=2 --seed 1",
    "explain bank.jsonl",
    "explain sentences.jsonl",
    "audit bank.jsonl {few}",
    "audit bank.jsonl --bank bank {few}",
    "attack linkage in.jsonl bank.jsonl --bank bank",
    "calibrate --bank bank --relinking 0.5 --people 5",
    "calibrate --bank bank --relinking 0.2 --people 5",
    "report bank.jsonl -o bank.html --bank bank --label topic --original in.jsonl --card bank.md",
)
FILLED = {
    "bank": "--text text --mechanism bank --bank bank",
    "delta": "--delta 1e-6",
    "few": "--samples 2000",
    "text": "--text text --encoder small.txt --seed 1",
    "words": " ".join(WORDS),
    "vectors": "--vectors small.txt",
}
PAGES = (
    *("page.html", "page.md", "owner.html", "owner.md", "vectors.html", "tem.txt.privacy.json"),
    *("bank.html", "bank.md", "bank/README.md"),
    *(f"{entry}/README.md" for entry in ("shared", "levels", "learnt", "skip")),
    "shared/config.json",
)


def _to_30_bits(function):
    """Noise is drawn for the numbers it is put on, to their last bit, and that bit is the processor's in a product of
    matrices (BLAS): without the last bits a seed gives one output on all of them."""

    def cut(*arguments_value, **named):
        return (
            np.trunc(np.asarray(function(*arguments_value, **named)) * 2.0**30) / 2.0**30
        )  # towards 0: a bound stays kept

    return cut


@contextlib.contextmanager
def _on_any_processor():
    quantile = _to_30_bits(bounds._radius)
    with (
        mock.patch.object(bounds, "principal_directions", _to_30_bits(bounds.principal_directions)),
        mock.patch.object(bounds, "_radius", lambda *arguments_value: float(quantile(*arguments_value))),
        mock.patch.object(bounds.Bound, "apply", _to_30_bits(bounds.Bound.apply)),
    ):
        yield


def _all_commands() -> tuple[str, str]:
    """What fixed commands print, and the pages and cards that they leave."""
    before, folder = Path.cwd(), tempfile.mkdtemp()
    os.chdir(folder)
    try:
        _inputs()
        with _on_any_processor():
            printed = "\n".join(run(*command.format(**FILLED).split()) for command in COMMANDS)
        result = sorted(str(path) for path in Path().rglob("*") if path.is_file())
        printed += "\n=== files\n" + "\n".join(result)
        pages = "\n".join(f"=== {page}\n{Path(page).read_text('utf-8')}" for page in PAGES if Path(page).exists())
    finally:
        os.chdir(before)
        shutil.rmtree(folder)
    return _stable(printed.replace(folder, "<folder>")), _stable(pages.replace(folder, "<folder>"))


_made: list[tuple[str, str]] = []


def commands() -> str:
    """What fixed commands print: seeded, on 300 public words."""
    if not _made:
        _made.append(_all_commands())
    return _without_repeats(_made[0][0])


def pages() -> str:
    """The pages and cards that these commands leave."""
    commands()
    return _without_repeats(_made[0][1])


def stub() -> str:
    """The stub for type checkers: an import of every public name from the module that defines it."""
    imports = [f"from dptext.{home} import {name} as {name}" for name, home in dptext._HOME.items()]
    return "\n".join(["# Generated: cd tests && python -m golden", *imports, "", "__version__: str", ""])


STUB = os.path.relpath(Path(dptext.__file__).with_suffix(".pyi"), HERE)
FILES = {
    STUB: stub,
    "statements.txt": statements,
    "explanations.txt": explanations,
    "signatures.txt": signatures,
    "help.txt": help_texts,
    "commands.txt": commands,
    "pages.txt": pages,
}
