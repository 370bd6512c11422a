"""What readers look up: the letters of formulas, and the words of the glossary with where each is taught."""
