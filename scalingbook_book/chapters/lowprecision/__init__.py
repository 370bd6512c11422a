"""Explorers, figures and checks of the chapter on low precision."""
