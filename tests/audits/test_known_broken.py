"""Every broken mechanism is refuted and no sound mechanism is, at a family-wise error of 1e-6."""

import pytest

from known_broken.__main__ import CASES, FAMILY_ERROR, main

BROKEN = 118


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_the_known_one(case):
    verdict = case.run(1, FAMILY_ERROR / len(CASES))
    assert verdict.refuted == case.broken, verdict.explain()
    assert verdict.refutable


def test_no_known_broken_mechanism_was_lost():
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.broken for case in CASES) >= BROKEN


def test_a_verdict_that_is_not_the_known_one_fails_the_run(monkeypatch, capsys):
    from dataclasses import replace

    monkeypatch.setattr("sys.argv", ["known_broken"])
    sound = next(case for case in CASES if case.name == "DP-SGD")
    monkeypatch.setattr("known_broken.__main__.CASES", [replace(sound, broken=True)])
    assert main() == 1
    assert "NOT the known answer" in capsys.readouterr().out
    monkeypatch.setattr("known_broken.__main__.CASES", [sound])
    assert main() == 0
