"""Every broken mechanism is refuted and no sound mechanism is, at a family-wise error of 1e-6."""

import pytest

from known_broken.__main__ import CASES, FAMILY_ERROR, main


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_the_known_one(case):
    verdict = case.run(1, FAMILY_ERROR / len(CASES))
    assert verdict.refuted == case.broken, verdict.explain()
    assert verdict.refutable


def test_published_mistakes_are_among_the_cases():
    names = " / ".join(case.name for case in CASES if case.broken)
    for known in (
        "naive float64",
        "wrong bottom",
        "float32 sums",
        "approximate search",
        "cosine distance",
        "unknown words",
        "guarantee of SanText",
        "SanText+ as printed",
        "CusText as published",
        "truncated Gumbel as published",
        "subset selection, k by the input",
        "subset selection, ties included",
        "subset selection, weights rounded up",
        "subset selection, weights by similarity",
        "OME",
        "DPNR",
        "one scalar",
        "DPText",
        "bound between the original texts",
        "looks at other rows",
        "reused counter",
        "per-batch clipping",
        "no noise",
        "1.5 times too little",
        "the cap's mass forgotten",
        "radius for diameter",
        "L2 diameter in place of L1",
        "classical formula",
        "noise rounded alone",
        "chances of 24 bits",
        "OUE, any code, as claimed",
        "SUE, any code, as claimed",
        "one cell too probable",
        "noise on used words only",
        "SkipGram, reused counter",
        "SkipGram, pairs bounded one by one",
        "bounded label by label",
        "bounded document by document",
        "divided by the number of documents",
        "labels read from the file",
        "without what stands in the private file",
        "k chosen by the input",
        "ties included",
        "bank, without what stands in the private file",
        "bank chosen by the input",
        "a marker for missing sentences",
        "budget by the sentences that are there",
        "sets that know of the batch",
        "a level and its release, not counted",
        "its input returned, behind the right distribution",
        "equal calls alike, behind the right distribution",
        "L2-Laplace, d=64, no noise",
        "L2-Laplace, d=64, half of the noise",
        "neighbouring rows correlated",
        "no noise at the rim",
        "bank, one coin for a document",
        "votes of a client, normalised label by label",
        "text distribution, no noise",
    ):
        assert known in names


def test_a_verdict_that_is_not_the_known_one_fails_the_run(monkeypatch, capsys):
    from dataclasses import replace

    monkeypatch.setattr("sys.argv", ["known_broken"])
    sound = next(case for case in CASES if case.name == "DP-SGD")
    monkeypatch.setattr("known_broken.__main__.CASES", [replace(sound, broken=True)])
    assert main() == 1
    assert "NOT the known answer" in capsys.readouterr().out
    monkeypatch.setattr("known_broken.__main__.CASES", [sound])
    assert main() == 0
