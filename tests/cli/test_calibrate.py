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
        code = main([str(argument) for argument in ("calibrate", *arguments, "--vectors", vectors)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_it_says_what_epsilon_does_and_which_one_to_use(run):
    code, out, err = run("--keep-rate", 0.4, "--word", "government", "--word", "zebulon", "--word", "[bold]")
    assert code == 0
    assert max(map(len, (out + err).splitlines())) <= 80
    assert "Measuring TEM on small.txt (501 words)" in err
    assert re.search(r"Use --epsilon [\d.]+: on average 0\.(40|39[5-9])", out)
    assert "This is a measurement" in out
    for part in ("government", "zebulon", "(unknown)", "[bold]", "stays", "95%"):
        assert part in out


def test_json_holds_everything(run):
    code, out, err = run("--json", "--quiet", "--keep-rate", 0.3)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert set(answer) == {"vectors", "found", "epsilons", "words"}
    target = answer["found"]
    assert (target["target"], target["goal"]) == ("keep_rate", 0.3)
    assert target["reached"] == pytest.approx(0.3, abs=0.005)
    assert 0 < target["error"] < 0.01  # 400 of 501 words are measured
    assert answer["vectors"]["words"] == 501
    assert [row["epsilon"] for row in answer["epsilons"]] == sorted(row["epsilon"] for row in answer["epsilons"])
    first = answer["epsilons"][0]
    assert len(first["quantiles"]["keep"]) == len(first["shares"]) == 5
    assert {"keep", "support", "replacement_distance", "neighbourhood"} <= set(first["mean"])
    assert set(answer["words"][0]) >= {"word", "known", "epsilon", "keep", "support", "likeliest"}
