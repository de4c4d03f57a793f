#!/usr/bin/env bash
# Reports facts about a game, as a games service does: one by itself, then two in a batch.
#
#   report.sh GAME_ID CREATOR_ID PLAYER_ID
#
# COURTSIDE_URL says where the service is, COURTSIDE_INTAKE_KEY is one of its intake keys.
set -euo pipefail

url=${COURTSIDE_URL:-http://127.0.0.1:3000}
: "${COURTSIDE_INTAKE_KEY:?is one of the intake keys of the service}"
usage='usage: report.sh GAME_ID CREATOR_ID PLAYER_ID'
game=${1:?$usage} creator=${2:?$usage} player=${3:?$usage}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `data` is the state of the game after the fact, so that any fact can be read without those before it.
starts_at=$(date --utc --date '+3 days' +%FT%TZ)
state="\"game_id\": $game, \"creator_id\": $creator, \"player_ids\": [$creator, $player], \"starts_at\": \"$starts_at\""

# fact TYPE MORE_DATA: names and dates a fact. A games service does this in the transaction in which the thing happens, and
# keeps it in a table until it is delivered: `source` and `id` are its name for ever, and `time` says in which order things
# happened.
fact() {
  printf '{"specversion": "1.0", "id": "%s", "source": "/games", "type": "%s", "time": "%s", "data": {%s, %s}}' \
    "$(< /proc/sys/kernel/random/uuid)" "$1" "$(date --utc +%FT%T.%6NZ)" "$state" "$2"
}

# deliver JSON MEDIA_TYPE: sends until there is an answer that another try wouldn't change. curl itself tries again, later
# each time or when Retry-After says, with the same bytes: if the first try arrived and only its answer was lost, the second
# is a `duplicate` without effect. (Without --fail a 422 is no error to curl, so that it isn't sent again.)
deliver() {
  # The key comes from a pipe: arguments can be read by everybody on the machine.
  status=$(curl --silent --show-error --max-time 10 --retry 8 --retry-all-errors --retry-max-time 120 \
    --header @<(printf 'Authorization: Bearer %s\n' "$COURTSIDE_INTAKE_KEY") --header "Content-Type: $2" \
    --data-binary "$1" --output "$work/answer" --write-out '%{http_code}' "$url/internal/v1/events")
  answer=$(< "$work/answer")
  echo "$status $answer"
}

failed=0
# 202: accepted, 200: a duplicate. 422 won't get better by being sent again: somebody has to look at it.
deliver "$(fact game_joined "\"actor_id\": $player")" application/cloudevents+json
[[ $status == 20[02] ]] || failed=1

# A batch is answered one by one, in order; a `rejected` one costs the others nothing.
deliver "[$(fact game_updated '"place": "Court 2"'), $(fact game_cancelled "\"actor_id\": $creator")]" \
  application/cloudevents-batch+json
[[ $status == 200 && $answer != *'"status":"rejected"'* ]] || failed=1

exit $failed
