-- +goose Up
-- A collection belongs to a tenant. Its name is unique there.
CREATE TABLE ragd.collections (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant  text NOT NULL COLLATE "C",
    name    text NOT NULL COLLATE "C",
    created timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, name)
);

-- An embedding model: the weights and the recipe, as ingest.Embedder.Model names them.
CREATE TABLE ragd.models (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL COLLATE "C" UNIQUE,
    dim  integer NOT NULL CHECK (dim BETWEEN 1 AND 4000)
);

-- COLLATE "C" lets the index of the unique constraint serve starts_with(path, ...).
CREATE TABLE ragd.documents (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id   bigint NOT NULL REFERENCES ragd.collections ON DELETE CASCADE,
    path            text NOT NULL COLLATE "C",
    title           text NOT NULL,
    hash            text NOT NULL,
    recipe          text NOT NULL,
    type            text NOT NULL,
    charset         text NOT NULL,
    charset_guessed boolean NOT NULL,
    bytes           bigint NOT NULL,
    modified        timestamptz,
    metadata        jsonb NOT NULL,
    chunks          integer NOT NULL,
    created         timestamptz NOT NULL DEFAULT now(),
    updated         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (collection_id, path)
);
CREATE INDEX documents_metadata ON ragd.documents USING gin (metadata jsonb_path_ops);

-- sentence_spans holds start and end of each sentence in turn. sentence_vectors
-- holds, for each sentence, a little-endian float32 scale and dim int8 values; it
-- is NULL when sentences are not encoded. EXTERNAL: it does not compress.
CREATE TABLE ragd.chunks (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id      bigint NOT NULL REFERENCES ragd.documents ON DELETE CASCADE,
    ordinal          integer NOT NULL,
    heading          text[] NOT NULL,
    text             text NOT NULL,
    start_byte       integer NOT NULL,
    end_byte         integer NOT NULL,
    page             integer NOT NULL,
    tokens           integer NOT NULL,
    sentence_spans   integer[] NOT NULL,
    sentence_vectors bytea,
    UNIQUE (document_id, ordinal)
);
ALTER TABLE ragd.chunks ALTER sentence_vectors SET STORAGE EXTERNAL;

-- Vectors lie apart from the text, so that an exact scan reads narrow rows, and
-- carry what a search filters by. The toast target keeps up to 4,000 dimensions
-- in the row. Each model has an HNSW index of its own, made at its first use.
CREATE TABLE ragd.vectors (
    chunk_id      bigint PRIMARY KEY REFERENCES ragd.chunks ON DELETE CASCADE,
    document_id   bigint NOT NULL,
    collection_id bigint NOT NULL,
    model_id      integer NOT NULL REFERENCES ragd.models,
    embedding     halfvec NOT NULL
) WITH (toast_tuple_target = 8160);
CREATE INDEX vectors_document ON ragd.vectors (document_id);
CREATE INDEX vectors_collection ON ragd.vectors (collection_id, model_id);

-- How many vectors a collection has of each model; kept by the writer.
CREATE TABLE ragd.collection_models (
    collection_id bigint NOT NULL REFERENCES ragd.collections ON DELETE CASCADE,
    model_id      integer NOT NULL REFERENCES ragd.models,
    chunks        bigint NOT NULL CHECK (chunks >= 0),
    PRIMARY KEY (collection_id, model_id)
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE ragd.collection_models, ragd.vectors, ragd.chunks, ragd.documents, ragd.models, ragd.collections;
