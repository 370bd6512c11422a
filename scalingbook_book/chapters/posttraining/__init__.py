"""What the chapter on RL post-training, fault tolerance and energy hands to its reader."""
