"""``dptext contribute`` and ``dptext sum``: from a plan to a corpus or a summary, without a curator."""

import csv
import json

import pytest

from dptext.cli import main
from secrecy import MARKER


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Rows of 30 users, one more row of another user, and a public pool."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"author": f"a{user}", "label": label, "text": f"{text} {MARKER}", "date": "2024-02-01"}
        for user in range(30)
        for label, text in [("sports", "The team won."), ("money", "Oil prices fell.")]
    ]
    for name, part in (("notes.csv", rows), ("one.csv", [rows[0] | {"author": "b"}])):
        with open(name, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(part)
    with open("pool.jsonl", "w") as file:
        for number in range(40):
            for text in ("The team won game", "Oil prices fell to", "A cup of tea at"):
                file.write(json.dumps({"text": f"{text} {number}"}) + "\n")
    return tmp_path


PLAN = (
    "synthesize --save-plan plan --epsilon 1 --public pool.jsonl --features static --label label --labels sports,money"
)


def run(command):
    return main(command.split())


def assert_error(capsys, message):
    """The error is one line that quotes no row."""
    shown = capsys.readouterr().err
    assert message in shown
    assert len(shown.splitlines()) == 1
    assert MARKER not in shown


def test_a_corpus_from_two_servers(folder, capsys):
    assert run(PLAN) == 0
    assert run("contribute plan notes.csv --user author -o messages") == 0
    assert run("contribute plan one.csv -o messages") == 0  # without --user: the texts of one user
    capsys.readouterr()
    assert run("--json sum plan messages/a -o sum-a") == 0
    assert json.loads(capsys.readouterr().out) == {"messages": 31, "left_out": 0, "out": "sum-a"}
    assert run("sum plan messages/b -o sum-b") == 0
    assert run("synthesize --sums sum-a sum-b --public pool.jsonl -o out.jsonl") == 2  # no --count
    assert not list(folder.glob("out.jsonl*"))
    assert run("synthesize --sums sum-a sum-b --public pool.jsonl -n 20 -o out.jsonl") == 0
    assert len((folder / "out.jsonl").read_text().splitlines()) == 20
    assert json.loads((folder / "out.jsonl.privacy.json").read_text())["trust"] == "two servers"
    assert run("audit out.jsonl --public pool.jsonl") == 0
    assert run("explain out.jsonl") == 0
    shown = capsys.readouterr().out
    assert "No party sees an original text" in shown
    assert "REFUTED" not in shown


def test_a_server_publishes_once_per_plan(folder, capsys):
    assert run(PLAN) == 0
    assert run("contribute plan notes.csv --user author -o messages") == 0
    assert run("sum plan messages/a -o sum-a") == 0
    capsys.readouterr()
    assert run("sum plan messages/a -o again") == 3
    assert_error(capsys, "already published a sum of this plan")
    (folder / "empty").mkdir()
    (folder / "empty" / "x.shares").touch()
    assert run("sum plan messages/b -o plan") == 2
    assert run("sum plan empty -o again") == 1
    assert not [*folder.glob("messages/b/*.published"), *folder.glob("empty/*.published")]  # nothing was published
    capsys.readouterr()
    assert not (folder / "again").exists()
    assert run(PLAN.replace("save-plan plan", "save-plan plan2")) == 0
    capsys.readouterr()
    assert run("sum plan2 messages/a -o again") == 1
    assert_error(capsys, "another plan")


def test_devices_that_drop_out_are_left_out_by_their_ids(folder, capsys):
    assert run(PLAN) == 0
    assert run("contribute plan notes.csv --user author -o messages") == 0
    known = set((folder / "messages" / "a").iterdir())
    assert run("contribute plan one.csv -o messages") == 0
    [late] = set((folder / "messages" / "a").iterdir()) - known
    late.unlink()
    for server in "ab":
        capsys.readouterr()
        assert run(f"sum plan messages/{server}") == 0
        (folder / f"ids-{server}").write_text(capsys.readouterr().out)
    assert run("sum plan messages/a --ids ids-b -o sum-a") == 0
    capsys.readouterr()
    assert run("--json sum plan messages/b --ids ids-a -o sum-b") == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == 1
    assert run("synthesize --sums sum-a sum-b --public pool.jsonl -n 20 -o out.jsonl") == 0
    capsys.readouterr()
    assert run("sum plan messages/b --ids notes.csv -o x") == 1
    assert_error(capsys, "not a list of ids")


def test_a_summary_from_two_servers(folder, capsys):
    plan = "describe --save-plan plan --epsilon 1 --time date --bins 2024-01..2024-03"
    assert run(plan) == 2
    assert_error(capsys, "--phrases 0")
    assert run(f"{plan} --phrases 0") == 0
    assert run("contribute plan notes.csv --user author -o messages") == 0
    assert run("sum plan messages/a -o sum-a") == 0
    assert run("sum plan messages/b -o sum-b") == 0
    capsys.readouterr()
    assert run("synthesize --sums sum-a sum-b --public pool.jsonl -n 20 -o out.jsonl") == 1
    assert_error(capsys, "another command")
    assert not (folder / "out.jsonl.distribution").exists()
    assert run("--json describe --sums sum-a sum-b -o summary") == 0
    people = json.loads(capsys.readouterr().out)["people"]
    assert people["low"] <= 30 <= people["high"]
    assert run("audit summary") == 0


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("sum notes.csv messages -o out", 1, "plan"),
        ("sum plan . -o out", 1, "has no messages"),
        ("contribute plan notes.csv --user nobody -o out", 1, "nobody"),
        ("synthesize notes.csv --sums plan plan --public pool.jsonl -n 2 -o out.jsonl", 2, "omit IN"),
        ("synthesize --sums plan plan --public pool.jsonl -n 2 -o out.jsonl", 1, "without a sum"),
        ("synthesize --sums plan plan --epsilon 2 --public pool.jsonl -n 2 -o out.jsonl", 2, "--epsilon"),
        ("synthesize --save-plan other --epsilon 1", 2, "--public POOL"),
        ("describe notes.csv --sums plan plan -o out", 2, "instead of IN"),
        (
            "describe --sums plan plan --ledger x --epsilon 3 --seed 0 -o out",
            2,
            "--epsilon, --ledger, --seed: no effect",
        ),
        ("describe --save-plan other --ledger x --seed 0 -o out", 2, "--ledger, --seed, --out: no effect"),
        (f"{PLAN} -o out --seed 0 --ledger x --user u", 2, "--ledger, --seed, --user, --out: no effect"),
        (f"{PLAN} notes.csv --sums plan plan -n 3", 2, "--count, IN, --sums: no effect"),
    ],
)
def test_bad_input_is_one_error(folder, capsys, command, code, message):
    assert run(PLAN) == 0
    capsys.readouterr()
    assert run(command) == code
    assert_error(capsys, message)
    assert not list(folder.glob("out*"))
