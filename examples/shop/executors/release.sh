#!/bin/sh
# Stands for switching the traffic to the version just deployed.
set -eu
image=$(printf %s "${KEELWAY_IMAGE:-}" | tr -cd 'A-Za-z0-9._:/@-')
sleep 0.3
printf '{"released": "%s"}\n' "$image"
echo "$KEELWAY_SERVICE serves $image in $KEELWAY_STAGE" >&2
