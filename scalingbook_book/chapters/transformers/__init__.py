"""Explorers, figures and checks of the chapter on Transformer math."""
