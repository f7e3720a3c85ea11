"""Sphinx configuration. The build needs no network: no intersphinx, and the browser typesets formulas."""

import sktransclust

project = "sktransclust"
author = "The sktransclust developers"
copyright = f"2026, {author}"
version = release = sktransclust.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's type line says it, with the shape
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"sktransclust {version}"
html_theme_options = {"navigation_with_keys": False, "show_prev_next": False}
html_sidebars = {"**": []}  # the bar at the top names every page
