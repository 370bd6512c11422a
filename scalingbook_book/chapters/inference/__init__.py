"""Explorers, figures and checks of the chapter on inference."""
