-- Creates the tables for messages to people whose app is closed: preferences, push subscriptions, and mails about unread
-- notifications.
create table notification_preference (
  user_id bigint constraint notification_preference_pkey primary key
    constraint notification_preference_user_fkey references app_user on delete cascade,
  -- Only the values that the person chose, such as {"game_joined": {"push": false}}.
  types jsonb not null default '{}',
  email_paused boolean not null default false,
  -- Null means that the person made no choice.
  quiet_enabled boolean,
  quiet_from text,
  quiet_to text,
  time_zone text,
  -- Grows with each change. A worker defers a delivery only if the version is still the one that it read.
  version integer not null default 1,
  updated_at timestamptz not null
);

create table push_subscription (
  id bigint generated always as identity constraint push_subscription_pkey primary key,
  user_id bigint not null constraint push_subscription_user_fkey references app_user on delete cascade,
  -- The session that registered the subscription. If it is ended before its time, no push leaves any more.
  session_id uuid not null constraint push_subscription_session_fkey references session on delete cascade,
  endpoint text collate "C" not null constraint push_subscription_endpoint_key unique,
  -- The keys of the browser, in base64url (RFC 8291).
  p256dh text not null,
  auth text not null,
  -- The VAPID key with which the subscription was made. Pushes to it are signed with this key.
  public_key text not null,
  time_zone text,
  created_at timestamptz not null,
  confirmed_at timestamptz not null
);
create index push_subscription_user on push_subscription (user_id, confirmed_at);
create index push_subscription_session on push_subscription (session_id);

-- Unread notifications that a mail will mention. A row is deleted together with the insert of its mail.
create table waiting_mail (
  user_id bigint not null constraint waiting_mail_user_fkey references app_user on delete cascade,
  notification_id bigint not null,
  game_id bigint,
  urgent boolean not null,
  created_at timestamptz not null,
  look_at timestamptz not null,
  constraint waiting_mail_pkey primary key (user_id, notification_id)
);
create index waiting_mail_look on waiting_mail (look_at);
create index waiting_mail_game on waiting_mail (game_id);

-- The last mails to each person, and the last refusal of the address.
create table mail_state (
  user_id bigint constraint mail_state_pkey primary key
    constraint mail_state_user_fkey references app_user on delete cascade,
  ordinary_at timestamptz,
  urgent_at timestamptz,
  bounced_at timestamptz
);

-- Each attempt at a mail about unread notifications, for a day.
create table digest_attempt (
  id bigint generated always as identity constraint digest_attempt_pkey primary key,
  user_id bigint not null constraint digest_attempt_user_fkey references app_user on delete cascade,
  attempted_at timestamptz not null,
  bounced boolean not null
);
create index digest_attempt_time on digest_attempt (attempted_at);
create index digest_attempt_user on digest_attempt (user_id);

alter table outbox
  add column user_id bigint,
  add column game_id bigint,
  add column notification_id bigint,
  add column subscription_id bigint,
  -- The time after which the delivery is dropped.
  add column deadline timestamptz;
create index outbox_user on outbox (user_id) where user_id is not null;
create index outbox_game on outbox (game_id) where game_id is not null;
create unique index outbox_push on outbox (subscription_id, notification_id) where subscription_id is not null;
