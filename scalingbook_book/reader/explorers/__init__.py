"""Explorers: controls, and a pure view of their values."""
