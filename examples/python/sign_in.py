#!/usr/bin/env python3
"""Signs a user in with a code that the service mails, then shows the user's profile and notifications.

    python3 sign_in.py EMAIL [FIRST_NAME LAST_NAME]      (pass the names only to sign up)

COURTSIDE_URL is the address of the service. COURTSIDE_TOKEN_FILE is the file in which the program stores the token, so
the next run needs no code. An app would store the token in the phone's keychain instead.
"""

import json
import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("COURTSIDE_URL", "http://127.0.0.1:3000")
TOKEN_FILE = os.environ.get("COURTSIDE_TOKEN_FILE", ".courtside-token")


class SessionOver(Exception):
    """Signals that the session has ended, by a logout or because its days are over."""


class Client:
    def __init__(self):
        self.token = None
        if os.path.exists(TOKEN_FILE):
            with open(TOKEN_FILE, encoding="ascii") as file:
                self.token = file.read().strip()

    def sign_in(self, email, names):
        """Requests a code by mail and exchanges the code for a token."""
        sign_up = {"first_name": names[0], "last_name": names[1], "accept_cgu": True} if names else {}
        # If the token file contains an old token, both requests contain this token. The old token gives no access any
        # more, but it shows that this client has signed in before. The service gives such a client a code, a number of
        # attempts and a waiting time of its own. So a stranger who guesses codes for the same address cannot make this
        # user wait.
        asked = expect_ok(*self.send("POST", "/api/v1/auth/request-otp", {"email": email, **sign_up}))
        print(asked["message"])
        # The code must stay a string, because it may begin with zeros: 0042.
        code = input("code: ").strip()
        verified = expect_ok(*self.send("POST", "/api/v1/auth/verify-otp", {"email": email, "code": code}))
        self.keep(verified["access_token"])

    def call(self, method, path, body=None):
        """Sends a request with the user's token. If the token has expired, refreshes the token and repeats the request.

        Raises SessionOver if the session has ended.
        """
        status, headers, answer = self.send(method, path, body)
        if status == 401:
            status, headers, answer = self.send("POST", "/api/v1/auth/refresh")
            # Only a 401 means that the session has ended. After any other error, the token is still valid.
            if status == 401:
                raise SessionOver
            self.keep(expect_ok(status, headers, answer)["access_token"])
            status, headers, answer = self.send(method, path, body)
        return expect_ok(status, headers, answer)

    def send(self, method, path, body=None):
        """Sends one request. Returns the status, the headers and the answer, parsed as JSON."""
        request = urllib.request.Request(URL + path, method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, response.headers, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, error.headers, json.load(error)

    def keep(self, token):
        """Stores a new token before its first use.

        Soon after the first use of a new token, the service refuses the previous token. If the program lost the new
        token after the first use, the user would have to sign in again.
        """
        self.token = token
        with os.fdopen(os.open(TOKEN_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token)


def expect_ok(status, headers, answer):
    """Returns the answer, or ends the program if the request failed.

    Every error has a `message` for people and a `code` for programs. The answers 429 and 503 also have the HTTP header
    Retry-After.
    """
    if status == 200:
        return answer
    again = f" (try again in {headers['Retry-After']} s)" if headers["Retry-After"] else ""
    sys.exit(f"{status} {answer['code']}: {answer['message']}{again}")


def show(client):
    me = client.call("GET", "/api/v1/auth/me")["data"]
    print(f"signed in as {me['first_name']} {me['last_name']} (user {me['id']})")
    page = client.call("GET", "/api/v1/notifications")
    print(f"{page['meta']['unread_count']} unread of {page['meta']['total']}")
    for notification in page["data"]:
        mark = " " if notification["is_read"] else "*"
        print(f"{mark} {notification['title']}: {notification['message']}")


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit("usage: python3 sign_in.py EMAIL [FIRST_NAME LAST_NAME]")
    email, names = sys.argv[1], sys.argv[2:]
    client = Client()
    if client.token:
        try:
            return show(client)
        except SessionOver:
            pass
    client.sign_in(email, names)
    show(client)


if __name__ == "__main__":
    main()
