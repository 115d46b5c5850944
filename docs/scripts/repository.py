"""Files of the repository that stand beside docs/: those that are part of the site, and the links that lead to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
PLACE = "repository/"
"""The folder of the site for what stands beside docs/."""

RENDERED = {
    "Benchmarks": "benchmarks/README.md",
    "Changelog": "CHANGELOG.md",
    "Contributing": "CONTRIBUTING.md",
    "Security": "SECURITY.md",
    "Third-party material": "THIRD_PARTY.md",
    "Licence": "LICENSE",
}
EXPERIMENTS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("papers/*/README.md"))
_CODE = {".py": "python", ".json": "json", ".toml": "toml", ".cff": "yaml", ".yml": "yaml", ".sh": "sh", "": "text"}
_LINK = re.compile(r"(\]\(|^\[[^\]]+\]:[ ]+|<(?:img|a)\b[^>]*?\b(?:src|href)=\")([^)\s\"]+)", re.MULTILINE)
_CODE_SPAN = re.compile(
    r"^([ \t]*)(`{3,}|~{3,})[^\n]*\n.*?^\1\2[ \t]*$|(?<!`)(`+)(?!`).+?(?<!`)\3(?!`)", re.DOTALL | re.MULTILINE
)


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Change a page's text where it is not code."""
    parts, last = [], 0
    for code in _CODE_SPAN.finditer(text):
        parts += [change(text[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, change(text[last:])])


def links(path: str, text: str) -> Iterator[tuple[str, str]]:
    """The links of a file: as written, and the file of the repository that each means."""
    result: list[str] = []

    def note(part: str) -> str:
        result.extend(link[2] for link in _LINK.finditer(part))
        return part

    outside_of_code(text, note)
    for link in result:
        if not re.match(r"[a-z][a-z+.-]*:|#|//", link):
            yield link, normpath(join(dirname(path), link.partition("#")[0]))


def on_site(path: str) -> str:
    """Where in the site's sources a file of the repository is; a folder is one page, its README or a list."""
    if path == "README.md":
        return "index.md"
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    if (ROOT / path).is_dir():
        return f"{PLACE}{path}.md"
    if path.endswith("/README.md"):
        return f"{PLACE}{dirname(path)}.md"
    if (ROOT / path).suffix in _CODE:
        return f"{PLACE}{path}.md"
    return PLACE + path


def from_site(page: str) -> str:
    """The file of the repository that a page of the site was made from."""
    if page == "index.md":
        return "README.md"
    if not page.startswith(PLACE):
        return DOCS + page
    path = page.removeprefix(PLACE)
    if (ROOT / path).exists():
        return path
    path = path.removesuffix(".md")
    return f"{path}/README.md" if (ROOT / path).is_dir() else path


def to_site_links(page: str, text: str) -> str:
    """The text of a page, with its links to files of the repository as links of the site."""
    path = from_site(page)

    def change(part: str) -> str:
        return _LINK.sub(lambda link: link[1] + _moved(page, path, link[2]), part)

    return outside_of_code(text, change)


def _moved(page: str, path: str, link: str) -> str:
    if re.match(r"[a-z][a-z+.-]*:|#|//", link):
        return link
    name, mark, anchor = link.partition("#")
    target = normpath(join(dirname(path), name))
    if target.startswith(DOCS) and path.startswith(DOCS):
        return link
    return relpath(on_site(target), dirname(page) or ".") + mark + anchor


def beside_docs() -> dict[str, str | Path]:
    """All files of the site that do not stand in docs/: what the pages lead to, and what that leads to.

    Returns:
        The place in the site's sources, and the content of a page, or the file.
    """
    waiting = [*RENDERED.values(), *EXPERIMENTS]
    for source in (ROOT / "README.md", *sorted((ROOT / DOCS).rglob("*.md"))):
        path = source.relative_to(ROOT).as_posix()
        waiting += [target for _, target in links(path, source.read_text(encoding="utf-8"))]
    result: dict[str, str | Path] = {}
    while waiting:
        path = waiting.pop()
        place = on_site(path)
        if path.startswith((DOCS, "..")) or path == "README.md" or place in result or not (ROOT / path).exists():
            continue
        result[place] = output = _page(path)
        if isinstance(output, str):
            waiting += [target for _, target in links(from_site(place), output)]
    return result


def _page(path: str) -> str | Path:
    source = ROOT / path
    if source.is_dir():
        if (source / "README.md").is_file():
            return (source / "README.md").read_text(encoding="utf-8")
        inside = sorted(entry.name for entry in source.iterdir() if _is_listed(entry))
        return f"# {path}\n\n" + "".join(f"- [{name}]({name})\n" for name in inside)
    if source.suffix == ".md":
        return source.read_text(encoding="utf-8")
    if (language := _CODE.get(source.suffix)) is None:
        return source
    text = source.read_text(encoding="utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n`````{language}\n{text}\n`````\n"


def _is_listed(path: Path) -> bool:
    return (path.suffix in _CODE and path.is_file()) or (path / "README.md").is_file()


def nav() -> list[object]:
    """The table of contents of the files of the project."""
    return [{title: on_site(path)} for title, path in RENDERED.items()]


def experiments() -> list[object]:
    """The table of contents of the experiments, by the headings of their pages."""
    return [on_site(path) for path in EXPERIMENTS]
