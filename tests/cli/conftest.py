"""The command line as a user has it."""

import pytest

from dptext.cli import main
from synthesis.conftest import tiny_model_folder as tiny_model_folder


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
