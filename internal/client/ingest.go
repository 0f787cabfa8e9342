package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ragd/ingest"
)

// The server is told to stop within stopRequest, and has stopWait to report.
const (
	stopRequest = 5 * time.Second
	stopWait    = 30 * time.Second
)

// ErrNoReport says that the server went away in the middle of an ingest, so that
// nobody knows how far it came.
var ErrNoReport = errors.New("the server ended without a report; documents stored until then stay, and the same command goes on from there")

// ingestLine is one line of the server's answer.
type ingestLine struct {
	ID       string
	Progress *ingest.Progress
	Report   *ingest.Report
	Error    *errorDetail
}

// Ingest has the server read paths of its own machine. When ctx ends, the server
// is asked to stop, and its report of what was done until then is returned.
func (c *Client) Ingest(ctx context.Context, paths []string, collection string, prune bool, progress func(ingest.Progress)) (ingest.Report, error) {
	reading, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	cutEarly := context.AfterFunc(ctx, cut)
	resp, err := c.do(reading, http.MethodPost, "/v1/ingest", map[string]any{"paths": paths, "collection": collection, "prune": prune})
	if err != nil {
		return ingest.Report{}, errors.Join(ctx.Err(), err)
	}
	defer resp.Body.Close()
	last := ingest.Progress{}
	lines := scanner(resp.Body)
	for lines.Scan() {
		var line ingestLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return ingest.Report{}, fmt.Errorf("ingest: answer of the server: %w", err)
		}
		switch {
		case line.ID != "" && cutEarly():
			defer context.AfterFunc(ctx, func() { c.stopIngest(reading, line.ID, cut) })()
		case line.Progress != nil:
			last = *line.Progress
			if progress != nil {
				progress(last)
			}
		case line.Report != nil && line.Error != nil:
			return *line.Report, line.Error.err()
		case line.Report != nil:
			return *line.Report, nil
		}
	}
	return ingest.Report{}, fmt.Errorf("ingest: %d of %d documents were done: %w", last.Documents, last.Total, errors.Join(ErrNoReport, lines.Err()))
}

// stopIngest asks the server to stop; cut gives up on its report.
func (c *Client) stopIngest(ctx context.Context, id string, cut func()) {
	asking, cancel := context.WithTimeout(ctx, stopRequest)
	defer cancel()
	resp, err := c.do(asking, http.MethodDelete, "/v1/ingest/"+id, nil)
	if err != nil {
		cut()
		return
	}
	resp.Body.Close()
	time.AfterFunc(stopWait, cut)
}
