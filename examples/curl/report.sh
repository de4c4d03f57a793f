#!/usr/bin/env bash
# Reports events about a game, as a games service does: first a single event, then a batch of two.
#
#   report.sh GAME_ID CREATOR_ID PLAYER_ID
#
# COURTSIDE_URL is the address of the service, COURTSIDE_INTAKE_KEY is one of its intake keys.
set -euo pipefail

url=${COURTSIDE_URL:-http://127.0.0.1:3000}
: "${COURTSIDE_INTAKE_KEY:?must be one of the intake keys of the service}"
usage='usage: report.sh GAME_ID CREATOR_ID PLAYER_ID'
game=${1:?$usage} creator=${2:?$usage} player=${3:?$usage}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `data` is the whole state of the game after the event, so the service needs no earlier event to understand it.
starts_at=$(date --utc --date '+3 days' +%FT%TZ)
state="\"game_id\": $game, \"creator_id\": $creator, \"player_ids\": [$creator, $player], \"starts_at\": \"$starts_at\""

# create_event TYPE MORE_DATA: prints an event with an id and a time. A games service creates it in the transaction that
# changes the game, and stores it in a table until it is delivered. `source` and `id` identify the event forever.
# `time` states the order of the events.
create_event() {
  printf '{"specversion": "1.0", "id": "%s", "source": "/games", "type": "%s", "time": "%s", "data": {%s, %s}}' \
    "$(< /proc/sys/kernel/random/uuid)" "$1" "$(date --utc +%FT%T.%6NZ)" "$state" "$2"
}

# deliver JSON MEDIA_TYPE: sends until another attempt would not change the answer. curl repeats the same bytes after
# growing pauses or after Retry-After. If only the answer was lost, the next attempt is a `duplicate` without effect.
# Without --fail, curl does not count a 422 as an error and does not repeat it.
deliver() {
  # The key comes from a pipe, because every user of the machine can read arguments.
  status=$(curl --silent --show-error --max-time 10 --retry 8 --retry-all-errors --retry-max-time 120 \
    --header @<(printf 'Authorization: Bearer %s\n' "$COURTSIDE_INTAKE_KEY") --header "Content-Type: $2" \
    --data-binary "$1" --output "$work/answer" --write-out '%{http_code}' "$url/internal/v1/events")
  answer=$(< "$work/answer")
  echo "$status $answer"
}

failed=0
# 202 is accepted and 200 is a duplicate. Another attempt does not help after a 422: a developer has to look at it.
deliver "$(create_event game_joined "\"actor_id\": $player")" application/cloudevents+json
[[ $status == 20[02] ]] || failed=1

# The answer to a batch has one result for each event, in order. A `rejected` event does not affect the others.
deliver "[$(create_event game_updated '"place": "Court 2"'), $(create_event game_cancelled "\"actor_id\": $creator")]" \
  application/cloudevents-batch+json
[[ $status == 200 && $answer != *'"status":"rejected"'* ]] || failed=1

exit $failed
