"""Type-check and lint the site's scripts: `python -m web.lint` runs pinned TypeScript and oxlint.

Both are native programs that npm installs for this platform; the site does not ship them.
"""

import subprocess

from web import vendor

CHECKS = (
    ("typescript/bin/tsc", "-p", "web"),
    ("oxlint/bin/oxlint", "-c", "web/oxlintrc.json", "--deny-warnings", "web", "tests/browser"),
)


def main() -> None:
    """Run both, print their findings, and exit with a failure if there are any."""
    modules, failed = vendor.install(dev=True), False
    for program, *arguments in CHECKS:
        command = [vendor.node(), str(modules / program), *arguments]
        done = subprocess.run(command, cwd=vendor.ROOT, capture_output=True, text=True, encoding="utf-8")
        if done.returncode:
            print(done.stdout + done.stderr)
            failed = True
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
