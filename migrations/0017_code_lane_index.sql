-- Outside a transaction.
drop index concurrently if exists sign_in_code_lane_c;
create unique index concurrently sign_in_code_lane_c on sign_in_code (email collate "C", session_id, network) nulls not distinct;
