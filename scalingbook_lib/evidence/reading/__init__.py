"""Interprets rows of any table of measurements: numbers, chips, models and software in any spelling."""
