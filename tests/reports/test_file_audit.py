"""The audit of files of vectors that a published protocol made."""

import json

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.methods.files import ReleaseFiles
from dptext.methods.vectors import Vectors
from dptext.privacy.guarantee import PureDP
from dptext.representations.bounds import Bound
from dptext.representations.device import DeviceEncoder, encode_file
from dptext.representations.encoders import MeanOfWords
from dptext.representations.published import DPNR


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("published")
    rows = [json.dumps({"text": f"worda{n}x"}) for n in range(10)]
    (path / "in.jsonl").write_text("\n".join(rows) + "\n")
    return path


def released(folder, **options):
    words = dptext.load_vectors(([f"worda{n}x" for n in range(10)], np.random.default_rng(1).normal(size=(10, 16))))
    values = DPNR(epsilon=0.25, unsafe_as_published=True, **options)
    device = DeviceEncoder(MeanOfWords(words), Bound(mean=np.zeros(16)), values)
    out = folder / f"{values.noise[:3]}.parquet"
    return out, encode_file(folder / "in.jsonl", out, device).statement


def test_a_published_protocol_stands_at_its_true_epsilon_and_falls_at_the_printed_one(folder):
    out, statement = released(folder)
    assert Vectors().recognizes(statement)
    assert (statement.epsilon, statement.claimed_epsilon) == (4.0, 0.25)
    audit = Vectors().check(ReleaseFiles(data=out, statement_or_none=statement, samples=20_000, seed=1))
    checks, verdict = audit.checks, audit.verdict
    assert all(check.passed for check in checks)
    assert not verdict.refuted
    printed = statement.replace(guarantee=PureDP(0.25))
    audit = Vectors().check(ReleaseFiles(data=out, statement_or_none=printed, samples=20_000, seed=1))
    checks, verdict = audit.checks, audit.verdict
    assert verdict.refuted
    assert "guarantee differ" in checks[-1].detail


def test_where_nothing_is_promised_there_is_nothing_to_refute(folder):
    out, statement = released(folder, noise="one scalar")
    with pytest.raises(ParameterError, match="has no guarantee"):
        Vectors().check(ReleaseFiles(data=out, statement_or_none=statement, samples=1000, seed=1))
