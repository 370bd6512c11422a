#!/bin/sh
# On all hosts of a Cloud TPU slice at once, here v5e 4x4: 16 chips, four hosts.
#   NAME=book ZONE=us-west4-a sh jobs/tpu_pod.sh
set -eu
: "${NAME:?the name of the slice}" "${ZONE:?the zone that it is in}"
: "${RUN:=train}" "${MESH:=X4 Y4}" "${STEPS:=1000}" "${FOLDER:=/shared/run}"

on_all() { gcloud compute tpus tpu-vm ssh "$NAME" --zone "$ZONE" --worker=all --command "$1"; }

# The same code and the same versions everywhere; the machine's own Python may be older than the book's.
git archive --prefix=book/ --output=book.tar.gz HEAD
gcloud compute tpus tpu-vm scp book.tar.gz "$NAME:" --zone "$ZONE" --worker=all
on_all "tar xzf book.tar.gz && pip install --quiet uv && python3 -m uv venv --allow-existing --python 3.12 env &&
  python3 -m uv pip install --quiet --python env/bin/python 'jax[tpu]' './book[lab]'"

# The platform tells each process who the others are.
on_all "env/bin/python -m scalingbook_lab.$RUN --mesh '$MESH' --steps $STEPS --folder '$FOLDER' --pod"
