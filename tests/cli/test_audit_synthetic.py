"""``dptext audit`` and ``dptext explain`` of a synthetic corpus and of the description behind it."""

import json
import shutil

import pytest

import dptext
from dptext.io.documents import DocumentWriter
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import release_statement
from dptext.release.release import statement_path
from dptext.synthesis.release import write_corpus
from dptext.users.private_vocabulary import PrivateLabels
from reports.corpora import ENCODER, SECRET, edit, make


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    make(folder)
    return folder


@pytest.fixture
def copy(made, tmp_path, monkeypatch):
    """A copy that may be changed, and the place where commands run."""
    shutil.copytree(made, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def checks_of(text):
    return {each["name"]: each["held"] for each in json.loads(text)["checks"]}


def test_a_corpus_is_kept_by_exact_computation(copy, run):
    code, out, err = run("audit", "made.jsonl", "--public", "pool.txt")
    assert code == 0, err
    assert "THE GUARANTEE FOR A USER" in out
    assert "exact trade-off of Gaussian noise" in out
    assert "NO " not in out
    assert SECRET not in out + err
    assert max(map(len, out.splitlines())) <= 100
    code, out, _ = run("audit", "made.jsonl", "--public", "pool.txt", "--json", "-q")
    found = json.loads(out)
    assert code == 0
    assert (found["refuted"], found["verdict"]["outcome"]) == (False, "exact")
    assert found["verdict"]["loss"] <= found["verdict"]["allowed"] == 4.0
    assert set(checks_of(out).values()) == {True}
    assert len(checks_of(out)) == 8


def test_what_is_not_at_hand_is_not_checked_and_said_so(copy, run):
    (copy / "made.jsonl.distribution").rename("elsewhere")
    found = checks_of(run("audit", "made.jsonl", "--json", "-q")[1])
    assert found["every text is one of the public pool"] is None
    assert found["every label is one of the public set"] is None
    assert checks_of(run("audit", "made.jsonl", "--distribution", "elsewhere", "--json", "-q")[1])[
        "every label is one of the public set"
    ]


def test_a_description_is_audited_and_explained(copy, run):
    for named in ("made.jsonl.distribution", "made.jsonl.distribution/privacy.json"):
        code, out, err = run("audit", named)
        assert code == 0, err
        assert "all files are those that config.json announces" in out
        assert "THE GUARANTEE FOR A USER" in out
        code, out, _ = run("explain", named)
        assert code == 0
        assert "made.jsonl.distribution: verified, all files of the folder match its config.json" in " ".join(
            out.split()
        )
    code, out, _ = run("explain", "made.jsonl")
    assert code == 0
    assert "verified, its SHA-256" in out


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({"sigma": 0.9}, True),
        ({"epsilon": 2.0}, True),
        ({"sensitivity": 0.5}, True),
        ({"epsilon_under_substitution": 4.0}, True),
        ({"most_documents": 7}, False),
    ],
)
def test_a_statement_that_promises_more_than_its_noise_keeps_is_refuted(copy, run, changes, refuted):
    beside = statement_path(copy / "made.jsonl")
    edit(beside, **changes)
    code, out, err = run("audit", "made.jsonl", "--distribution", "made.jsonl.distribution")
    assert code == 3, err
    assert "refuted: the guarantee of made.jsonl.privacy.json does not hold" in err
    assert ("the promise follows from the parameters" in out) and ("NO  the promise" in out) == refuted
    assert "NO  the description is the one" in out  # which has another statement


def test_noise_that_is_too_little_is_refuted_by_the_trade_off_too(copy, run):
    edit(statement_path(copy / "made.jsonl"), sigma=0.9)
    found = json.loads(run("audit", "made.jsonl", "--json", "-q")[1])["verdict"]
    assert found["outcome"] == "refuted"
    assert found["loss"] > 1.2 * found["allowed"]


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda rows: [{**rows[0], "text": "of nobody's pool"}, *rows[1:]], "every text is one of the public pool"),
        (lambda rows: [{**rows[0], "topic": "weather"}, *rows[1:]], "every label is one of the public set"),
        (lambda rows: [{"text": row["text"]} for row in rows], "every label is one of the public set"),
        (lambda rows: rows[1:], "there are as many texts as the statement says"),
        (lambda rows: [rows[1], *rows[1:]], "no text stands there twice"),
    ],
)
def test_a_changed_corpus_is_refuted(copy, run, change, check):
    rows = change([json.loads(line) for line in (copy / "made.jsonl").read_text().splitlines()])
    with open("made.jsonl", "w") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    code, out, _ = run("audit", "made.jsonl", "--public", "pool.txt", "--json", "-q")
    assert code == 3
    assert checks_of(out)[check] is False
    assert checks_of(out)["the data is the data of the statement"] is False


def test_a_changed_description_is_no_description(copy, run):
    edit(copy / "made.jsonl.distribution" / "privacy.json", sigma=0.9)
    for command in ("audit", "explain"):
        code, _, err = run(command, "made.jsonl.distribution")
        assert code == 1
        assert "privacy.json is not the file that config.json announces" in err


def test_labels_that_were_learned_are_summed(tmp_path, run, monkeypatch):
    """What was promised before is part of the promise; a statement that leaves it out is refuted."""
    learned = release_statement(
        guarantee=ApproxDP(0.5, 1e-7), unit=Unit.USER, relation=Relation.ADD_REMOVE, trust=Trust.CENTRAL,
        mechanism="private labels", parameters={}, assumptions=(),
    )  # fmt: skip
    make(tmp_path)
    synthesizer = dptext.Synthesizer(
        epsilon=2.0, labels=PrivateLabels("topic", ("drinks", "rules"), learned), cache=False,
        features=ENCODER,
    )  # fmt: skip
    documents = dptext.read_documents(tmp_path / "in.jsonl", user="who", keep=("topic",))
    synthesizer.fit(documents, public=[tmp_path / "pool.txt"]).save(tmp_path / "shared")
    code, out, err = run("audit", tmp_path / "shared", "--json")
    assert code == 0, err
    assert json.loads(out)["verdict"]["allowed"] == 2.0
    assert json.loads(out)["verdict"]["claim"]["epsilon"] == 2.5


class Parrot:
    """A source that writes the same sentences again and again."""

    name = "a parrot"

    def propose(self, request):
        return [f"{word} and cup" for word in ("tea", "tax", "milk")] * request.count

    def vary(self, texts, request):
        return [f"{text} or law" for text in texts]

    def parameters(self):
        return {"generator": self.name}

    def assumptions(self):
        return ("a parrot reads nothing",)

    def exposed(self):
        return ()


def test_a_corpus_that_was_written_has_no_pool(tmp_path, run):
    make(tmp_path)
    described = dptext.TextDistribution.load(tmp_path / "made.jsonl.distribution")
    writer = DocumentWriter(tmp_path / "written.jsonl", text="text", keep=("topic",))
    write_corpus(described.generate(Parrot(), 4, rounds=2), tmp_path / "written.jsonl", writer)
    named = ("--distribution", tmp_path / "made.jsonl.distribution")
    code, out, err = run("audit", tmp_path / "written.jsonl", *named, "--json", "-q")
    assert code == 0, err
    assert checks_of(out)["every text is one of the public pool"] is None
    found = dptext.report(tmp_path / "written.jsonl", distribution=named[1], seed=1, folds=2)
    assert "a language model wrote 4 texts" in " ".join(found.html().split())
