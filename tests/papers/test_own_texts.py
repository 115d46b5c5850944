"""The five experiments on a user's own file, and one line for a wrong one."""

import csv
from argparse import Namespace
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import dptext
from dptext.errors import DataError

PAPERS = ("data_sets", "reports")
pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
INTENTS = ("GetWeather", "PlayMusic", "RateBook")
# by paper: options, and parts of the printed tables
EXPERIMENTS = {
    "dpnr": (
        ["--runs", "1", "--attribute", "side"],
        [
            "Figure 4",
            "| epsilon 0.1 ",
            "0.1, 5 ",
            "Figure 5",
            "**Attack**",
            "**Fairness**",
            "Figure 7",
            "Figure 8",
            "4, 256",
            "majority class",
        ],
    ),
    "dptext": (["--attribute", "side"], ["| ORIGINAL ", "| DPTEXT ", "0.1, infinite", "16, 16 ", "majority; guessing"]),
    "dpugc": (
        ["--user", "author", "--label", "length"],
        ["| own ", "(a) DP-Embedding, three", "8, 8 for a user", "random words", "| 20 steps ", "always the mean"],
    ),
    "ome": ([], ["| NPNN ", "| lambda 50 ", "1, 2,929 ", "| SUE ", "majority class", "| PrivUnit "]),
    "tem": (
        ["--trials", "2", "--epsilons", "4", "--shadows", "4"],
        ["4, 33.6 / ", "likelihood ratio", "majority class", "chance"],
    ),
}
LEFT_OUT = {
    "dpnr": "**Figure 6 and attacks.** Left out",
    "dptext": "Left out: ADV-ALL, DPTEXT and the attacks",
    "dpugc": "**Table 3, RMSE.** Left out",
}


@pytest.fixture(scope="module")
def rows():
    """96 questions of the bundled sample, each by its own author."""
    sample = ROOT / "src" / "dptext" / "cli" / "sample" / "snips-train.jsonl.gz"
    questions = [entry for entry in dptext.read_documents(sample, label="intent") if entry.label in INTENTS][:96]
    return [
        {
            "words": entry.text,
            "label": entry.label,
            "author": f"p{place}",
            "side": "ab"[place % 2],
            "length": len(entry.text),
        }
        for place, entry in enumerate(questions)
    ]


def write(path, rows, columns=("words", "label", "author", "side", "length")):
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def run(papers, paper, *arguments):
    """The exit code of an experiment's command."""
    main = import_module(f"papers.{paper}.experiment").main
    try:
        papers.reports.run_command(lambda: main(list(map(str, arguments))))
    except SystemExit as result:
        return result.code
    return 0


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_an_experiment_prints_the_tables_of_its_paper(papers, rows, tmp_path, capsys, paper):
    options, expected = EXPERIMENTS[paper]
    data = write(tmp_path / "own.csv", rows)
    arguments = ["--quick", "--data", data, "--text", "words", "--out", tmp_path / "out", *options]
    assert run(papers, paper, *arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("For you alone")
    assert [part for part in expected if part not in printed] == []
    assert not any(row["words"] in path.read_text("utf-8") for path in tmp_path.glob("out/*.[jm]*") for row in rows)
    assert run(papers, paper, *arguments, "--report") == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("paper", LEFT_OUT)
def test_a_part_without_its_column_is_left_out(papers, rows, tmp_path, capsys, paper):
    data = write(tmp_path / "own.csv", rows[:50], ("words", "label"))
    options = ["--runs", "1"] if paper == "dpnr" else []
    assert run(papers, paper, "--quick", "--data", data, "--text", "words", "--out", tmp_path / "out", *options) == 0
    assert LEFT_OUT[paper] in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_a_wrong_file_or_folder_is_one_line(papers, rows, tmp_path, capsys, paper):
    one_class = [row | {"label": "x", "author": "p"} for row in rows]
    files = {
        "does not exist": tmp_path / "none.csv",
        "expected one of|cannot read": tmp_path,
        "no documents|empty": write(tmp_path / "header.csv", []),
        "empty|no documents|no header": tmp_path / "empty.csv",
        "expected a column 'words'": write(tmp_path / "column.csv", rows, ("label", "author")),
        "40 complete rows are needed, got 12": write(tmp_path / "few.csv", rows[:12]),
    }
    (tmp_path / "empty.csv").touch()
    if paper != "dpugc":  # it has no classes
        files["needs two values of at least 6"] = write(tmp_path / "one.csv", one_class)
    for message, data in files.items():
        code = run(papers, paper, "--quick", "--data", data, "--text", "words", "--out", tmp_path / "out")
        error = capsys.readouterr().err.splitlines()
        assert (code, len(error)) == (2, 1), error
        assert any(part in error[0] for part in message.split("|")), (message, error)


def test_every_module_turns_a_wrong_folder_into_one_line(papers, tmp_path, capsys):
    modules = [path for path in (ROOT / "papers").glob("*/*.py") if '__name__ == "__main__"' in path.read_text("utf-8")]
    assert len(modules) > 15
    for path in modules:
        assert path.read_text("utf-8").endswith('if __name__ == "__main__":\n    run_command(main)\n'), path
        module = import_module(f"papers.{path.parent.name}.{path.stem}")
        with pytest.raises(SystemExit) as result:
            papers.reports.run_command(lambda main=module.main: main(["--quick", "--data", str(tmp_path / "none")]))
        error = capsys.readouterr().err
        assert (result.value.code, error.count("\n")) == (2, 1), path
        assert "does not exist" in error, path


# -- the rows ----------------------------------------------------------------------------------------------------------


def read(papers, data, number=1000, **columns):
    columns = {"text": "words", "label": None, "user": None, "attribute": [], "own": "own"} | columns
    return papers.data_sets.own_texts(Namespace(data=data, **columns), rows=number)


def test_rows_are_drawn_with_a_seed_and_rare_or_incomplete_ones_are_left_out(papers, rows, tmp_path, capsys):
    rare = [rows[0] | {"label": "rare"}] * 5
    incomplete = [rows[0] | {"words": " "}, rows[1] | {"label": ""}]
    data = write(tmp_path / "own.csv", [*rare, *rows, *incomplete])
    posts = read(papers, data)
    assert list(posts.texts) == [row["words"] for row in rows]
    assert posts.labels.tolist() == [row["label"] for row in rows]
    messages = capsys.readouterr().err
    assert "2 rows without a text or a value of label are left out" in messages
    assert "5 rows of rare values" in messages
    samples = [read(papers, data, 60) for _ in range(2)]
    assert samples[0].texts == samples[1].texts
    assert set(samples[0].texts) < set(posts.texts)
    assert "60 of 101 rows are used, drawn at random" in capsys.readouterr().err


def test_a_number_becomes_its_thirds_and_an_author_has_one_group(papers, rows, tmp_path):
    two_texts_each = [row | {"author": place // 2} for place, row in enumerate(rows)]
    data = write(tmp_path / "own.csv", two_texts_each)
    posts = read(papers, data, user="author", attribute=["length"])
    assert posts.people.max() == 47
    groups = posts.attributes["length"].tolist()
    assert len({*zip(posts.people.tolist(), groups, strict=True)}) == 48
    assert len(Counter(groups)) == 3
    with pytest.raises(DataError, match="'side' needs two values of at least 6 authors"):
        read(papers, data, user="author", attribute=["side"])  # the first text of every author is on side a
