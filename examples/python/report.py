#!/usr/bin/env python3
"""Reports events about a game, as a games service does. The program sends a single event, then a batch of two events.

    python3 report.py GAME_ID CREATOR_ID PLAYER_ID

COURTSIDE_URL is the address of the service. COURTSIDE_INTAKE_KEY is one of the intake keys of the service.
"""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timedelta, timezone
from http.client import HTTPException

URL = os.environ.get("COURTSIDE_URL", "http://127.0.0.1:3000")
KEY = os.environ.get("COURTSIDE_INTAKE_KEY")


def create_event(kind, data):
    """Creates an event with an id and a time.

    A real games service creates the event in the transaction that changes the game. The games service keeps the event
    in a table until the event is delivered. `source` and `id` identify the event, so both must be the same in every
    attempt. Courtside applies the events of a game in the order of `time`.
    """
    now = datetime.now(timezone.utc).isoformat()
    return {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/games", "type": kind, "time": now, "data": data}


def deliver(body, content_type):
    """Sends the events, and repeats the request if another attempt may succeed.

    Every attempt sends the same bytes. If the service accepted an event but the answer was lost, the service answers
    the next attempt with `duplicate`.
    """
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": content_type}
    for attempt in range(8):
        retry_after = 0
        request = urllib.request.Request(f"{URL}/internal/v1/events", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                answer = json.load(response)
            if not is_ahead(answer):
                return answer
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429) and error.code < 500:
                answer = json.load(error)
                if not is_ahead(answer):
                    return answer
            retry_after = int(error.headers["Retry-After"] or 0)
        except (OSError, HTTPException):
            pass  # There was no answer, or the answer was incomplete.
        # The upper limit of the pause doubles each time. The random factor spreads out the retries of all clients.
        time.sleep(retry_after + random.random() * min(30, 0.5 * 2**attempt))
    sys.exit("the events were not delivered: keep them and send them again later")


def is_ahead(answer):
    """Returns whether the service refused an event only for its `time`.

    The clock of the service or of this machine is wrong, so the service may accept the same bytes later. In a repeated
    batch, the other events are duplicates.
    """
    return any(list(result.get("errors", {})) == ["time"] for result in [answer, *answer.get("results", [])])


def main():
    if not KEY or len(sys.argv) != 4:
        sys.exit("usage: COURTSIDE_INTAKE_KEY=… python3 report.py GAME_ID CREATOR_ID PLAYER_ID")
    game_id, creator_id, player_id = map(int, sys.argv[1:])

    # `data` contains the whole state of the game after the event, so the service does not depend on earlier events.
    game = {
        "game_id": game_id,
        "creator_id": creator_id,
        "player_ids": [creator_id, player_id],
        "starts_at": (datetime.now(timezone.utc) + timedelta(days=3)).isoformat(),
    }
    joined = create_event("game_joined", {**game, "actor_id": player_id})
    moved = create_event("game_updated", {**game, "place": "Court 2"})
    cancelled = create_event("game_cancelled", {**game, "actor_id": creator_id})

    single = deliver(joined, "application/cloudevents+json")
    batch = deliver([moved, cancelled], "application/cloudevents-batch+json")
    if "results" not in batch:
        sys.exit(f"the service refused the whole batch: {batch['message']}")

    refused = False
    for result in [{"id": joined["id"], **single}, *batch["results"]]:
        # If the service refuses a single event, the answer is an error without `status`. In a batch, the result of a
        # refused event has the `status` `rejected`. In both cases, the service would refuse the event at every attempt.
        # A developer must correct the program that created the event.
        status = result.get("status", "rejected")
        refused |= status == "rejected"
        print(f"{result['id']} {status}: {result.get('message') or str(result['notifications']) + ' notification(s)'}")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
