#!/bin/sh
# Stands for whatever deploys: takes the image from the trigger, says where the service can be reached.
set -eu
image=$(printf %s "${KEELWAY_IMAGE:-}" | tr -cd 'A-Za-z0-9._:/@-')
if [ -z "$image" ]; then
    echo "no image in the event: trigger with --image" >&2
    exit 1
fi
sleep 0.3
printf '{"deploymentNames": ["%s-%s"], "deploymentURIsLocal": ["http://%s.%s.local"], "image": "%s"}\n' \
    "$KEELWAY_SERVICE" "$KEELWAY_STAGE" "$KEELWAY_SERVICE" "$KEELWAY_STAGE" "$image"
echo "$image runs in $KEELWAY_STAGE" >&2
