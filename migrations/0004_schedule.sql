-- Reminders and starts that are still to be told. Planned and taken away in the transaction of the event that says when the
-- game starts, fired by whichever worker holds the game's lock when they are due.
create table game_schedule (
  game_id bigint not null constraint game_schedule_game_fkey references game on delete cascade,
  -- What the game's start was when this was planned.
  starts_at timestamptz not null,
  type text not null constraint game_schedule_type_check check (type in ('game_reminder', 'game_started')),
  due_at timestamptz not null,
  constraint game_schedule_pkey primary key (game_id, starts_at, type, due_at)
);

create index game_schedule_due on game_schedule (due_at);
