"""Explorers, figures and checks of the chapter on training Llama 3."""
