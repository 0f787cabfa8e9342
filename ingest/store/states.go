package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/jackc/pgx/v5"

	"ragd/ingest"
)

// encodeStates packs token states: a little-endian float32 scale for each, then the
// values of each. None give no bytes.
func encodeStates(s *ingest.States) []byte {
	out := make([]byte, 0, 4*s.Tokens()+len(s.Values))
	for _, scale := range s.Scales {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(scale))
	}
	return append(out, bytesOf(s.Values)...)
}

// decodeStates unpacks states of dim values. The values are blob's own bytes.
func decodeStates(blob []byte, dim int) (ingest.States, error) {
	if dim < 1 || len(blob)%(4+dim) != 0 {
		return ingest.States{}, fmt.Errorf("token states of %d bytes are not whole ones of %d values", len(blob), dim)
	}
	n := len(blob) / (4 + dim)
	s := ingest.States{Scales: make([]float32, n), Values: int8sOf(blob[4*n:])}
	for i := range s.Scales {
		s.Scales[i] = math.Float32frombits(binary.LittleEndian.Uint32(blob[4*i:]))
	}
	return s, nil
}

// int8sOf and bytesOf read the same memory as the other type: a pool of candidates
// is some megabytes, which a copy value by value would take a millisecond for.
func int8sOf(b []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

func bytesOf(v []int8) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// validateStates refuses states that are not a scale and dim values for each token, or
// too many.
func validateStates(s *ingest.States, dim int) error {
	switch n := s.Tokens(); {
	case s == nil:
		return nil
	case len(s.Values) != n*dim:
		return fmt.Errorf("%d token states of %d values", n, len(s.Values))
	case n > ingest.MaxStates(dim):
		return fmt.Errorf("%d token states, at most %d are kept", n, ingest.MaxStates(dim))
	}
	return nil
}

// TokenStates returns the token states that chunks have of a model, dim values each, in one
// round trip. A chunk whose states were not kept is left out.
func (s *Store) TokenStates(ctx context.Context, model string, dim int, chunks []int64) (map[int64]ingest.States, error) {
	out := make(map[int64]ingest.States, len(chunks))
	rows, err := s.pool.Query(ctx, `
		SELECT s.chunk_id, s.states FROM ragd.token_states s JOIN ragd.models m ON m.id = s.model_id
		WHERE m.name = $1 AND s.chunk_id = ANY ($2)`, model, chunks)
	if err == nil {
		var id int64
		var blob []byte
		_, err = pgx.ForEachRow(rows, []any{&id, &blob}, func() (err error) {
			out[id], err = decodeStates(blob, dim)
			blob = nil
			return err
		})
	}
	if IsConnectionError(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("load token states: %w", err)
	}
	return out, nil
}

// copyStates loads token states with COPY.
func copyStates(ctx context.Context, tx pgx.Tx, collection int64, model int32, list []vectorRow) error {
	var rows [][]any
	for _, r := range list {
		if r.states != nil {
			rows = append(rows, []any{r.chunk, model, collection, encodeStates(r.states)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"ragd", "token_states"},
		[]string{"chunk_id", "model_id", "collection_id", "states"}, pgx.CopyFromRows(rows))
	return err
}
