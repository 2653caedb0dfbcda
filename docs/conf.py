"""Sphinx builds these pages: ``sphinx-build -W -b html docs build/html``. Needs no network."""

import re
from importlib.metadata import version as _installed_version

project = "pnp_gcd"
author = "The pnp_gcd developers"
copyright = "the pnp_gcd developers"
release = version = _installed_version("pnp-gcd")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]

exclude_patterns = ["build", "_build"]

# Pages are Markdown, and every heading can be linked to. Formulas are written in plain letters, so
# that no page needs a script from elsewhere.
myst_heading_anchors = 3

autosummary_generate = False
autodoc_default_options = {"members": False}
autodoc_typehints = "none"  # numpydoc's own sections say the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = f"pnp_gcd {release}"
html_show_sphinx = False
html_copy_source = False


def _escape_shapes(app, what, name, obj, options, lines):
    """Keep ``(n_rows, n_clusters_)`` in a shape from being read as a link to "n_clusters"."""
    for number, line in enumerate(lines):
        if "of shape (" in line and "`" not in line:
            lines[number] = re.sub(r"(\w)_(?=[,)])", r"\1\\_", line)


def setup(app):
    # Before numpydoc, which takes the docstring's sections apart.
    app.connect("autodoc-process-docstring", _escape_shapes, priority=100)
