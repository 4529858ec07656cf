-- The tables are described, with an example row each, in doc.go.
-- The program sets PRAGMA user_version; raise schemaVersion in database.go with every change here.

CREATE TABLE projects (
  pid      INTEGER PRIMARY KEY,
  slug     TEXT NOT NULL UNIQUE,
  max_file INTEGER NOT NULL DEFAULT 0,
  messages INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE files (
  fid     INTEGER PRIMARY KEY,
  pid     INTEGER NOT NULL,
  path    TEXT NOT NULL,
  kind    INTEGER NOT NULL,
  agent   TEXT NOT NULL,
  msgid   TEXT NOT NULL,
  size    INTEGER NOT NULL,
  mtime   INTEGER NOT NULL,
  ctime   INTEGER NOT NULL,
  inode   INTEGER NOT NULL,
  read_at INTEGER NOT NULL,
  hash    BLOB,
  valid   INTEGER NOT NULL,
  bad     INTEGER NOT NULL,
  at      INTEGER,
  fact    TEXT NOT NULL
);

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
  status    TEXT NOT NULL DEFAULT '',
  UNIQUE (pid, name)
);

CREATE TABLE messages (
  row         INTEGER PRIMARY KEY,
  pid         INTEGER NOT NULL,
  id          TEXT NOT NULL,
  thread      TEXT NOT NULL,
  human       TEXT NOT NULL,
  sender      TEXT NOT NULL,
  tos         TEXT NOT NULL,
  ccs         TEXT NOT NULL,
  created     INTEGER NOT NULL,
  importance  TEXT NOT NULL,
  ack         INTEGER NOT NULL,
  in_reply_to TEXT NOT NULL,
  refs        TEXT NOT NULL,
  message_id  TEXT NOT NULL,
  media_type  TEXT NOT NULL,
  attachments TEXT NOT NULL,
  html        TEXT NOT NULL,
  key         TEXT NOT NULL,
  auth        TEXT NOT NULL,
  door        TEXT NOT NULL,
  terminal    INTEGER NOT NULL,
  seal        TEXT NOT NULL,
  digest      BLOB,
  src         TEXT NOT NULL,
  facets      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  body        TEXT NOT NULL
);

-- FTS5 answers a prefix of another length from all places of all words that begin with it: see patience in search.go.
CREATE VIRTUAL TABLE search USING fts5(
  subject, body, facets,
  content = 'messages', content_rowid = 'row',
  tokenize = 'unicode61 remove_diacritics 2', prefix = '3'
);
-- With 4, SQLite's default, merging is a fifth of an ingest; with 16 a query has too many segments to look into.
INSERT INTO search (search, rank) VALUES ('automerge', 8);

CREATE TABLE deliveries (
  aid      INTEGER NOT NULL,
  row      INTEGER NOT NULL,
  path     TEXT NOT NULL,
  kind     TEXT NOT NULL,
  urgent   INTEGER NOT NULL,
  asks     INTEGER NOT NULL,
  read     INTEGER NOT NULL,
  read_at  INTEGER,
  ack      INTEGER NOT NULL,
  ack_at   INTEGER,
  archived INTEGER NOT NULL,
  PRIMARY KEY (aid, row)
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
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  pid    INTEGER NOT NULL,
  path   TEXT NOT NULL,
  kind   INTEGER NOT NULL,
  op     TEXT NOT NULL,
  agent  TEXT NOT NULL,
  msgid  TEXT NOT NULL,
  thread TEXT NOT NULL,
  at     INTEGER NOT NULL
);

-- indexes: made after the load when a whole index is built

CREATE UNIQUE INDEX files_path ON files (pid, path);
CREATE INDEX files_message ON files (pid, msgid, agent) WHERE msgid <> '';
CREATE INDEX files_copies ON files (pid, agent, kind, msgid) WHERE kind IN (6, 9); -- inbox and outbox copies by name
CREATE UNIQUE INDEX messages_id ON messages (pid, id);
CREATE INDEX messages_thread ON messages (pid, thread COLLATE NOCASE) WHERE thread <> '';
CREATE INDEX messages_sender ON messages (pid, sender);
CREATE INDEX messages_key ON messages (pid, sender, key) WHERE key <> '';
CREATE INDEX deliveries_unread ON deliveries (aid, row) WHERE read = 0;
CREATE INDEX deliveries_urgent ON deliveries (aid, row) WHERE urgent = 1;
CREATE INDEX deliveries_awaiting ON deliveries (aid, row) WHERE asks = 1 AND ack = 0;
CREATE INDEX deliveries_asking ON deliveries (row) WHERE asks = 1 AND ack = 0;
CREATE INDEX deliveries_read ON deliveries (aid, read_at) WHERE read_at IS NOT NULL;
CREATE INDEX changes_project ON changes (pid);
CREATE INDEX deliveries_acked ON deliveries (aid, ack_at) WHERE ack_at IS NOT NULL;
