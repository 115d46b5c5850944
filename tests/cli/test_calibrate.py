"""`dptext calibrate` as a user meets it."""

import json
import re

import pytest

from dptext.cli import main


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, glove):
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rows = (f"{word} {' '.join(f'{x:.5f}' for x in glove[word])}" for word in glove.words[:500])
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def run(capsys, vectors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(each) for each in ("calibrate", *arguments, "--vectors", vectors)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_it_says_what_epsilon_does_and_which_one_to_use(run):
    code, out, err = run("--keep-rate", 0.4, "--word", "government", "--word", "zebulon", "--word", "[bold]")
    assert code == 0
    assert max(map(len, (out + err).splitlines())) <= 80
    assert "Measuring TEM on small.txt (501 words)" in err
    assert re.search(r"Use --epsilon [\d.]+: words of running text stay 0\.(40|39[5-9])", out)
    assert "no promise" in out
    for part in ("government", "zebulon", "(unknown)", "[bold]", "stays", "95%"):
        assert part in out


def test_json_holds_everything(run):
    code, out, err = run("--json", "--quiet", "--support", 30)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert set(answer) == {"vectors", "found", "epsilons", "words", "figure"}
    found = answer["found"]
    assert (found["target"], found["wanted"], found["error"]) == ("support", 30, None)
    assert 30 <= found["reached"] <= 32
    assert answer["vectors"]["words"] == 501
    assert [each["epsilon"] for each in answer["epsilons"]] == sorted(each["epsilon"] for each in answer["epsilons"])
    first = answer["epsilons"][0]
    assert len(first["quantiles"]["keep"]) == len(first["shares"]) == 5
    assert {"keep", "support", "replacement_distance", "neighbourhood"} <= set(first["mean"])
    assert set(answer["words"][0]) >= {"word", "known", "epsilon", "keep", "support", "likeliest"}
    assert answer["compared"] is None


def test_epsilons_that_were_asked_for_are_shown_and_nothing_is_advised(run):
    code, out, _ = run("--epsilon", 3, "--epsilon", 1.5, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["found"] is None
    assert [each["epsilon"] for each in answer["epsilons"]] == [1.5, 3.0]
    code, out, _ = run("--epsilon", 3)
    assert code == 0
    assert "Use --epsilon" not in out


def test_madlib_is_sampled_and_says_so(run):
    code, out, _ = run("--mechanism", "madlib", "--epsilon", 8, "--word", "government", "--rows", 40, "--draws", 100)
    assert code == 0
    assert "From 100 draws of each of" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_same_question_gets_the_same_answer(run):
    asked = ("--mechanism", "madlib", "--rows", 20, "--draws", 30, "--word", "government", "--json", "-q")
    once = json.loads(run(*asked, "--keep-rate", 0.5)[1])
    assert once["found"]["reached"] == pytest.approx(0.5, abs=once["found"]["error"])
    assert json.loads(run(*asked)[1]) == once  # a half is what is looked for where nothing is said


def test_quiet_says_nothing(run):
    assert run("--epsilon", 3, "--quiet") == (0, "", "")


def test_a_pure_epsilon_is_the_worst_case_that_is_promised(run):
    code, out, _ = run("--pure-epsilon", 16, "--keep-rate", 0.3)
    assert code == 0
    assert "never more than e^16." in " ".join(out.split())


def test_options_come_from_a_config_file(run, tmp_path):
    (tmp_path / "run.toml").write_text('[calibrate]\nkeep-rate = 0.3\nword = ["government"]\n')
    code, out, _ = run("--config", "run.toml", "--json", "-q")
    assert code == 0
    answer = json.loads(out)
    assert answer["found"]["wanted"] == 0.3
    assert {each["word"] for each in answer["words"]} == {"government"}


@pytest.mark.slow
def test_a_figure_is_drawn(run, tmp_path):
    pytest.importorskip("matplotlib")
    code, _, _ = run("--epsilon", 3, "--figure", "out.png", "--rows", 20, "--draws", 20, "-q")
    assert code == 0
    assert (tmp_path / "out.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--keep-rate", "0.99999"], 2, "out of reach of TEM"),
        (["--keep-rate", "1e-9"], 2, "1 in 501"),
        (["--keep-rate", "2"], 2, "keep_rate must be a number above 0 and below 1"),
        (["--support", "5000"], 2, "support must be a number from 2 to"),
        (["--support", "500", "--mechanism", "madlib"], 2, "cannot be seen in 200 draws"),
        (["--keep-rate", "0.5", "--support", "5"], 2, "give one of --epsilon, --keep-rate and --support"),
        (["--epsilon", "3", "--support", "5"], 2, "give one of --epsilon, --keep-rate and --support"),
        (["--epsilon", "0"], 2, "epsilon must be a finite number above 0"),
        (["--epsilon", "nan"], 2, "epsilon must be a finite number above 0"),
        (["--mechanism", "madlib", "--beta", "0.1"], 2, "the mechanism madlib has no --beta"),
        (["--mechanism", "madlib", "--pure-epsilon", "3"], 2, "the mechanism madlib has no --pure-epsilon"),
        (["--pure-epsilon", "1"], 2, "out of reach"),
        (["--metric", "cosine"], 2, "use 'angular'"),
        (["--figure", "x.jpg"], 2, "ends in .png"),
        (["--rows", "1", "--epsilon", "3"], 2, "rows must be an integer of at least 2"),
        (["--eta", "0", "--epsilon", "3"], 2, "eta must be a number above 0 and below 1"),
    ],
)
def test_errors_are_one_line(run, options, code, message):
    got, out, err = run(*options, "-q")
    assert (got, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
