"""The folder that ``dptext demo`` leaves: made once for all processes of the tests, and copied."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock


def place_demo(factory: pytest.TempPathFactory, folder: Path) -> Path:
    """A copy of ``dptext-demo`` in a folder."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all of them
    output = base / "demo"
    with FileLock(base / "demo.lock"):
        if not (output / "done").exists():
            shutil.rmtree(output, ignore_errors=True)
            output.mkdir()
            program = "import sys; from dptext.cli import main; sys.exit(main(['demo', '--quiet']))"
            environment = {**os.environ, "DPTEXT_CACHE": "off"}
            subprocess.run(
                [sys.executable, "-c", program], cwd=output, env=environment, check=True, capture_output=True
            )
            (output / "done").touch()
    return Path(shutil.copytree(output / "dptext-demo", folder / "dptext-demo", dirs_exist_ok=True))
