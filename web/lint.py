"""Are the site's scripts rightly typed and written? `python -m web.lint`: TypeScript and oxlint, as pinned.

Both are one native program for each platform, and npm brings this platform's. Nothing of them is served.
"""

import subprocess

from web import vendor

CHECKS = (
    ("typescript/bin/tsc", "-p", "web"),
    ("oxlint/bin/oxlint", "-c", "web/oxlintrc.json", "--deny-warnings", "web", "tests/browser"),
)


def main() -> None:
    """Run both, say what they found, and fail where it was anything."""
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
