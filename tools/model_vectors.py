"""Write `data/vectors/models.json`: the conformance vectors of the models in `data/model_oracle.json`.

python -m tools.model_vectors. Parameters, caches and states of these models were counted by transformers too,
which a test compares; the FLOPs and the bytes of weights are the library's own.
"""

import json
from pathlib import Path
from typing import Any

from scalingbook_lib import models
from scalingbook_lib.models.conformance import vectors

DATA = Path(__file__).resolve().parent.parent / "data"
ABOUT = {
    "schema": "models.schema.json",
    "version": 1,
    "license": "CC-BY-4.0",
    "conventions": {
        "parameters": "language model without vision and audio towers and without layers that predict "
        "a token more; a tied matrix once",
        "active_parameters": "those that one token uses: k of E routed experts, shared experts, "
        "embeddings and all else",
        "weight_bytes": "as the file stores them, block scales included; in bf16 where it does not say",
        "kv_bytes_per_token": "in bf16, within every window; /kind is the part of one kind of layer; "
        "an entry that serves several tokens counts for its share",
        "state_bytes": "recurrent states of one sequence, in fp32 unless the file says otherwise",
        "convolution_bytes": "the last tokens that short convolutions keep, in bf16, one fewer than "
        "their length",
        "forward_flops": "matmul FLOPs of one new token at the end of S positions (@S), its logits "
        "included; MLA in absorbed form; a query meets its window or the positions "
        "that an indexer chooses",
    },
}


def main() -> None:
    """Write the table."""
    path = DATA / "vectors" / "models.json"
    path.write_text(text(), encoding="utf-8")
    print(f"{path}: {len(json.loads(path.read_text())['models'])} models")


def text() -> str:
    """The table as it is committed: a line for each model's configuration and for each row."""
    oracle = json.loads((DATA / "model_oracle.json").read_text(encoding="utf-8"))
    about = ABOUT | {"counted_with": oracle["about"]}
    blocks = ",\n".join(_block(row) for row in oracle["models"])
    head = json.dumps(about, indent=1, ensure_ascii=False)[1:-1].rstrip()
    return f'{{{head},\n "models": [\n{blocks}\n ]\n}}\n'


def _block(row: dict[str, Any]) -> str:
    model = models.from_hf(row["config"], name=row["name"])
    made = [vectors.as_json(one) for one in vectors.rows(model, row["config"])]
    rows = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in made)
    source = (
        "published config.json" if row["source"] == "published" else "default of the class in transformers"
    )
    default = "" if row["source"] == "published" else " (default of the class)"
    head = {"model": row["name"] + default, "source": source, "config": row["config"]}
    return f'  {json.dumps(head, ensure_ascii=False)[:-1]}, "rows": [\n{rows}\n  ]}}'


if __name__ == "__main__":
    main()
