"""How are cited works named? By sphinxcontrib-bibtex; what it asks for at every citation is found once."""

from pybtex.backends import plaintext
from pybtex.plugin import register_plugin
from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    """Name the plug-in that it looks for among all installed packages each time: a sixth of a build."""
    register_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)
