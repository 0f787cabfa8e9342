-- +goose Up
-- The model whose vectors answer; NULL while a collection has no vectors. Vectors
-- of another model may lie beside these while the collection is embedded anew.
ALTER TABLE ragd.collections ADD model_id integer REFERENCES ragd.models;
UPDATE ragd.collections c SET model_id = (
    SELECT m.model_id FROM ragd.collection_models m
    WHERE m.collection_id = c.id AND m.chunks > 0
    ORDER BY m.chunks DESC, m.model_id LIMIT 1);

-- The indexes of before held all collections of a model.
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT indexname FROM pg_indexes WHERE schemaname = 'ragd' AND indexname ~ '^vectors_hnsw_' LOOP
        EXECUTE format('DROP INDEX ragd.%I', name);
    END LOOP;
END $$;
-- +goose StatementEnd

ALTER TABLE ragd.vectors DROP CONSTRAINT vectors_pkey;
ALTER TABLE ragd.vectors ADD PRIMARY KEY (chunk_id, model_id);

-- The vectors of a chunk's sentences, by model: for each sentence a little-endian
-- float32 scale and dim int8 values. No row: sentences were not encoded. EXTERNAL:
-- it does not compress.
CREATE TABLE ragd.sentence_vectors (
    chunk_id bigint NOT NULL REFERENCES ragd.chunks ON DELETE CASCADE,
    model_id integer NOT NULL REFERENCES ragd.models,
    vectors  bytea NOT NULL
);
ALTER TABLE ragd.sentence_vectors ALTER vectors SET STORAGE EXTERNAL;
INSERT INTO ragd.sentence_vectors
    SELECT c.id, v.model_id, c.sentence_vectors FROM ragd.chunks c JOIN ragd.vectors v ON v.chunk_id = c.id
    WHERE c.sentence_vectors IS NOT NULL;
ALTER TABLE ragd.sentence_vectors ADD PRIMARY KEY (chunk_id, model_id);
ALTER TABLE ragd.chunks DROP sentence_vectors;

-- The counters of BM25 are the collection's, whatever models its chunks have.
CREATE TABLE ragd.lexical_counts (
    collection_id bigint PRIMARY KEY REFERENCES ragd.collections ON DELETE CASCADE,
    chunks        bigint NOT NULL CHECK (chunks >= 0),
    terms         bigint NOT NULL CHECK (terms >= 0)
) WITH (fillfactor = 50);
INSERT INTO ragd.lexical_counts
    SELECT collection_id, sum(chunks), sum(terms) FROM ragd.collection_models GROUP BY 1;
ALTER TABLE ragd.collection_models DROP terms;

-- An index of its own for each large collection and its model; ingest/store makes
-- those of collections that grow large later.
-- +goose StatementBegin
DO $$
DECLARE c record;
BEGIN
    FOR c IN SELECT l.id, m.id AS model, m.dim FROM ragd.collections l
             JOIN ragd.models m ON m.id = l.model_id
             JOIN ragd.collection_models n ON n.collection_id = l.id AND n.model_id = m.id
             WHERE n.chunks * greatest(m.dim, 384) >= 384 * 10000 LOOP
        EXECUTE format('CREATE INDEX vectors_hnsw_%1$s_%2$s ON ragd.vectors USING hnsw ((embedding::halfvec(%3$s)) halfvec_cosine_ops)
                        WHERE collection_id = %1$s AND model_id = %2$s', c.id, c.model, c.dim);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DELETE FROM ragd.vectors v USING ragd.collections c WHERE c.id = v.collection_id AND v.model_id <> c.model_id;
DELETE FROM ragd.collection_models m USING ragd.collections c WHERE c.id = m.collection_id AND m.model_id <> c.model_id;
ALTER TABLE ragd.collection_models ADD terms bigint NOT NULL DEFAULT 0 CHECK (terms >= 0);
UPDATE ragd.collection_models m SET terms = l.terms FROM ragd.lexical_counts l WHERE l.collection_id = m.collection_id;
DROP TABLE ragd.lexical_counts;
ALTER TABLE ragd.chunks ADD sentence_vectors bytea;
ALTER TABLE ragd.chunks ALTER sentence_vectors SET STORAGE EXTERNAL;
UPDATE ragd.chunks c SET sentence_vectors = s.vectors
    FROM ragd.vectors v JOIN ragd.sentence_vectors s USING (chunk_id, model_id) WHERE v.chunk_id = c.id;
DROP TABLE ragd.sentence_vectors;
ALTER TABLE ragd.vectors DROP CONSTRAINT vectors_pkey;
ALTER TABLE ragd.vectors ADD PRIMARY KEY (chunk_id);
-- +goose StatementBegin
DO $$
DECLARE name text; m record;
BEGIN
    FOR name IN SELECT indexname FROM pg_indexes WHERE schemaname = 'ragd' AND indexname ~ '^vectors_hnsw_' LOOP
        EXECUTE format('DROP INDEX ragd.%I', name);
    END LOOP;
    FOR m IN SELECT id, dim FROM ragd.models LOOP
        EXECUTE format('CREATE INDEX vectors_hnsw_%1$s ON ragd.vectors USING hnsw ((embedding::halfvec(%2$s)) halfvec_cosine_ops)
                        WHERE model_id = %1$s', m.id, m.dim);
    END LOOP;
END $$;
-- +goose StatementEnd
ALTER TABLE ragd.collections DROP model_id;
