"""Configurations as they are published, cut down to the fields that are read: one or more for each family."""

import json
from pathlib import Path

CONFIGS = json.loads((Path(__file__).parents[2] / "data" / "hf_configs.json").read_text(encoding="utf-8"))
