-- +goose Up
-- The last hidden states of a chunk's tokens, by model: a little-endian float32 scale
-- for each, then dim int8 values for each. No row: they were not kept. A row without
-- bytes: the chunk has none. EXTERNAL: they do not compress.
CREATE TABLE ragd.token_states (
    chunk_id      bigint NOT NULL REFERENCES ragd.chunks ON DELETE CASCADE,
    model_id      integer NOT NULL REFERENCES ragd.models,
    collection_id bigint NOT NULL,
    states        bytea NOT NULL,
    PRIMARY KEY (chunk_id, model_id)
);
ALTER TABLE ragd.token_states ALTER states SET STORAGE EXTERNAL;
CREATE INDEX token_states_collection ON ragd.token_states (collection_id, model_id);

-- +goose Down
DROP TABLE ragd.token_states;
