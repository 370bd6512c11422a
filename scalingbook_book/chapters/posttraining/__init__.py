"""Explorers, figures and checks of the chapter on RL post-training, fault tolerance and energy."""
