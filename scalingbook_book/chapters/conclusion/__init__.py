"""Explorers, figures and checks of the conclusions."""
