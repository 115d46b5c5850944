"""``dptext audit``, ``dptext explain`` and ``dptext report``: honest, changed and forged files, folders and corpora."""

import html
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import dptext
from cli.conftest import SECRET, change_statement, command, plain, read_rows, statement_of, write_rows
from dptext.io.artifacts import file_digest, folder_digest
from dptext.io.documents import Document
from dptext.release.release import statement_path
from dptext.vectors.formats import write_folder
from reports.corpora import edit, make
from sentences.banks import bank, documents

# -- words ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def release(run, work, vectors):
    """A private file of word replacement, with its statement and the vectors that it was made with."""
    shutil.copy(vectors, "small.txt")
    texts = ["the 3 doctors lied to Zebulon", "don't mail me@x.org, ever", "", "...", "a.b"]
    Path("in.jsonl").write_text("".join(json.dumps({"text": f"{text} {SECRET}"}) + "\n" for text in texts))

    def call(*options):
        usual = ("-o", "out.jsonl", "--vectors", "small.txt", "--epsilon", "5", "-q", "--force")
        assert run("privatize", "in.jsonl", *usual, *options)[0] == 0

    call()
    return call


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--set", "document_epsilon=30", "--set", "max_words=3"]])
def test_an_honest_release_is_not_refuted(release, run, options):
    release(*options)
    code, text, err = run("audit", "out.jsonl")
    assert (code, "KEPT: the guarantee holds" in text, "NO " in text) == (0, True, False), err
    assert max(map(len, text.splitlines())) <= 100
    assert json.loads(run("audit", "out.jsonl", "--json", "-q")[1])["refuted"] is False


def test_false_statements_and_changed_texts_are_refuted(release, run):
    def audited(message, *options):
        code, text, err = run("audit", "out.jsonl", *options)
        assert (code, message in plain(text), "KEPT" in text, "Zebulon" in text + err) == (3, True, False, False), text
        assert "refuted" in err and err.count("\n") == 2  # progress and the error
        release()

    change_statement("out.jsonl", guarantee=dptext.PureDP(1.0))
    audited("NO the guarantee follows from the parameters")
    for fields in (
        {"assumptions": ()},
        {"exposed": ("the number of documents",)},
        {"condition": "any two documents"},
        {"trust": "central"},
    ):
        change_statement("out.jsonl", **fields)
        audited(f"{next(iter(fields))} differ", "--word", "the", "--word", "of")
    with open("out.jsonl", "a") as stream:
        stream.write('{"text": "of the"}\n')
    audited("its SHA-256 DIFFERS")
    Path("out.jsonl").write_text('{"text": "the of Zebulon 7"}\n')
    change_statement("out.jsonl", data_sha256=file_digest("out.jsonl"))
    audited("2 words that the mechanism cannot have written")


def test_other_vectors_are_refused_and_moved_ones_are_named(release, run):
    lines = Path("small.txt").read_text().splitlines()
    changed = [*lines[:-1], " ".join([lines[-1].split()[0], *lines[-2].split()[1:]])]
    Path("small.txt").write_text("\n".join(changed) + "\n")
    code, _, err = run("audit", "out.jsonl")
    assert (code, "another fingerprint" in err) == (1, True)
    Path("small.txt").unlink()
    assert run("audit", "out.jsonl")[0] == 4
    Path("moved.txt").write_text("\n".join(lines) + "\n")
    assert run("audit", "out.jsonl", "--vectors", "moved.txt")[0] == 0


def test_explain_verifies_the_data(release, run):
    for name in ("out.jsonl", "out.jsonl.privacy.json"):
        code, out, err = run("explain", name)
        assert (code, err, "NOT PROTECTED" in out, "out.jsonl: verified" in out) == (0, "", True, True)
        assert max(map(len, out.splitlines())) <= 100
    with open("out.jsonl", "a") as stream:
        stream.write("{}\n")
    code, out, err = run("explain", "out.jsonl")
    assert (code, "NOT the data of this statement" in out, "the SHA-256 digest differs" in err) == (1, True, True)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="named pipes of POSIX")
@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("pipe", ["small.txt", "out.jsonl", "out.jsonl.privacy.json", "other.json"])
def test_a_pipe_without_a_writer_is_refused_at_once(pipe):
    if pipe == "small.txt":
        change_statement("out.jsonl", parameters={"vectors": "small.txt"})
    Path(pipe).unlink(missing_ok=True)
    os.mkfifo(pipe)
    audit = command("audit", pipe if pipe == "other.json" else "out.jsonl")
    done = subprocess.run(audit, capture_output=True, text=True, timeout=300)
    assert (done.returncode in (1, 4), "a pipe or a device" in done.stderr) == (True, True)


# -- sentences -----------------------------------------------------------------------------------------------------

OPTIONS = {
    "sentences.jsonl": {},
    "some.jsonl": {"max_sentences": 2},
    "whole.jsonl": {"unit": "document"},
    "three.jsonl": {"unit": "document", "max_sentences": 3},
}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """The folder of a bank and of releases with it."""
    folder = tmp_path_factory.mktemp("bank")
    bank().save(folder / "bank")
    rows = [json.dumps({"text": text}) for text in [*documents(30)[0], ""]]
    (folder / "in.jsonl").write_text("\n".join([*rows, '{"text": null}']) + "\n")
    for name, options in OPTIONS.items():
        dptext.privatize_file(folder / "in.jsonl", folder / name, dptext.BankRewriter(bank(), epsilon=6.0, **options))
    return folder


@pytest.fixture
def audit_of_copy(sentences, work, run):
    """Audit a copy of a release, which may be changed first."""

    def call(name, *options, forge=lambda: None):
        for file in (name, f"{name}.privacy.json"):
            shutil.copy(sentences / file, file)
        forge()
        return run("audit", name, "--bank", sentences / "bank", "--samples", "1000", *options)

    return call


@pytest.mark.parametrize("name", OPTIONS)
def test_an_honest_release_of_sentences_is_not_refuted(audit_of_copy, name):
    code, text, err = audit_of_copy(name)
    assert (code, "KEPT: the guarantee holds" in text, "NO " in text) == (0, True, False), err
    assert "every text is made of texts of the bank (32 texts, 0 of them are not)" in text
    assert f"THE GUARANTEE FOR A {'DOCUMENT' if name == 'whole.jsonl' else 'SENTENCE'}" in text
    assert not any(sentence in text for sentence in bank().texts)
    assert json.loads(audit_of_copy(name, "--json", "-q")[1])["refuted"] is False


def test_forged_statements_of_sentences_are_refuted(audit_of_copy):
    for name, fields, message in (
        ("three.jsonl", {"guarantee": dptext.PureDP(1.0)}, "guarantee differ"),
        ("three.jsonl", {"parameters": {"epsilon": 1.0}}, "guarantee, pure_epsilon_of_a_sentence"),
        ("three.jsonl", {"parameters": {"size": 7}}, "chance_of_the_set, relinking_among_300 differ"),
        ("three.jsonl", {"parameters": {"bank_texts": 9}}, "bank_texts differ"),
        ("three.jsonl", {"parameters": {"relinking_among_300": 0.01}}, "relinking_among_300 differ"),
        ("three.jsonl", {"parameters": {"max_sentences": 2}}, "with another number, the first in row"),
        ("sentences.jsonl", {"parameters": {"sentences_counted": 1}}, "with another number, the first in row"),
        ("sentences.jsonl", {"condition": "any two documents"}, "condition differ"),
        ("sentences.jsonl", {"exposed": ()}, "exposed differ"),
        ("whole.jsonl", {"assumptions": ()}, "assumptions differ"),
        ("whole.jsonl", {"data_sha256": "0" * 64}, "its SHA-256 DIFFERS"),
    ):
        code, text, err = audit_of_copy(name, forge=lambda: change_statement(name, **dict(fields)))  # noqa: B023
        assert (code, message in plain(text), "refuted" in err) == (3, True, True), (name, message)


@pytest.mark.parametrize(
    "change", [lambda text: text + " ", lambda _: "A sentence of its own.", lambda text: text.replace(" ", "  ", 1)]
)
def test_a_text_that_is_not_of_the_bank_is_refuted_by_its_row_alone(audit_of_copy, change):
    def forge():
        texts = [row["text"] for row in read_rows("sentences.jsonl")]
        texts[place] = change(texts[place])
        Path("sentences.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        change_statement("sentences.jsonl", data_sha256=file_digest("sentences.jsonl"))

    audit_of_copy("sentences.jsonl")
    place = next(n for n, row in enumerate(read_rows("sentences.jsonl")) if row["text"] and n > 3)
    code, text, err = audit_of_copy("sentences.jsonl", forge=forge)
    assert (code, "sentence of its own" in text + err) == (3, False)
    assert f"1 of them are not, the first in row {place + 1}" in plain(text)


# -- synthetic corpora ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    make(folder)
    return folder


@pytest.fixture
def corpus(corpus_folder, work):
    shutil.copytree(corpus_folder, work, dirs_exist_ok=True)


def checks_of(text):
    return {check["name"]: check["passed"] for check in json.loads(text)["checks"]}


@pytest.mark.usefixtures("corpus")
def test_a_corpus_and_its_distribution_are_audited_by_exact_computation(run):
    for name, option in (("made.jsonl", ["--public", "pool.txt"]), ("made.jsonl.distribution", [])):
        code, out, err = run("audit", name, *option)
        assert (code, "THE GUARANTEE FOR A USER" in out, "NO " in out, "zebulon" in out + err) == (
            0,
            True,
            False,
            False,
        )
        assert "exact trade-off of the stated Gaussian noise" in out and max(map(len, out.splitlines())) <= 100
        code, out, _ = run("explain", name)
        assert (code, "verified, " in out) == (0, True)
    result = json.loads(run("audit", "made.jsonl", "--public", "pool.txt", "--json", "-q")[1])
    assert (result["refuted"], result["verdict"]["outcome"]) == (False, "exact")
    assert result["verdict"]["loss"] <= result["verdict"]["allowed"] == 4.0
    assert [check["passed"] for check in result["checks"]] == [True] * 8
    Path("made.jsonl.distribution").rename("elsewhere")
    passed = checks_of(run("audit", "made.jsonl", "--json", "-q")[1])
    assert passed["every text is one of the public pool"] is None
    assert passed["every label is one of the public set"] is None
    passed = checks_of(run("audit", "made.jsonl", "--distribution", "elsewhere", "--json", "-q")[1])
    assert passed["every label is one of the public set"]


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize(
    ("changes", "is_about_guarantee"),
    [
        ({"sigma": 0.9}, True),
        ({"epsilon": 2.0}, True),
        ({"sensitivity": 0.5}, True),
        ({"epsilon_under_substitution": 4.0}, True),
        ({"most_documents": 7}, False),
    ],
)
def test_a_corpus_with_less_noise_than_stated_is_refuted(run, changes, is_about_guarantee):
    edit(statement_path(Path("made.jsonl")), **changes)
    code, out, err = run("audit", "made.jsonl", "--distribution", "made.jsonl.distribution")
    assert (code, "refuted: the guarantee of made.jsonl.privacy.json does not hold" in err) == (3, True)
    assert ("NO  the guarantee follows from the parameters" in out) == is_about_guarantee
    assert "NO  the corpus was made from this" in out  # which has another statement


@pytest.mark.usefixtures("corpus")
def test_a_changed_corpus_is_refuted(run):
    original = read_rows("made.jsonl")
    for rows, check in (
        ([{**original[0], "text": "of nobody's pool"}, *original[1:]], "every text is one of the public pool"),
        ([{**original[0], "topic": "weather"}, *original[1:]], "every label is one of the public set"),
        ([{"text": row["text"]} for row in original], "every label is one of the public set"),
        (original[1:], "there are as many texts as the statement says"),
        ([original[1], *original[1:]], "no text occurs twice"),
    ):
        Path("made.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        code, out, _ = run("audit", "made.jsonl", "--public", "pool.txt", "--json", "-q")
        assert (code, checks_of(out)[check]) == (3, False)
        assert checks_of(out)["the data is the data of the statement"] is False


# -- partial files ---------------------------------------------------------------------------------------------------

DATA, STATEMENT, FOLDER, CARD = "made.jsonl", "made.jsonl.privacy.json", "made.jsonl.distribution", "CARD.md"
VERIFIED, UNKNOWN = "verified, its SHA-256 digest is in the statement", "has no privacy statement"
NO_CARD, NO_FILE = "is not the card of a privacy statement next to it", "there is no such file or folder"
NO_NOTE, NO_DATA, NO_FOLDER = "", "only its statement was examined", "(OUT.distribution) was not named"


@pytest.fixture(scope="module")
def card_folder(corpus_folder):
    (corpus_folder / CARD).write_text(dptext.report(corpus_folder / DATA).card())
    return corpus_folder


@pytest.mark.parametrize(
    ("files", "argument", "explained", "audited", "note"),
    [
        ([DATA, STATEMENT, FOLDER], DATA, VERIFIED, 0, NO_NOTE),
        ([DATA, STATEMENT], DATA, VERIFIED, 0, NO_FOLDER),
        ([STATEMENT], STATEMENT, "made.jsonl is missing", 0, NO_DATA),
        ([STATEMENT], DATA, "made.jsonl is missing", 0, NO_DATA),
        ([STATEMENT, FOLDER], DATA, "made.jsonl is missing", 0, NO_DATA),
        ([DATA], DATA, UNKNOWN, 4, None),
        ([DATA, FOLDER], DATA, UNKNOWN, 4, None),
        ([CARD], CARD, NO_CARD, 4, None),
        ([CARD, DATA], CARD, NO_CARD, 4, None),
        ([CARD, STATEMENT], CARD, "made.jsonl is missing", 0, NO_DATA),
        ([CARD, STATEMENT, DATA, FOLDER], CARD, VERIFIED, 0, NO_NOTE),
        ([(CARD, "my.md"), (DATA, "my.jsonl"), (STATEMENT, "my.json")], "my.md", "the data is not known", 0, NO_DATA),
        ([(DATA, "my.jsonl"), STATEMENT], "my.jsonl", VERIFIED, 0, NO_FOLDER),
        ([DATA, (STATEMENT, "my.json"), FOLDER], DATA, VERIFIED, 0, NO_NOTE),
        ([(STATEMENT, "my.json")], "my.json", "the data is not known", 0, NO_DATA),
        ([("held.jsonl", DATA), STATEMENT], DATA, "NOT the data of this statement", 3, NO_FOLDER),
        ([("held.jsonl", "my.jsonl"), STATEMENT], "my.jsonl", UNKNOWN, 4, None),
        ([DATA, STATEMENT, (DATA, "b.jsonl"), (STATEMENT, "b.json")], "b.jsonl", "name one of them", 1, None),
        ([FOLDER], FOLDER, "all files of the folder match", 0, None),
        ([FOLDER], f"{FOLDER}/README.md", "all files of the folder match", 0, None),
        ([DATA, STATEMENT, FOLDER], ".", "is a folder: name a release in it, such as made.jsonl", 1, None),
        ([], ".", UNKNOWN, 4, None),
        ([], DATA, NO_FILE, 4, None),
        ([], "other.json", NO_FILE, 4, None),
        ([("in.jsonl", "other.json")], "other.json", "must be JSON", 1, None),
        ([DATA, ("in.jsonl", STATEMENT)], DATA, "must be JSON", 1, None),
        ([(f"{FOLDER}/config.json", "other.json")], "other.json", "this JSON is not a privacy statement", 1, None),
    ],
)
def test_an_officer_with_some_of_the_files(run, work, card_folder, files, argument, explained, audited, note):
    for file in files:
        source, target = (file, file) if isinstance(file, str) else file
        (shutil.copytree if (card_folder / source).is_dir() else shutil.copy)(card_folder / source, work / target)
    code, out, err = run("explain", argument)
    assert explained in plain(out + err) and (code == 0) == ("THE DATA" in out and audited == 0)
    code, _, errors = run("audit", argument, "-q")
    assert code == audited and (audited in (0, 3) or errors == err)
    code, out, errors = run("report", argument, "-o", "page.html", "-q")
    if note is None:
        assert ((code, audited) == (2, 0) and "is a folder of dptext" in errors) or (code, errors) == (audited, err)
    else:
        page = plain(html.unescape(Path("page.html").read_text()))
        assert code == audited and note in page
        assert note == NO_DATA or (NO_DATA not in page and (NO_FOLDER in page) == (note == NO_FOLDER))


def test_a_statement_of_another_version_says_so(run, work, card_folder):
    shutil.copy(card_folder / DATA, work)
    text = (card_folder / STATEMENT).read_text()
    for change, explained, message in (
        (('"schema": 2', '"schema": 1'), 1, "expected a privacy statement of schema version 2"),
        (('"mechanism": "', '"mechanism": "new '), 0, "use the version of dptext that the statement names"),
    ):
        assert change[0] in text
        Path(STATEMENT).write_text(text.replace(*change))
        assert run("explain", DATA)[0] == explained
        for options in (("audit", DATA), ("report", DATA, "-o", "page.html")):
            code, _, err = run(*options, "-q")
            assert (code, message in err) == (1, True)


# -- folders -------------------------------------------------------------------------------------------------------

WORDS = ["tea", "cup", "cake", "tax", "law", "judge", "rain", "sun"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Released vectors with two levels, a device encoder, and a folder of private files."""
    folder = tmp_path_factory.mktemp("folders")
    points = [[float(n % 3), float(n % 5), float(n == 2), 1.0] for n in range(9)]
    words = dptext.WordVectors([*WORDS, "<unk>"], points)
    texts = [f"{WORDS[n % 8]} {WORDS[n % 7]} {SECRET}" for n in range(40)]
    rows = [Document(t, user=f"u{n}", attributes={"wish": ("open", "strict")[n % 2]}) for n, t in enumerate(texts)]
    model = dptext.Cooccurrence(words, epsilon={"strict": 1.0, "open": 8.0}, delta=1e-6, level="wish", window=2)
    model.fit(rows).save(folder / "learned")
    dptext.save_vectors(words, folder / "public")
    encoder = dptext.PrivateEncoder(words, dptext.PrivUnit(epsilon=4.0), dimension=3)
    encoder.fit([" ".join(WORDS), "tea cup", "tax", "sun"]).save(folder / "device")
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    mechanism = dptext.TEM(dptext.load_vectors(str(folder / "public")), epsilon=3.0)
    (folder / "outs").mkdir()
    for name in ("a", "b"):
        dptext.privatize_file(folder / "in.jsonl", folder / "outs" / f"{name}.jsonl", mechanism)
    (folder / "outs" / "notes.md").write_text("no release\n")
    return folder


@pytest.fixture
def copies(folders, work):
    shutil.copytree(folders, work, dirs_exist_ok=True)


@pytest.mark.usefixtures("copies")
def test_released_vectors_are_checked_level_by_level(run):
    result = json.loads(run("audit", "learned", "--json")[1])
    assert {check["passed"] for check in result["checks"]} == {True}
    assert {
        "vectors.bin is a copy of these vectors",
        "the guarantee for users of the level 'strict' follows from the parameters",
        "the guarantee for everybody follows from the parameters",
    } <= {check["name"] for check in result["checks"]}
    assert (result["refuted"], result["verdict"]["outcome"], result["verdict"]["allowed"]) == (False, "exact", 8.0)
    assert "cannot show that this noise was really drawn" in plain(run("audit", "learned/privacy.json")[1])
    words = dptext.load_vectors("learned")
    bare = dptext.WordVectors(list(words.words), words.matrix, source=words.source)
    for number, (fields, parameters, message) in enumerate((
        ({"guarantee": dptext.ApproxDP(4.0, 1e-6)}, {}, "NO  the guarantee covers this release"),
        ({"guarantee": dptext.ApproxDP(4.0, 1e-6)}, {"epsilon": 4.0}, "NO  the guarantee for everybody"),
        ({}, {"sigma": 0.4}, "NO  the guarantee for everybody"),
        ({}, {"words": 8}, "NO  there are as many words"),
    )):  # fmt: skip
        statement = words.statement.replace(parameters=dict(words.statement.parameters) | parameters, **fields)
        write_folder(bare.attach_statement(statement), Path(f"forged{number}"))  # announced as if written like this
        code, out, err = run("audit", f"forged{number}")
        assert (code, message in out, "refuted: the guarantee of privacy.json" in err) == (3, True, True), out
    copy = Path("learned/vectors.bin")
    copy.write_bytes(copy.read_bytes()[:-1] + b"x")
    code, out, _ = run("audit", "learned")
    assert (code, "NO  vectors.bin is a copy of these vectors (it contains other vectors)" in out) == (3, True)
    Path("learned/words.txt").write_text(Path("learned/words.txt").read_text().replace("tea", "tee"))
    code, _, err = run("audit", "learned")
    assert (code, "words.txt does not match its digest" in err) == (1, True)


@pytest.mark.usefixtures("copies")
def test_an_encoder_for_devices_and_a_folder_of_parts_are_verified(run):
    code, out, err = run("audit", "device", "--samples", 4000)
    assert (code, "yes all files are those that config.json announces" in out) == (0, True), err
    assert "device: verified, all files of the folder match its config.json" in plain(run("explain", "device")[1])
    Path("device/privacy.json").write_text("{}")
    assert [run(name, "device")[0] for name in ("audit", "explain")] == [1, 1]
    Path("parts.parquet").mkdir()  # as Spark writes one
    shutil.copy("outs/a.jsonl", "parts.parquet/part-0.jsonl")
    statement = statement_of("outs/a.jsonl").replace(data_sha256=folder_digest(Path("parts.parquet")))
    Path("parts.parquet.privacy.json").write_text(statement.to_json())
    assert "verified, its SHA-256 digest is in the statement" in plain(run("explain", "parts.parquet")[1])


# -- report --------------------------------------------------------------------------------------------------------


@pytest.fixture
def private(run, work, vectors):
    write_rows("in.jsonl", 60)
    shutil.copy(vectors, "small.txt")
    usual = ("--vectors", "small.txt", "--epsilon", 4, "--keep", "label", "-q")
    assert run("privatize", "in.jsonl", "-o", "out.jsonl", *usual)[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("private", "same_draws")  # letters can stand by chance in the code of a picture
def test_a_page_is_for_the_owner_and_a_card_for_everybody(run, work):
    name = "out.jsonl" if os.name == "nt" else "<b>ours.jsonl"
    for ending in ("", ".privacy.json"):
        Path(f"out.jsonl{ending}").rename(f"{name}{ending}")
    options = ("--original", "in.jsonl", "--label", "label", "--attribute", "label", "--card", "README.md", "--json")
    code, out, err = run("report", name, "-o", "page.html", *options)
    assert (code, "for the owner of the data" in err) == (0, True), err
    result = json.loads(out)
    assert (result["out"], result["card"], result["refuted"]) == ("page.html", "README.md", False)
    assert result["attacks"] and result["owner_attacks"]
    page, card = Path("page.html").read_text(), Path("README.md").read_text()
    assert ("<script" in page, "<b>ours" in page) == (False, False)
    assert f"{html.escape(name)}</title>" in page and SECRET not in (page + card).lower()
    Path("usual").touch()
    assert os.name == "nt" or Path("page.html").stat().st_mode & 0o777 == 0o600
    assert Path("README.md").stat().st_mode == Path("usual").stat().st_mode
    assert not list(work.glob(".*part*"))


@pytest.mark.usefixtures("private")
def test_a_page_names_no_folder_replaces_no_file_and_shows_a_refutation(run, work, monkeypatch):
    Path("of-somebody").mkdir()
    options = ("-o", "of-somebody/page.html", "--card", "of-somebody/CARD.md", "--label", "label", "--rows", 50, "-q")
    assert run("report", work / "out.jsonl", *options) == (0, "", "")
    for path in Path("of-somebody").iterdir():
        text = path.read_text()
        assert "of-somebody" not in text and str(work) not in text
    Path("page.html").write_text("mine")
    code, _, err = run("report", "out.jsonl", "-o", "page.html")
    assert (code, "--force" in err) == (2, True)
    with monkeypatch.context() as patch:
        patch.setattr("dptext.methods.words.deniability", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run("report", "out.jsonl", "-o", "page.html", "--force", "-q")[0] == 130
    assert (Path("page.html").read_text(), list(work.glob(".*part*"))) == ("mine", [])
    change_statement("out.jsonl", guarantee=dptext.PureDP(1.0))
    code, out, err = run("report", "out.jsonl", "-o", "other.html", "-q")
    assert (code, out, "refuted: the guarantee of out.jsonl" in err) == (3, "", True)
    assert "was refuted" in Path("other.html").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("corpus", "same_draws")
def test_a_page_and_a_card_of_a_corpus(run):
    usual = ("report", "made.jsonl", "-o", "page.html", "--public", "pool.txt", "--original", "in.jsonl")
    code, out, err = run(*usual, "--held-out", "held.jsonl", "--user", "who", "--card", "card.md", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["corpus"]["texts"] == 60
    assert {measurement["is_rival"] for measurement in result["utility"]} == {True, False}
    page = Path("page.html").read_text()
    assert "<script" not in page
    assert "zebulon" not in (out + err + page).lower() and "held" not in Path("card.md").read_text()
    code, _, err = run("report", "made.jsonl", "-o", "pool.html", "--public", "pool.html")
    assert (code, "an input" in err) == (2, True)
    edit(statement_path(Path("made.jsonl")), sigma=0.9)
    assert (run("report", "made.jsonl", "-o", "other.html")[0], Path("other.html").exists()) == (3, True)
