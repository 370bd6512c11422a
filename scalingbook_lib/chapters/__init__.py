"""What does each chapter hand to its reader? Explorers and checks, a room a chapter."""
