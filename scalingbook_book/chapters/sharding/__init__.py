"""Explorers, figures and checks of the chapter on sharded matrices."""
