-- In-app notifications. Every statement but the "whose is it" look-up names user_id, so that the table can be
-- distributed by it one day; hence the order of the primary key.

create table notification (
  id bigint generated always as identity,
  user_id bigint not null constraint notification_user_fkey references app_user on delete cascade,
  type text not null,
  title text not null,
  message text not null,
  data json,
  -- What brought it about; one row a person, fact and type.
  fact text not null,
  -- Who acted, in what language the message speaks of them, and how many characters of the message's start are their
  -- name: enough to take the name out when that person is deleted.
  actor_id bigint,
  locale text not null,
  actor_name_length smallint not null default 0,
  read_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint notification_pkey primary key (user_id, id),
  constraint notification_fact_key unique (user_id, fact)
);

-- Every id is above 0. The condition keeps a page of a list, which doesn't state it, from being read off this index: that
-- would go through everybody's newer notifications to find the few of somebody who stopped playing.
create index notification_id on notification (id) where id > 0;
create index notification_unread on notification (user_id, id) where read_at is null;
create index notification_actor on notification (actor_id) where actor_name_length > 0;
