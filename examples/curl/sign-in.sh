#!/usr/bin/env bash
# Signs a user in with a code that the service mails, then shows the user's profile and notifications.
#
#   sign-in.sh EMAIL [FIRST_NAME LAST_NAME]      (pass the names only to sign up)
#
# COURTSIDE_URL is the address of the service. COURTSIDE_TOKEN_FILE is the file in which the program stores the token,
# so the next run needs no code. The program parses JSON with sed, so it needs only curl. Use jq instead if you have it.
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
  # curl reads the token and the code from files. Every user of the machine could read them if they were arguments of
  # curl.
  printf '%s\n' "${headers[@]}" > "$work/headers"
  printf '%s' "${3-}" > "$work/body"
  status=$(curl --silent --show-error --max-time 10 --request "$1" --header "@$work/headers" \
    ${3+--data-binary "@$work/body"} --dump-header "$work/head" --output "$work/answer" --write-out '%{http_code}' \
    "$url$2") || exit 1
  answer=$(< "$work/answer")
}

# Ends the program if the request failed. Every error has a `message` for people and a `code` for programs. The answers
# 429 and 503 also have the HTTP header Retry-After.
expect_ok() {
  [[ $status == 200 ]] && return
  echo "$status $answer" >&2
  grep -i '^retry-after:' "$work/head" >&2 || true
  exit 1
}

# Stores a new token before its first use. Soon after the first use of a new token, the service refuses the previous
# token. If the program lost the new token after the first use, the user would have to sign in again.
keep_token() {
  sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p' <<< "$answer" > "$token_file"
}

# call METHOD PATH [JSON]: sends a request with the user's token. If the token has expired, `call` refreshes the token
# and repeats the request. If the refresh gets a 401, the session has ended, by a logout or because its days are over.
# `call` then returns 1. After any other error, the token is still valid.
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

# sign_in EMAIL [FIRST_NAME LAST_NAME]: requests a code by mail and exchanges the code for a token. If the token file
# contains an old token, both requests contain this token. The old token gives no access any more, but it shows that
# this client has signed in before. The service gives such a client a code, a number of attempts and a waiting time of
# its own. So a stranger who guesses codes for the same address cannot make this user wait.
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
