"""Explorers, figures and checks of the introduction."""
