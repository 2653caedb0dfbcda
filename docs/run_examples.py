"""Run the examples of the pages: every fenced python block with ``>>>`` prompts.

Run: ``python docs/run_examples.py`` (all pages) or with the names of pages. Exit code 1 if any differs.
"""

import doctest
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def read_examples(page):
    """Return the page with all but its examples blanked, so that line numbers stay right."""
    text = page.read_text(encoding="utf-8")
    keep = [" " if character != "\n" else "\n" for character in text]
    for block in FENCE.finditer(text):
        if ">>>" in block[1]:
            keep[block.start(1) : block.end(1)] = block[1]
    return "".join(line.rstrip() + "\n" for line in "".join(keep).split("\n"))


def main(names):
    """Run each page's examples in one namespace; return the number of failures."""
    pages = [HERE / name for name in names] or sorted(HERE.glob("*.md"))
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    for page in pages:
        test = doctest.DocTestParser().get_doctest(read_examples(page), {}, page.name, str(page), 0)
        if test.examples:
            result = runner.run(test)
            print(f"{page.name}: {result.attempted} examples, {result.failed} failed", flush=True)
    return runner.summarize(verbose=False).failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
