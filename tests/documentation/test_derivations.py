"""The source names where its derivations are: each place exists, and the source uses each derivation."""

import re

from documentation.pages import ROOT

LINK = re.compile(r"^Derivation: (docs/[\w/.-]+\.md)#([\w-]+)$", re.MULTILINE)


def test_every_derivation_that_the_source_names_exists():
    sources = [(path, path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")]
    links = [(path, *match.groups()) for path, source in sources for match in LINK.finditer(source)]
    assert links
    for path, page, anchor in links:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert f"{{ #{anchor} }}" in text, f"{path.relative_to(ROOT)} names {page}#{anchor}, which does not exist"
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        assert f"`{module}` {{ #{anchor} }}" in text, f"the heading of {page}#{anchor} should name {module}"


def test_every_derivation_belongs_to_a_module():
    for path in (ROOT / "docs").rglob("*.md"):
        for module in re.findall(r"^## Derivation: `([\w.]+)`", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert (ROOT / "src" / (module.replace(".", "/") + ".py")).exists(), f"{path.name} derives {module}"
