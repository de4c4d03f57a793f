-- Checks the constraints that migrations 0019 and 0022 created again. Other processes can write meanwhile.
alter table sign_in_code validate constraint sign_in_code_address_fkey;
alter table game_schedule validate constraint game_schedule_type_check;
