"""The page about security names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.findall(r"`(tests/\w+\.py)::(\w+)`", (ROOT / "docs" / "security.md").read_text())


def test_the_page_names_many_tests():
    assert len(NAMED) > 20


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_the_page_names_is_there(file, name):
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
