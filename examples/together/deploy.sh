#!/bin/sh
# Stands for what really deploys. It gets the version on standard input, and its exit code is the result. An image whose digest ends in `bad`
# starts in dev, and does not in production.
set -eu

image=$(grep -o '"images":{"cart":"[^"]*"' | head -n 1 | cut -d '"' -f 6)
echo "cart Running starts $image" >> "$KEELWAY_PROGRESS_FILE"

case "$DEPLOYMENT_NAMESPACE $image" in
  "bookshop-prod "*bad)
    echo "cart Failed" >> "$KEELWAY_PROGRESS_FILE"
    echo "it does not answer its health check" >&2
    exit 1
    ;;
esac

echo "cart Complete runs $image" >> "$KEELWAY_PROGRESS_FILE"
echo "$DEPLOYMENT_NAME runs $image"
