-- Derived tables and views: rebuilt from the durable ones at any time, never the
-- truth. The library reads the tables; the views are for people with a shell.

CREATE TABLE commit_info(         -- one row a commit: what its object says
  id         BLOB PRIMARY KEY,    -- object.id
  time_us    INTEGER NOT NULL,
  author     TEXT NOT NULL,
  message    TEXT NOT NULL,
  parents    TEXT NOT NULL,       -- ids in hexadecimal, by spaces
  generation INTEGER NOT NULL     -- 1 more than the largest of its parents', 1 without parents
) WITHOUT ROWID;

CREATE TABLE node_total(          -- one row a map node: what hangs under it
  id     BLOB PRIMARY KEY,        -- object.id
  arrays INTEGER NOT NULL,
  groups INTEGER NOT NULL,
  chunks INTEGER NOT NULL,
  size   INTEGER NOT NULL,        -- canonical bytes of the chunks
  stored INTEGER NOT NULL         -- their stored bytes
) WITHOUT ROWID;

CREATE VIEW log AS
  SELECT lower(hex(id)) AS id,
         strftime('%Y-%m-%dT%H:%M:%SZ', time_us / 1000000, 'unixepoch') AS time,
         author, message, parents
    FROM commit_info ORDER BY time_us DESC;

CREATE VIEW refs AS
  SELECT name, lower(hex(target)) AS id, message FROM ref;
