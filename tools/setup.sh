#!/bin/sh
# Sets up .venv from uv.lock with the layers that are asked for: `tools/setup.sh book` or `tools/setup.sh test`.
# Where all is up to date it writes nothing. Else it finds a Python >= 3.12 (preferring .python-version's) and runs
# tools/set_up.py with it, which builds an environment beside the one of before.
set -eu
cd "$(dirname "$0")/.."
export UV_SYSTEM_CERTS=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset VIRTUAL_ENV UV_PROJECT_ENVIRONMENT PYTHONHOME 2>/dev/null || true

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
  book | test) ;;
  *) fail "say which layers to set up: tools/setup.sh book, or tools/setup.sh test" ;;
esac
if .venv/bin/python -IS tools/set_up.py check .venv "$1" 2>/dev/null; then exit 0; fi

# --- Which Python? Every candidate is run, because a pyenv shim exists for versions that are not there. ---

fits() { # does this Python run, and is it new enough?
  "$1" -I -c 'import sys, venv, ensurepip
v = sys.version_info
sys.exit(v < (3, 12) or v.releaselevel != "final" or sys.implementation.name != "cpython")' >/dev/null 2>&1
}

pyenv_roots() { # where pyenv keeps its versions, with or without its own environment variables
  [ -z "${PYENV_ROOT:-}" ] || printf '%s\n' "$PYENV_ROOT"
  [ -z "${HOME:-}" ] || printf '%s\n' "$HOME/.pyenv"
  printf '%s\n' "$PATH" | tr ':' '\n' | sed -n -e 's|/shims/*$||p' -e 's|/bin/*$||p' | while read -r root; do
    [ ! -d "$root/versions" ] || printf '%s\n' "$root"
  done
}

candidates() {
  for version in "$(cat .python-version)" 3.12 3.13 3.14; do
    command -v "python$version" || true
    pyenv_roots | while read -r root; do ls -d "$root/versions/$version"*/bin/python 2>/dev/null || true; done
    for home in "${XDG_DATA_HOME:-${HOME:-/nonexistent}/.local/share}/uv/python" "${UV_PYTHON_INSTALL_DIR:-/nonexistent}"; do
      ls -d "$home/cpython-$version"*/bin/python3 2>/dev/null || true
    done
  done
  command -v python3 || true
  command -v python || true
}

find_python() { # the first candidate that runs; .python-version's first, because candidates are listed in that order
  candidates | while read -r python; do
    if fits "$python" </dev/null; then printf '%s\n' "$python" && break; fi
  done
}

fetch_python() { # uv may fetch one, where the network has any
  command -v uv >/dev/null 2>&1 || return 0
  say "no Python >= 3.12 here; asking uv for one"
  uv python install "$(cat .python-version)" >&2 || return 0
  uv python find "$(cat .python-version)" 2>/dev/null || true
}

python=$(find_python)
[ -n "$python" ] || python=$(fetch_python)
[ -n "$python" ] || fail "no Python >= 3.12 with its venv module found (looked on PATH, in pyenv and in uv); install one, then run this again"
exec "$python" -I tools/set_up.py build "$1" "$python"
