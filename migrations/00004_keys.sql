-- +goose Up
-- Who may call. The key itself is not kept: hash is its SHA-256. A limit that is
-- NULL does not limit.
CREATE TABLE ragd.keys (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash                bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    name                text NOT NULL,
    tenant              text NOT NULL COLLATE "C",
    role                text NOT NULL CHECK (role IN ('ask', 'ingest', 'admin')),
    requests_per_minute integer CHECK (requests_per_minute > 0),
    tokens_per_minute   integer CHECK (tokens_per_minute > 0),
    concurrent          integer CHECK (concurrent > 0),
    created             timestamptz NOT NULL DEFAULT now(),
    revoked             timestamptz
);

-- +goose Down
DROP TABLE ragd.keys;
