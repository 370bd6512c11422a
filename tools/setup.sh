#!/bin/sh
# Sets up .venv from uv.lock with the layers that are asked for: `tools/setup.sh book` or `tools/setup.sh test`.
# uv does the work: where all is up to date it changes nothing and needs no network, and what was interrupted it
# completes. This script finds a Python >= 3.12 (preferring .python-version's) and brings uv into .venv.
set -eu
cd -P "$(dirname "$0")/.."
export UV_SYSTEM_CERTS=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset VIRTUAL_ENV UV_PROJECT_ENVIRONMENT PYTHONHOME 2>/dev/null || true

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
  book) layers="--extra book --extra cli --group site" ;;
  test) layers="--all-extras --all-groups" ;;
  *) fail "say which layers to set up: tools/setup.sh book, or tools/setup.sh test" ;;
esac

here() { # an environment that was moved has scripts that do not start
  grep -qF -e "'$PWD/.venv" -e "\"$PWD/.venv" -e "=$PWD/.venv" .venv/bin/activate 2>/dev/null
}

sync() { # --inexact: the layers that were set up before stay
  # shellcheck disable=SC2086 # they are several words
  .venv/bin/uv sync --frozen --inexact --python .venv/bin/python $layers "$@"
}

if here && sync --check --offline --quiet 2>/dev/null; then exit 0; fi

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
    case "$python" in "$PWD/.venv/"*) continue ;; esac # it may be what is made anew
    if fits "$python" </dev/null; then printf '%s\n' "$python" && break; fi
  done
}

fetch_python() { # uv may fetch one, where the network has any
  command -v uv >/dev/null 2>&1 || return 0
  say "no Python >= 3.12 here; asking uv for one"
  uv python install "$(cat .python-version)" >&2 || return 0
  uv python find "$(cat .python-version)" 2>/dev/null || true
}

make_environment() { # with the uv that uv.lock pins, by the digests of its files there
  python=$(find_python)
  [ -n "$python" ] || python=$(fetch_python)
  [ -n "$python" ] || fail "no Python >= 3.12 with its venv module found (looked on PATH, in pyenv and in uv); install one, then run this again"
  say "making .venv with $python"
  here || rm -rf .venv
  "$python" -m venv --prompt .venv .venv || fail "$python could not make a virtual environment"
  say "bringing uv into .venv"
  .venv/bin/python -I - >.venv/uv.txt <<'END'
import tomllib
with open("uv.lock", "rb") as lock:
    uv = next(package for package in tomllib.load(lock)["package"] if package["name"] == "uv")
print(" --hash=".join([f"uv=={uv['version']}", *(wheel["hash"] for wheel in uv["wheels"])]))
END
  .venv/bin/python -m pip install --quiet --require-hashes -r .venv/uv.txt ||
    fail "pip could not install the uv that uv.lock pins from a package index"
}

here && fits .venv/bin/python && .venv/bin/uv --version >/dev/null 2>&1 || make_environment
say "installing what uv.lock pins for '$1' (the first time takes minutes)"
sync || fail "uv could not install what uv.lock pins; its message is above"
