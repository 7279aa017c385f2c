"""Golden files of the fixture nodes: compared, or written anew with --update-golden."""
import os

import pytest


@pytest.fixture
def golden(request):
    """Call with a path and a text: they must be equal."""
    update = request.config.getoption("--update-golden")

    def compare(path, text):
        if update:
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
        assert os.path.exists(path), "run pytest --update-golden once, and read what it wrote"
        with open(path, encoding="utf-8") as handle:
            assert text == handle.read()
    return compare
