#!/usr/bin/env bash
# make deploy and make undeploy. docs/deploy.md has the settings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stack=${KEELWAY_STACK:-keelway}
sam=${SAM:?run this as make deploy or make undeploy}

fail() { echo "error: $1" >&2; exit 1; }

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d' ' -f1; }

# The digests that the API accepts: given as such, or made of the token, which stays here.
digests() {
    if [ -n "${KEELWAY_TOKEN_SHA256:-}" ]; then
        echo "$KEELWAY_TOKEN_SHA256"
    else
        printf %s "${KEELWAY_TOKEN:?set KEELWAY_TOKEN to the API token (openssl rand -hex 32 makes one), or KEELWAY_TOKEN_SHA256 to its SHA-256}" | sha256
    fi
}

# A stack's name may have 128 characters. The table's needs 3, a function's may have 64, and the longest is <stack>-dead-letters.
check_name() {
    [ ${#stack} -ge 3 ] && [ ${#stack} -le 51 ] ||
        fail "the stack name $stack has ${#stack} characters: choose one of 3 to 51, so that AWS takes the names made of it"
}

deploy() {
    check_name
    [ -f "${CARGO_TARGET_DIR:-target}/lambda/keelway-api/bootstrap.zip" ] || fail "nothing is packaged: run make package ARCH=$ARCH first"
    # The template names the packages in target/; another target directory is not its place.
    [ -z "${CARGO_TARGET_DIR:-}" ] || fail "unset CARGO_TARGET_DIR and package again: the template takes packages from target/lambda"
    local digest
    digest=$(digests)
    # shellcheck disable=SC2086  # PARAMETERS is a list of words
    "$sam" deploy --template-file infra/template.yaml --stack-name "$stack" --resolve-s3 \
        --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --no-fail-on-empty-changeset ${SAM_ARGUMENTS:-} \
        --parameter-overrides "ApiTokenSha256=$digest" "Architecture=${ARCH/x86-64/x86_64}" ${PARAMETERS:-}
}

undeploy() {
    "$sam" delete --stack-name "$stack" ${SAM_ARGUMENTS:-}
    echo "the table $stack stays; to delete it with all its history: aws dynamodb update-table --table-name $stack --no-deletion-protection-enabled && aws dynamodb delete-table --table-name $stack"
}

# A shell that `make env` was evaluated in speaks to an emulator; nobody means to deploy there by make deploy.
not_elsewhere() {
    [ -z "${AWS_ENDPOINT_URL:-}" ] || [ "${KEELWAY_DEPLOY_ANYWHERE:-}" = 1 ] ||
        fail "AWS_ENDPOINT_URL is $AWS_ENDPOINT_URL, so this would not go to AWS: use a shell without the variables of make env, or set KEELWAY_DEPLOY_ANYWHERE=1 if you mean it"
}

case "${1:-}" in
deploy | undeploy) not_elsewhere; "$1" ;;
*) fail "usage: infra/deploy.sh deploy|undeploy" ;;
esac
