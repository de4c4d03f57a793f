#!/usr/bin/env bash
# Signs a user in with the code from their mail, then shows their profile and notifications.
#
#   sign-in.sh EMAIL [FIRST_NAME LAST_NAME]      with the names it is a sign-up
#
# COURTSIDE_URL is the address of the service. The token stays in the file COURTSIDE_TOKEN_FILE, so the next run needs
# no code. The program needs only curl, so it parses JSON with sed. Use jq if you have it.
set -euo pipefail

url=${COURTSIDE_URL:-http://127.0.0.1:3000}
token_file=${COURTSIDE_TOKEN_FILE:-.courtside-token}
email=${1:?usage: sign-in.sh EMAIL [FIRST_NAME LAST_NAME]}
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# send METHOD PATH [JSON]: sends one request and sets $status and $answer.
send() {
  local headers=("Accept: application/json")
  [[ -s $token_file ]] && headers+=("Authorization: Bearer $(< "$token_file")")
  [[ $# -gt 2 ]] && headers+=("Content-Type: application/json")
  # Headers and body come from files, because every user of the machine can read arguments.
  printf '%s\n' "${headers[@]}" > "$work/headers"
  printf '%s' "${3-}" > "$work/body"
  status=$(curl --silent --show-error --max-time 10 --request "$1" --header "@$work/headers" \
    ${3+--data-binary "@$work/body"} --dump-header "$work/head" --output "$work/answer" --write-out '%{http_code}' \
    "$url$2") || exit 1
  answer=$(< "$work/answer")
}

# Every error has a `message` for people and a `code` for programs. 429 and 503 have a Retry-After.
expect_ok() {
  [[ $status == 200 ]] && return
  echo "$status $answer" >&2
  grep -i '^retry-after:' "$work/head" >&2 || true
  exit 1
}

# Stores a token before its first use. A client that loses its newest token may have to sign in again.
keep_token() {
  sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p' <<< "$answer" > "$token_file"
}

# call METHOD PATH [JSON]: sends a request of the user. It renews an expired token once and repeats the request. It
# returns 1 if the session has ended, by a logout or 7 days after the sign-in. Only a 401 means that. After other errors
# the token is still valid.
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

# json TEXT: prints the text as a JSON string.
json() {
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

# sign_in EMAIL [FIRST_NAME LAST_NAME]: requests a code by mail and exchanges it for a token. Both requests carry the
# old token if there is one. It no longer authenticates anyone, but it gives this client a separate lane. A stranger who
# guesses at the address then cannot make its owner wait.
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
