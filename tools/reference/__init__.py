"""Reference tables for readers: the symbols of formulas, and the glossary with where terms are taught."""
