"""The site: pinned JavaScript, the Sphinx extension, the page's own scripts and styles, and the build."""
