-- +goose Up
-- The lexical index. A document's terms first lie together in one row (fresh);
-- when enough of them have gathered they are merged into a segment, one posting
-- list a term, and segments into larger ones. A chunk that is deleted after that
-- is noted as dead until a merge leaves it out. Lists are encoded as the package
-- ingest/postings says.
CREATE TABLE ragd.lexical_fresh (
    document_id   bigint PRIMARY KEY REFERENCES ragd.documents ON DELETE CASCADE,
    collection_id bigint NOT NULL,
    chunks        integer NOT NULL,
    terms         bytea NOT NULL
);
CREATE INDEX lexical_fresh_collection ON ragd.lexical_fresh (collection_id);

CREATE TABLE ragd.lexical_segments (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id bigint NOT NULL REFERENCES ragd.collections ON DELETE CASCADE,
    chunks        bigint NOT NULL
);
CREATE INDEX lexical_segments_collection ON ragd.lexical_segments (collection_id);

-- chunks is the number of postings in list, dead ones included.
CREATE TABLE ragd.lexical_postings (
    segment_id bigint NOT NULL REFERENCES ragd.lexical_segments ON DELETE CASCADE,
    term       text NOT NULL COLLATE "C",
    chunks     integer NOT NULL,
    list       bytea NOT NULL,
    PRIMARY KEY (segment_id, term)
);
ALTER TABLE ragd.lexical_postings ALTER list SET STORAGE EXTERNAL;

CREATE TABLE ragd.lexical_dead (
    collection_id bigint NOT NULL REFERENCES ragd.collections ON DELETE CASCADE,
    chunk_id      bigint NOT NULL,
    PRIMARY KEY (collection_id, chunk_id)
);

-- The length of a chunk in terms, and the sum of a collection: the counters of
-- BM25 move in the transaction that moves the chunks.
ALTER TABLE ragd.chunks ADD terms integer NOT NULL DEFAULT 0;
ALTER TABLE ragd.collection_models ADD terms bigint NOT NULL DEFAULT 0 CHECK (terms >= 0);

-- +goose Down
ALTER TABLE ragd.collection_models DROP terms;
ALTER TABLE ragd.chunks DROP terms;
DROP TABLE ragd.lexical_dead, ragd.lexical_postings, ragd.lexical_segments, ragd.lexical_fresh;
