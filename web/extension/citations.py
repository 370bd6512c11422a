"""Register the citation backend once, because sphinxcontrib-bibtex looks it up at every citation."""

from pybtex.backends import plaintext
from pybtex.plugin import register_plugin
from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    """Register the plug-in, whose lookup among all installed packages would take a sixth of a build."""
    register_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)
