"""Write mysteries to `data/mysteries`: `python -m tools.mysteries [--healthy] [FILE ...]`."""

import gzip
import sys

from scalingbook_lab import devices
from tools.mysteries import FOLDER, HEALTHY, programs, records


def main(*names: str) -> None:
    """Write the mysteries of these file names, or all of them; after `--healthy`, without their faults."""
    fault = names[:1] != ("--healthy",)
    names, folder = (names, FOLDER) if fault else (names[1:], HEALTHY)
    known = [*records.RECORDS, *(f"{name}.hlo.gz" for name in programs.PROGRAMS)]
    if unknown := set(names) - set(known):
        raise SystemExit(f"no mystery {', '.join(sorted(unknown))}; write some of {', '.join(known)}")
    devices.simulate(programs.DEVICES)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or known:
        path = folder / name
        if name in records.RECORDS:
            path.write_text(records.RECORDS[name](fault=fault), encoding="utf-8")
        else:
            text = programs.PROGRAMS[name.removesuffix(".hlo.gz")](fault=fault)
            with gzip.GzipFile(path, "wb", mtime=0) as file:
                file.write(text.encode())
        print(f"{name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
