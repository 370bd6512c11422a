#!/bin/sh
# The same line on each of several computers, whose names stand in HOSTS:  HOSTS="alpha beta" sh jobs/by_hand.sh
# Where this computer's name stands there is the number of its process; the first one listens.
set -eu
: "${HOSTS:?name all computers, as in HOSTS=\"alpha beta\"}"
: "${RUN:=train}" "${MESH:=X2 Y4}" "${STEPS:=30}" "${FOLDER:=/shared/run}" "${PORT:=9876}"
: "${SIMULATE:=0}" # so many devices on the CPU of each; 0 takes the TPUs or GPUs that it has
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY

me=$(hostname -s)
set -- $HOSTS
first=$1 processes=$# process=0
for host; do
  if [ "$host" = "$me" ]; then break; fi
  process=$((process + 1))
done
if [ "$process" -eq "$processes" ]; then
  echo "this computer is $me, which is not in HOSTS=\"$HOSTS\"; write the names that hostname -s prints" >&2
  exit 2
fi
exec python -m "scalingbook_lab.$RUN" --mesh "$MESH" --steps "$STEPS" --folder "$FOLDER" \
  --simulate "$SIMULATE" --address "$first:$PORT" --processes "$processes" --process "$process"
