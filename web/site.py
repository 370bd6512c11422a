"""Build the site: `python -m web.site build`, `serve`, `book` (both), `gettext`, `vendor`, `clean`.

Sphinx works in `_build/work`; a successful build replaces `_build/html` by one rename. A build that failed or
was killed leaves a mark, and the next one starts from scratch. A second build waits for the first.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from tools import notebooks, wheel
from web import data_package, downloads, live, offline, policy, serve, stamp, twins, vendor
from web.build_lock import build_lock

BUILD = vendor.ROOT / "_build"
TOOLS = ("jupyter-book", "sphinx", "sphinx-book-theme", "myst-nb", "sphinxcontrib-bibtex", "sphinx-design")


def build(
    source: Path = vendor.ROOT,
    target: Path = BUILD,
    *,
    draft: bool = False,
    pictures: bool = False,
    api: bool = False,
) -> Path:
    """Build the book below `source` into `target`/html and return that folder; warnings fail unless `draft`.

    A published site needs `pictures` in its notebooks; the local server adds them on download. `api` adds the
    pages of the API reference.
    """
    with build_lock(target):
        return _build(source, target, draft=draft, pictures=pictures, api=api)


def _build(source: Path, target: Path, *, draft: bool, pictures: bool, api: bool) -> Path:
    started = time.monotonic()
    vendor.install()
    mend(target)
    work = target / "work"
    _start(work, source, api=api)
    made = work / "_build" / "html"
    with ThreadPoolExecutor() as beside:
        other = beside.submit(_beside_the_pages, source, work, made, pictures=pictures)
        # strict: a broken reference or any other warning fails the build
        _sphinx(source, work, *(["--api"] if api else []), *([] if draft else ["--strict"]))
        other.result()
    data_package.write(made)  # once Sphinx has written the tables of chips and models
    offline.write(made)
    (made / ".nojekyll").touch()
    publish(made, target)
    if not draft:  # the next build asks again about everything that a draft warns of
        (work / "unfinished").unlink()
    print(f"site: {target / 'html'} stands after {time.monotonic() - started:.0f} s", flush=True)
    return target / "html"


def _start(work: Path, source: Path, *, api: bool = False) -> None:
    """Start from scratch if the last build did not finish or the build tools have changed."""
    digest, last = f"{_machinery(source)}{' with the API' if api else ''}", work / "machinery"
    if (work / "unfinished").exists() or not last.exists() or last.read_text() != digest:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    (work / "unfinished").touch()
    last.write_text(digest)


def _machinery(source: Path) -> str:
    """Return a digest of everything that affects all pages and that Sphinx does not track."""
    digest = hashlib.sha256(vendor.lock_digest().encode() + policy.POLICY.encode())
    for folder in (vendor.HERE / "extension", vendor.HERE / "templates"):
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"):
            digest.update(path.relative_to(vendor.HERE).as_posix().encode() + path.read_bytes())
    for name in ("_config.yml", "_toc.yml"):
        digest.update((source / name).read_bytes())
    digest.update(" ".join([stamp.version(), *(f"{tool} {version(tool)}" for tool in TOOLS)]).encode())
    return digest.hexdigest()


def _beside_the_pages(source: Path, work: Path, made: Path, *, pictures: bool) -> None:
    """Write the worker's files, notebooks, Markdown and data, unless the last build wrote the same ones."""
    digest, last = f"{_made_beside(source)} {pictures}", work / "beside"
    if not last.exists() or last.read_text() != digest:
        live.write(made / "_static" / "live")
        downloads.write(made, source, pictures=pictures)
        twins.write(made, source)
        last.write_text(digest)


def _made_beside(source: Path) -> str:
    """Return a digest of the inputs of these files: library, notebooks, and the tools that write them."""
    digest = hashlib.sha256(f"{vendor.lock_digest()} {stamp.VERSION} {stamp.day()}".encode())
    programs = [*vendor.HERE.glob("*.py"), vendor.HERE / "compile.mjs", *(vendor.ROOT / "tools").glob("*.py")]
    paths = [
        *programs,
        *(notebook.path for notebook in notebooks.every(root=source)),
        *(path for pattern in twins.READ for path in source.glob(pattern)),
    ]
    told = wheel.whole() | wheel.workbench() | {str(p): p.read_bytes() for p in paths if p.is_file()}
    for name, content in sorted(told.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _sphinx(source: Path, work: Path, *flags: str) -> None:
    command = [sys.executable, "-m", "web.pages", str(source), str(work), *flags]
    paths = os.pathsep.join(filter(None, [str(vendor.ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": paths, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    done = subprocess.run(command, cwd=vendor.ROOT, env=environment, close_fds=False, check=False)
    if done.returncode:
        raise SystemExit(f"the site was not built (status {done.returncode}): see the warnings above")


def catalogs(source: Path = vendor.ROOT, target: Path = BUILD) -> Path:
    """Write a gettext catalog of each page into `target`/gettext, for translators, and return that folder.

    A message is the source of a paragraph, with its numbers, formulas and references: what the site computes,
    such as the number of a figure, it computes in a translation too. Code and its output are no messages.
    """
    with build_lock(target):
        vendor.install()
        work = target / "gettext-work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        _sphinx(source, work, "--gettext", "--strict")
        made = target / "gettext"
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(work / "_build" / "gettext", made, ignore=shutil.ignore_patterns(".*"))
        shutil.rmtree(work)
        return made


def publish(made: Path, target: Path) -> None:
    """Replace the last build by a finished one."""
    fresh, old, final = target / "html.new", target / "html.old", target / "html"
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        shutil.copytree(made, fresh)
    except BaseException:  # on a full disk, a partial copy would keep it full
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if final.exists():
        final.rename(old)
    fresh.rename(final)
    shutil.rmtree(old, ignore_errors=True)


def mend(target: Path) -> None:
    """Complete a swap that was interrupted between its two renames."""
    if (target / "html.old").exists() and not (target / "html").exists():
        (target / "html.old").rename(target / "html")


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run the task."""
    parser = argparse.ArgumentParser(prog="python -m web.site", description=__doc__)
    parser.add_argument("task", choices=("build", "serve", "book", "gettext", "vendor", "clean"))
    parser.add_argument("--source", type=Path, default=vendor.ROOT, help="the folder with _config.yml")
    parser.add_argument("--target", type=Path, default=BUILD, help="where html/ is put")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--draft", action="store_true", help="show warnings, and build all the same")
    parser.add_argument(
        "--pictures", action="store_true", help="draw the pictures of notebooks, which another server needs"
    )
    parser.add_argument("--api", action="store_true", help="add the pages of the API reference")
    given = parser.parse_args(arguments)
    if given.task == "vendor":
        vendor.install(dev=True)
    if given.task == "clean":
        with build_lock(given.target):
            for name in ("work", "html", "html.new", "html.old"):
                shutil.rmtree(given.target / name, ignore_errors=True)
    if given.task == "gettext":
        made = catalogs(given.source.resolve(), given.target.resolve())
        print(f"{made} has a catalog for each of {len(list(made.rglob('*.pot')))} pages")
    if given.task in ("build", "book"):
        how = {"draft": given.draft, "pictures": given.pictures, "api": given.api}
        build(given.source.resolve(), given.target.resolve(), **how)
    if given.task in ("serve", "book"):
        serve.serve(given.target / "html", given.port)


if __name__ == "__main__":
    main()
