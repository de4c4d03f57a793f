-- Outside a transaction.
-- The indexes of texts that must be unique depend on the sort order of the operating system. An upgrade of its C library
-- can change this order. A lookup then no longer finds some rows, and a unique index accepts a second row. The collation
-- "C" sorts by bytes, so it never changes. Migrations 0015 to 0027 give this collation to each text in a key. The index
-- of each large table is built first, while other processes write. A later migration of a few milliseconds puts it into
-- the place of the old index.
drop index concurrently if exists app_user_email_c;
create unique index concurrently app_user_email_c on app_user (email collate "C");
