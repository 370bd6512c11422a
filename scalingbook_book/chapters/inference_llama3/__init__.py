"""Explorers, figures and checks of the chapter on serving Llama 3."""
