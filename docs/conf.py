"""Sphinx builds these pages: ``sphinx-build -W -b html docs build/html``. Needs no network."""

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

# Pages are Markdown; $…$ is mathematics, and every heading can be linked to.
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
mathjax_path = ""  # no script from elsewhere: formulas are written in plain letters

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
