#!/bin/sh
# Sets up .venv from uv.lock with the layers that are asked for: `tools/setup.sh book` or `tools/setup.sh test`.
# Needs any Python >= 3.12 (preferring .python-version's) and a package index; brings uv itself.
# Running it again does nothing where all is up to date, and mends what a killed run left half done.
set -eu
cd "$(dirname "$0")/.."
export UV_SYSTEM_CERTS=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset VIRTUAL_ENV UV_PROJECT_ENVIRONMENT PYTHONHOME 2>/dev/null || true

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
  book) layers="--extra viz --group site" ;;
  test) layers="--all-extras --all-groups" ;;
  *) fail "say which layers to set up: tools/setup.sh book, or tools/setup.sh test" ;;
esac

# --- Which Python? Every candidate is run, because a pyenv shim exists for versions that are not there. ---

version_of() { # prints "3.12" where this Python runs and is new enough
  "$1" -I -c 'import sys, venv, ensurepip
v = sys.version_info
if v >= (3, 12) and v.releaselevel == "final" and sys.implementation.name == "cpython": print("%d.%d" % v[:2])' 2>/dev/null || true
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
    [ -z "$(version_of "$python")" ] || { printf '%s\n' "$python"; break; }
  done
}

fetch_python() { # uv may fetch one, where the network has any
  command -v uv >/dev/null 2>&1 || return 0
  say "no Python >= 3.12 here; asking uv for one"
  uv python install "$(cat .python-version)" >&2 || return 0
  uv python find "$(cat .python-version)" 2>/dev/null || true
}

# --- One set-up at a time; a killed one is noticed and its half-built environment thrown away. ---

digest() { cat uv.lock pyproject.toml .python-version tools/setup.sh | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-16; }

stamp=".venv/.set-up-$1"
up_to_date() { [ "$(cat "$stamp" 2>/dev/null)" = "$(digest)" ] && [ -n "$(version_of .venv/bin/python)" ]; }

working() { # is this process a set-up that still runs? (process numbers are used again)
  [ -n "$1" ] && [ "$1" != $$ ] && kill -0 "$1" 2>/dev/null || return 1
  { tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null || ps -o args= -p "$1"; } | grep -q setup.sh
}

mkdir -p .make
while ! mkdir .make/set-up.lock 2>/dev/null; do
  sleep 1 # it may be about to write its number
  owner=$(cat .make/set-up.lock/pid 2>/dev/null || true)
  if working "$owner"; then
    [ "${waiting:-}" ] || say "waiting for another set-up (process $owner)"
    waiting=1
  else
    mv .make/set-up.lock .make/set-up.interrupted 2>/dev/null || rm -rf .make/set-up.lock
  fi
done
echo $$ >.make/set-up.lock/pid
trap 'rm -rf .make/set-up.lock' EXIT
trap 'mkdir -p .make/set-up.interrupted; exit 130' INT TERM HUP

if [ -d .make/set-up.interrupted ]; then
  say "an earlier set-up was interrupted; starting it afresh"
  rm -rf .venv .make/set-up.interrupted
fi
if up_to_date; then exit 0; fi

# --- The environment itself. ---

if [ -z "$(version_of .venv/bin/python)" ]; then
  python=$(find_python)
  [ -n "$python" ] || python=$(fetch_python)
  [ -n "$python" ] || fail "no Python >= 3.12 with its venv module found (looked on PATH, in pyenv and in uv); install one, then run this again"
  say "making .venv with $python"
  rm -rf .venv
  "$python" -m venv .venv >&2 || { rm -rf .venv; fail "$python could not make a virtual environment in .venv"; }
fi
if ! .venv/bin/uv --version >/dev/null 2>&1; then
  say "bringing uv into .venv"
  .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
  .venv/bin/python -m pip install --quiet 'uv>=0.13,<1' || fail "pip could not install uv; is a package index reachable?"
fi
say "installing what uv.lock pins for '$1' (the first time takes minutes)"
# shellcheck disable=SC2086
.venv/bin/uv sync --frozen --inexact --python .venv/bin/python $layers >&2 ||
  fail "uv could not install what uv.lock pins; its message is above"
digest >"$stamp"
[ "$1" = book ] || digest >.venv/.set-up-book # all layers hold these too
