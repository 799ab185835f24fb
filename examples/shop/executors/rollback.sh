#!/bin/sh
# Stands for going back to the version before: the one in the event is taken out of the stage.
set -eu
image=$(printf %s "${KEELWAY_IMAGE:-}" | tr -cd 'A-Za-z0-9._:/@-')
sleep 0.3
printf '{"withdrawn": "%s"}\n' "$image"
echo "$image is out of $KEELWAY_STAGE again" >&2
