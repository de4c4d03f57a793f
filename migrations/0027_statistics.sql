-- Collects the statistics of the changed columns again. Other processes can write meanwhile.
analyze app_user, sign_in_address, sign_in_code, game_notice, game_schedule, notification, outbox;
