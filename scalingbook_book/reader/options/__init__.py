"""The chips, machines, models and data types that controls of explorers offer."""
