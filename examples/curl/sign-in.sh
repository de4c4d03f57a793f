#!/usr/bin/env bash
# Signs a person in with the code from their mail, then shows who they are and what they were told.
#
#   sign-in.sh EMAIL [FIRST_NAME LAST_NAME]      with the names it is a sign-up
#
# COURTSIDE_URL says where the service is. The token stays in the file COURTSIDE_TOKEN_FILE, so that the next run asks for no
# code. JSON is taken apart with sed so that nothing but curl is needed; where there is jq, use that.
set -euo pipefail

url=${COURTSIDE_URL:-http://127.0.0.1:3000}
token_file=${COURTSIDE_TOKEN_FILE:-.courtside-token}
email=${1:?usage: sign-in.sh EMAIL [FIRST_NAME LAST_NAME]}
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# send METHOD PATH [JSON]: one request; $status and $answer are what came back.
send() {
  local headers=("Accept: application/json")
  [[ -s $token_file ]] && headers+=("Authorization: Bearer $(< "$token_file")")
  [[ $# -gt 2 ]] && headers+=("Content-Type: application/json")
  # Headers and body come from files: arguments can be read by everybody on the machine.
  printf '%s\n' "${headers[@]}" > "$work/headers"
  printf '%s' "${3-}" > "$work/body"
  status=$(curl --silent --show-error --max-time 10 --request "$1" --header "@$work/headers" \
    ${3+--data-binary "@$work/body"} --dump-header "$work/head" --output "$work/answer" --write-out '%{http_code}' "$url$2") || exit 1
  answer=$(< "$work/answer")
}

# Every error has a `message` for people and a `code` for programs; 429 and 503 say when to try again.
expect_ok() {
  [[ $status == 200 ]] && return
  echo "$status $answer" >&2
  grep -i '^retry-after:' "$work/head" >&2 || true
  exit 1
}

# To be kept before it is used: whoever loses the newest token may have to sign in again.
keep_token() {
  sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p' <<< "$answer" > "$token_file"
}

# A request of the person. An expired token is renewed once, and the request repeated. Returns 1 when the session is over:
# 7 days have passed since the sign-in, or it was ended. Only a 401 says so; after any other error the token is worth keeping.
call() {
  send "$@"
  if [[ $status == 401 ]]; then
    send POST /api/v1/auth/refresh
    [[ $status == 401 ]] && return 1
    expect_ok
    keep_token
    send "$@"
  fi
  expect_ok
}

# A text as JSON writes it.
json() {
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

# Has a code mailed, and trades it for a token. Both requests carry the old token if there is one. It opens nothing any more,
# but it gives this client a lane of its own, so that a stranger who guesses at the address can't make its owner wait.
sign_in() {
  local names=
  if [[ $# -gt 1 ]]; then names=", \"first_name\": $(json "$2"), \"last_name\": $(json "$3"), \"accept_cgu\": true"; fi
  send POST /api/v1/auth/request-otp "{\"email\": $(json "$1")$names}"
  expect_ok
  echo "$answer"
  read -rp 'code: ' code
  send POST /api/v1/auth/verify-otp "{\"email\": $(json "$1"), \"code\": $(json "$code")}"
  expect_ok
  keep_token
}

if [[ ! -s $token_file ]] || ! call GET /api/v1/auth/me; then
  sign_in "$@"
  call GET /api/v1/auth/me
fi
echo "$answer"
call GET /api/v1/notifications
echo "$answer"
