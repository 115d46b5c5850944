"""Every mechanism is offered everywhere under one name."""

import pytest

import dptext
from dptext.cli import main
from dptext.words.registry import MECHANISMS, mechanism_from_statement

OPTIONS = {"vickrey": {"t": 0.3}, "mahalanobis": {"lambda_": 0.4}, "custext": {"size": 5}, "santext+": {"p": 0.2}}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_file_goes_through_and_its_statement_leads_back(name, glove, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    vectors = dptext.load_vectors(glove, limit=120)
    dptext.save_vectors(vectors, "small.txt")
    (tmp_path / "in.txt").write_text("the man said that he was of the city in 1990\n")
    settings = [f"--set={key}={value}" for key, value in OPTIONS.get(name, {}).items()]
    command = ["privatize", "in.txt", "-o", "out.txt", "--mechanism", name, "--epsilon", "3", "--vectors", "small.txt"]
    assert main([*command, *settings]) == 0
    assert "pure      epsilon at most" in capsys.readouterr().err
    statement = dptext.PrivacyStatement.from_json((tmp_path / "out.txt.privacy.json").read_text())
    assert statement.mechanism == MECHANISMS[name].name
    repeated = mechanism_from_statement(statement)
    assert type(repeated) is MECHANISMS[name]
    assert repeated.parameters() == MECHANISMS[name](vectors, epsilon=3.0, **OPTIONS.get(name, {})).parameters() | {
        "vectors": "small.txt"
    }
    assert (tmp_path / "out.txt").read_text().endswith("<number>\n")
    assert statement.explain()
