"""Explorers, figures and checks of the chapter on other architectures."""
