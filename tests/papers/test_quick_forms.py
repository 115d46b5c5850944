"""`make papers` runs the quick form of every experiment that has one."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = {
    "tem.pure": "it needs MiniLM, which the environment of make papers does not have",
    "synthesis.baselines": "it needs MiniLM",
    "synthesis.generated": "it needs MiniLM and the weights of a language model",
    "synthesis.peers": "it needs a peer's package",
    "synthesis.quality": "it needs MiniLM and MAUVE",
}


def test_every_quick_form_is_in_make_papers():
    scripts = {
        ".".join(path.relative_to(ROOT / "papers").with_suffix("").parts)
        for path in (ROOT / "papers").glob("*/*.py")
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = [line for line in makefile.splitlines() if line.startswith("QUICK :=")]
    run = set(line.partition("quick-,")[2].rstrip(")").split())
    assert run == scripts - LEFT_OUT.keys()
    assert scripts >= LEFT_OUT.keys()
