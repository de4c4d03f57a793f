-- Sets the ids from 2^52 up aside for guests: players without an account, whom a producer numbers itself. No account
-- ever gets such an id. The statement locks only the sequence, and it neither reads nor locks the table `app_user`.
alter sequence app_user_id_seq maxvalue 4503599627370495;
