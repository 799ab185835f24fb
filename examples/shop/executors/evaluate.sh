#!/bin/sh
# Compares each figure in the event, as the test reported it, with the stage's thresholds. Exit code 1 = result fail.
set -eu
thresholds=$(dirname "$0")/../thresholds/$KEELWAY_STAGE
event=$(tr -d ' \n\r\t')
sleep 0.3
if [ ! -f "$thresholds" ]; then
    echo "stage $KEELWAY_STAGE has no thresholds: write examples/shop/thresholds/$KEELWAY_STAGE" >&2
    exit 1
fi
total=0
met=0
findings=
while read -r figure limit; do
    case $figure in '' | '#'*) continue ;; esac
    total=$((total + 1))
    value=$(printf %s "$event" | sed -n "s/.*\"$figure\":\([0-9.]*\).*/\1/p")
    if [ -z "$value" ]; then
        findings="$findings$figure was not measured; "
    elif awk -v value="$value" -v limit="$limit" 'BEGIN { exit !(value <= limit) }'; then
        met=$((met + 1))
    else
        findings="$findings$figure $value is above $limit; "
    fi
done <"$thresholds"
findings=${findings%; }
printf '{"score": %s, "findings": "%s"}\n' "$((total > 0 ? 100 * met / total : 0))" "$findings"
if [ -n "$findings" ]; then
    echo "$findings" >&2
    exit 1
fi
echo "$met of $total figures are within their thresholds" >&2
