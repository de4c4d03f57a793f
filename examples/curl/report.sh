#!/usr/bin/env bash
# Reports events about a game, as a games service does. The program sends a single event, then a batch of two events.
#
#   report.sh GAME_ID CREATOR_ID PLAYER_ID
#
# COURTSIDE_URL is the address of the service. COURTSIDE_INTAKE_KEY is one of the intake keys of the service.
set -euo pipefail

url=${COURTSIDE_URL:-http://127.0.0.1:3000}
: "${COURTSIDE_INTAKE_KEY:?must be one of the intake keys of the service}"
usage='usage: report.sh GAME_ID CREATOR_ID PLAYER_ID'
game=${1:?$usage} creator=${2:?$usage} player=${3:?$usage}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `data` contains the whole state of the game after the event, so the service does not depend on earlier events.
starts_at=$(date --utc --date '+3 days' +%FT%TZ)
state="\"game_id\": $game, \"creator_id\": $creator, \"player_ids\": [$creator, $player], \"starts_at\": \"$starts_at\""

# create_event TYPE MORE_DATA: prints an event with an id and a time. A real games service creates the event in the
# transaction that changes the game. The games service keeps the event in a table until the event is delivered. `source`
# and `id` identify the event, so both must be the same in every attempt. Courtside applies the events of a game in the
# order of `time`.
create_event() {
  printf '{"specversion": "1.0", "id": "%s", "source": "/games", "type": "%s", "time": "%s", "data": {%s, %s}}' \
    "$(< /proc/sys/kernel/random/uuid)" "$1" "$(date --utc +%FT%T.%6NZ)" "$state" "$2"
}

# deliver JSON MEDIA_TYPE: sends the events, and repeats the request if another attempt may succeed. Every attempt sends
# the same bytes. If the service accepted an event but the answer was lost, the service answers the next attempt with
# `duplicate`. Before each retry, curl waits for the time in the HTTP header Retry-After. Without this header, each wait
# is longer than the previous wait. With the option --fail, curl would treat a 422 as an error and repeat the request.
# So the command does not use --fail.
#
# If the service refuses an event only for its `time`, the clock of the service or of this machine is wrong. The service
# may accept the same bytes later, so the loop repeats the request. In a repeated batch, the other events are duplicates.
deliver() {
  for pause in 1 2 4 8 16 0; do
    # curl reads the key from a pipe. Every user of the machine could read the key if it were an argument of curl.
    status=$(curl --silent --show-error --max-time 10 --retry 8 --retry-all-errors --retry-max-time 120 \
      --header @<(printf 'Authorization: Bearer %s\n' "$COURTSIDE_INTAKE_KEY") --header "Content-Type: $2" \
      --data-binary "$1" --output "$work/answer" --write-out '%{http_code}' "$url/internal/v1/events")
    answer=$(< "$work/answer")
    [[ $answer =~ '"errors":{"time":['[^]]*']}' ]] || break
    sleep "$pause"
  done
  echo "$status $answer"
}

failed=0
# 202 means that the service accepted the event, and 200 means that the event was a duplicate. A 422 means
# that the event contains a mistake, so the service would refuse the event at every attempt. A developer must correct
# the program that created the event.
deliver "$(create_event game_joined "\"actor_id\": $player")" application/cloudevents+json
[[ $status == 20[02] ]] || failed=1

# The answer to a batch has one result for each event, in the order of the events. A `rejected` event does not affect
# the rest of the batch.
deliver "[$(create_event game_updated '"place": "Court 2"'), $(create_event game_cancelled "\"actor_id\": $creator")]" \
  application/cloudevents-batch+json
[[ $status == 200 && $answer != *'"status":"rejected"'* ]] || failed=1

exit $failed
