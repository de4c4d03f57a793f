#!/usr/bin/env python3
"""Reports facts about a game, as a games service does: one by itself, then two in a batch.

    python3 report.py GAME_ID CREATOR_ID PLAYER_ID

COURTSIDE_URL says where the service is, COURTSIDE_INTAKE_KEY is one of its intake keys.
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


def fact(kind, data):
    """Names and dates a fact.

    A games service does this in the transaction in which the thing happens, and keeps it in a table until it is delivered:
    `source` and `id` are its name for ever, and `time` says in which order things happened.
    """
    now = datetime.now(timezone.utc).isoformat()
    return {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/games", "type": kind, "time": now, "data": data}


def deliver(body, content_type):
    """Sends until there is an answer that another try wouldn't change.

    The same bytes every time: if the first try arrived and only its answer was lost, the second is a `duplicate` without
    effect.
    """
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": content_type}
    for attempt in range(8):
        retry_after = 0
        request = urllib.request.Request(f"{URL}/internal/v1/events", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429) and error.code < 500:
                return json.load(error)
            retry_after = int(error.headers["Retry-After"] or 0)
        except (OSError, HTTPException):
            pass  # Nobody answered, or only in part.
        # Twice as long after each failure, and not all at once: others have lost the service too.
        time.sleep(retry_after + random.random() * min(30, 0.5 * 2**attempt))
    sys.exit("not delivered; keep the facts and send them again later")


def main():
    if not KEY or len(sys.argv) != 4:
        sys.exit("usage: COURTSIDE_INTAKE_KEY=… python3 report.py GAME_ID CREATOR_ID PLAYER_ID")
    game_id, creator_id, player_id = map(int, sys.argv[1:])

    # `data` is the state of the game after the fact, so that any fact can be read without those before it.
    game = {
        "game_id": game_id,
        "creator_id": creator_id,
        "player_ids": [creator_id, player_id],
        "starts_at": (datetime.now(timezone.utc) + timedelta(days=3)).isoformat(),
    }
    joined = fact("game_joined", {**game, "actor_id": player_id})
    moved = fact("game_updated", {**game, "place": "Court 2"})
    cancelled = fact("game_cancelled", {**game, "actor_id": creator_id})

    single = deliver(joined, "application/cloudevents+json")
    batch = deliver([moved, cancelled], "application/cloudevents-batch+json")
    if "results" not in batch:
        sys.exit(f"the whole batch was refused: {batch['message']}")

    refused = False
    for result in [{"id": joined["id"], **single}, *batch["results"]]:
        # A refused single fact is an error without a status; in a batch it is `rejected`. Neither gets better by being
        # sent again: somebody has to look at it.
        status = result.get("status", "rejected")
        refused |= status == "rejected"
        print(f"{result['id']} {status}: {result.get('message') or str(result['notifications']) + ' notification(s)'}")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
