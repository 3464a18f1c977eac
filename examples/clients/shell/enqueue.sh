#!/usr/bin/env bash
# Adds a task for an agent over HTTP, waits for its end and prints the result. Requires curl and jq.
#
#   ./enqueue.sh order-17 "Write part one."     the key, under which the call can be repeated, and the prompt
#
# CAMPAIGN is the id of the campaign; DALSEGNO_URL is the address of the service, and DALSEGNO_API_KEY an API key, if the service requires one.
set -euo pipefail
key=$1 prompt=$2
url=${DALSEGNO_URL:-http://127.0.0.1:7770}

# request PATH [CURL'S ARGUMENTS]: prints the answer, and ends the script with the reason if it is a refusal. With an idempotency key, and
# with GET, curl may repeat a request after 429, 503, a timeout and a refused connection; it waits as long as Retry-After says.
request() {
  local path=$1 answer; shift
  answer=$(curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --max-time 60 \
    ${DALSEGNO_API_KEY:+--header "Authorization: Bearer $DALSEGNO_API_KEY"} "$@" "$url$path") \
    || { jq --raw-output '"\(.code): \(.detail)"' <<<"$answer" >&2; exit 1; }
  echo "$answer"
}

task=$(jq --null-input --arg prompt "$prompt" '{ agent: "copywriter", $prompt }' \
  | request "/v1/campaigns/$CAMPAIGN/tasks" --header 'Content-Type: application/json' --header "Idempotency-Key: $key" --data @-)
id=$(jq --raw-output .id <<<"$task")
until jq --exit-status .ended_at >/dev/null <<<"$task"; do
  task=$(request "/v1/tasks/$id?wait=25s")
done
jq --raw-output '"task \(.id) is \(.state): \(.result // .error)"' <<<"$task"
[ "$(jq --raw-output .state <<<"$task")" = done ]
