#!/bin/sh
# Stands for a load test: looks up in figures.txt what the image under test measures, and reports it as data.test.
set -eu
figures=$(dirname "$0")/../figures.txt
sleep 0.3
line=$(awk -v image="${KEELWAY_IMAGE:-}" '$1 == image { print; exit }' "$figures")
if [ -z "$line" ]; then
    echo "no figures of image \"${KEELWAY_IMAGE:-}\": add a line to examples/shop/figures.txt" >&2
    exit 1
fi
# shellcheck disable=SC2086 # the line is three words
set -- $line
printf '{"errorRate": %s, "responseTimeP95": %s}\n' "$2" "$3"
echo "error rate $2 %, response time $3 ms" >&2
