"""The folder that ``dptext demo`` leaves: made once by each process of the tests, and copied."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_made: list[Path] = []


def place_demo(factory: pytest.TempPathFactory, folder: Path) -> Path:
    """A copy of ``dptext-demo`` in a folder."""
    if not _made:
        base = factory.mktemp("demo")
        program = "import sys; from dptext.cli import main; sys.exit(main(['demo', '--quiet']))"
        environment = {**os.environ, "DPTEXT_CACHE": "off"}
        subprocess.run([sys.executable, "-c", program], cwd=base, env=environment, check=True, capture_output=True)
        _made.append(base / "dptext-demo")
    return Path(shutil.copytree(_made[0], folder / "dptext-demo", dirs_exist_ok=True))
