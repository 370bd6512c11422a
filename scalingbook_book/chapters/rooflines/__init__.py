"""Explorers, figures and checks of the chapter on rooflines."""
