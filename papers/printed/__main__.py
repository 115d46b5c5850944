"""All printed tables of the five papers with ours beside them: ``python -m papers.printed`` writes papers/README.md."""

from __future__ import annotations

from pathlib import Path

from papers.printed.readme import text

if __name__ == "__main__":
    Path(__file__).resolve().parents[1].joinpath("README.md").write_text(text(), encoding="utf-8")
