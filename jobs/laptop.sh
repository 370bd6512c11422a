#!/bin/sh
# Two processes of four simulated devices on this computer, joined over loopback:  sh jobs/laptop.sh
# RUN=hosts asks first who is there; RUN=train, which is what it does if you say nothing, trains.
set -eu
: "${RUN:=train}" "${MESH:=X2 Y4}" "${STEPS:=30}" "${FOLDER:=run2}" "${PORT:=9876}"
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY # the processes must not look for each other at a proxy

started=
trap 'kill $started 2>/dev/null || true' EXIT INT TERM # no process stays behind alone
for process in 0 1; do
  python -m "scalingbook_lab.$RUN" --mesh "$MESH" --steps "$STEPS" --folder "$FOLDER" --simulate 4 \
    --address "127.0.0.1:$PORT" --processes 2 --process "$process" &
  started="$started $!"
done
for one in $started; do wait "$one"; done
