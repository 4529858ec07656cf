-- doc.go describes the tables, with an example row for each.
-- The program sets PRAGMA user_version. Increment edition in database.go with every change here.

CREATE TABLE projects (
  pid      INTEGER PRIMARY KEY,
  slug     TEXT NOT NULL UNIQUE,
  max_file INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE folders (
  fol      INTEGER PRIMARY KEY,
  pid      INTEGER NOT NULL,
  path     TEXT NOT NULL,
  files    INTEGER NOT NULL DEFAULT 0,
  messages INTEGER NOT NULL DEFAULT 0,
  UNIQUE (pid, path)
);

-- The files of one message have names that begin with its id, so their rows are adjacent.
CREATE TABLE files (
  pid     INTEGER NOT NULL,
  name    TEXT NOT NULL,
  fol     INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  aid     INTEGER,
  stamp   INTEGER NOT NULL,
  hash    BLOB,
  valid   INTEGER NOT NULL,
  bad     INTEGER NOT NULL,
  at      INTEGER,
  fact    TEXT NOT NULL,
  PRIMARY KEY (pid, name, fol)
) WITHOUT ROWID;

CREATE TABLE agents (
  aid       INTEGER PRIMARY KEY,
  pid       INTEGER NOT NULL,
  name      TEXT NOT NULL,
  files     INTEGER NOT NULL DEFAULT 0,
  total     INTEGER NOT NULL DEFAULT 0,
  unread    INTEGER NOT NULL DEFAULT 0,
  archived  INTEGER NOT NULL DEFAULT 0,
  sent      INTEGER NOT NULL DEFAULT 0,
  profile   INTEGER NOT NULL DEFAULT 0,
  program   TEXT NOT NULL DEFAULT '',
  model     TEXT NOT NULL DEFAULT '',
  task      TEXT NOT NULL DEFAULT '',
  inception INTEGER,
  machine   TEXT NOT NULL DEFAULT '',
  status    TEXT NOT NULL DEFAULT '',
  hold      TEXT NOT NULL DEFAULT '',
  UNIQUE (pid, name)
);

CREATE TABLE messages (
  row         INTEGER PRIMARY KEY,
  pid         INTEGER NOT NULL,
  id          TEXT NOT NULL,
  thread      TEXT NOT NULL,
  sender      TEXT NOT NULL,
  tos         TEXT NOT NULL,
  ccs         TEXT NOT NULL,
  created     INTEGER NOT NULL,
  importance  TEXT NOT NULL,
  ack         INTEGER NOT NULL,
  in_reply_to TEXT NOT NULL,
  message_id  TEXT NOT NULL,
  key         TEXT NOT NULL,
  auth        TEXT NOT NULL,
  door        TEXT NOT NULL,
  rest        TEXT NOT NULL,
  digest      BLOB,
  fol         INTEGER NOT NULL,
  facets      TEXT NOT NULL,
  question    INTEGER NOT NULL,
  subject     TEXT NOT NULL,
  body        TEXT NOT NULL
);

-- For a prefix of another length, FTS5 reads every occurrence of every word that begins with it: see patience in search.go.
CREATE VIRTUAL TABLE search USING fts5(
  subject, body, facets,
  content = 'messages', content_rowid = 'row',
  tokenize = 'unicode61 remove_diacritics 2', prefix = '3'
);
-- With 4, SQLite's default, merging takes a fifth of an ingest. With 16, a query has to search too many segments.
INSERT INTO search (search, rank) VALUES ('automerge', 8);
-- A leaf of the full-text index fits on one database page.
INSERT INTO search (search, rank) VALUES ('pgsz', 2000);

CREATE TABLE deliveries (
  box      INTEGER NOT NULL,
  row      INTEGER NOT NULL,
  fol      INTEGER NOT NULL,
  fact     TEXT NOT NULL,
  urgent   INTEGER NOT NULL,
  asks     INTEGER NOT NULL,
  read     INTEGER NOT NULL,
  read_at  INTEGER,
  ack      INTEGER NOT NULL,
  ack_at   INTEGER,
  archived INTEGER NOT NULL,
  later    INTEGER,
  PRIMARY KEY (box, row)
) WITHOUT ROWID;

CREATE TABLE claims (
  pid         INTEGER NOT NULL,
  path        TEXT NOT NULL,
  pattern     TEXT NOT NULL,
  agent       TEXT NOT NULL,
  exclusive   INTEGER NOT NULL,
  reason      TEXT NOT NULL,
  created     INTEGER NOT NULL,
  expires     INTEGER NOT NULL,
  released    INTEGER NOT NULL,
  released_at INTEGER,
  PRIMARY KEY (pid, path)
) WITHOUT ROWID;
CREATE INDEX claims_agent ON claims (pid, agent, created);

CREATE TABLE problems (
  pid    INTEGER NOT NULL,
  path   TEXT NOT NULL,
  reason TEXT NOT NULL,
  line   INTEGER NOT NULL,
  PRIMARY KEY (pid, path)
) WITHOUT ROWID;

CREATE TABLE changes (
  seq    INTEGER PRIMARY KEY,
  pid    INTEGER NOT NULL,
  path   TEXT NOT NULL,
  kind   INTEGER NOT NULL,
  op     TEXT NOT NULL,
  agent  TEXT NOT NULL,
  thread TEXT NOT NULL,
  at     INTEGER NOT NULL
);

CREATE TRIGGER file_added AFTER INSERT ON files BEGIN
  UPDATE folders SET files = files + 1 WHERE fol = new.fol;
  UPDATE agents SET files = files + 1 WHERE aid = new.aid;
END;
CREATE TRIGGER file_gone AFTER DELETE ON files BEGIN
  UPDATE folders SET files = files - 1 WHERE fol = old.fol;
  DELETE FROM folders WHERE fol = old.fol AND files = 0;
  UPDATE agents SET files = files - 1 WHERE aid = old.aid;
  DELETE FROM agents WHERE aid = old.aid AND files = 0;
END;
CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
  UPDATE folders SET messages = messages + 1 WHERE fol = new.fol;
END;
CREATE TRIGGER message_gone AFTER DELETE ON messages BEGIN
  UPDATE folders SET messages = messages - 1 WHERE fol = old.fol;
END;
CREATE TRIGGER message_moved AFTER UPDATE OF fol ON messages BEGIN
  UPDATE folders SET messages = messages + (fol = new.fol) - (fol = old.fol) WHERE fol IN (old.fol, new.fol);
END;
CREATE TRIGGER delivery_added AFTER INSERT ON deliveries BEGIN
  UPDATE agents SET total = total + (new.box > 0), unread = unread + (new.read = 0), archived = archived + new.archived,
    sent = sent + (new.box < 0) WHERE aid = abs(new.box);
END;
CREATE TRIGGER delivery_gone AFTER DELETE ON deliveries BEGIN
  UPDATE agents SET total = total - (old.box > 0), unread = unread - (old.read = 0), archived = archived - old.archived,
    sent = sent - (old.box < 0) WHERE aid = abs(old.box);
END;

-- indexes: created after the load when a whole index is built

CREATE INDEX files_copies ON files (aid, kind, name) WHERE kind IN (6, 9); -- inbox and outbox copies by name
CREATE UNIQUE INDEX messages_id ON messages (pid, id);
CREATE INDEX messages_thread ON messages (pid, thread COLLATE NOCASE) WHERE thread <> '';
CREATE INDEX messages_elsewhere ON messages (pid, message_id) WHERE message_id <> '';
CREATE INDEX messages_question ON messages (pid) WHERE question = 1;
CREATE INDEX messages_key ON messages (pid, sender, key) WHERE key <> '';
CREATE INDEX deliveries_unread ON deliveries (box, row) WHERE read = 0;
CREATE INDEX deliveries_urgent ON deliveries (box, row) WHERE urgent = 1;
CREATE INDEX deliveries_awaiting ON deliveries (box, row) WHERE asks = 1 AND ack = 0;
CREATE INDEX deliveries_asking ON deliveries (row) WHERE asks = 1 AND ack = 0;
CREATE INDEX deliveries_read ON deliveries (box, read_at) WHERE read_at IS NOT NULL;
CREATE INDEX deliveries_later ON deliveries (box, later) WHERE later IS NOT NULL;
CREATE INDEX changes_project ON changes (pid);
CREATE INDEX deliveries_acked ON deliveries (box, ack_at) WHERE ack_at IS NOT NULL;
