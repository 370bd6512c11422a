#!/bin/sh
# Prints the path of a Chromium for the browser tests; installs Debian's package where there is none and one may.
set -eu
find_one() {
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" "/Applications/Chromium.app/Contents/MacOS/Chromium"; do
    [ -n "$name" ] && command -v "$name" && return 0
  done
  return 1
}
find_one && exit 0
if command -v apt-get >/dev/null 2>&1; then
  root=
  [ "$(id -u)" = 0 ] || root="sudo -n"
  if [ -z "$root" ] || sudo -n true 2>/dev/null; then
    echo "==> installing Debian's chromium" >&2
    export DEBIAN_FRONTEND=noninteractive
    $root apt-get update -qq >&2 || true
    $root apt-get install -y -qq --no-install-recommends chromium >/dev/null || true
    find_one && exit 0
  fi
fi
echo "the browser tests need Chromium or Chrome: install one (Debian: apt-get install chromium), or set CHROMIUM to its path" >&2
exit 1
