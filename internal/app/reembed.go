package app

import (
	"context"
	"strings"

	"ragd/ingest"
	"ragd/internal/answer"
)

// evalPrefix begins the names of the collections that `ragd eval` makes.
const evalPrefix = "eval/"

// Reembed gives collections vectors of the configured embedding model; without
// names, all but those of `ragd eval`. It stops at the first error, with the reports
// so far. A collection with chunks that cannot be encoded keeps its model, and its
// report names their documents.
func (a *App) Reembed(ctx context.Context, collections []string, progress func(ingest.RevisionProgress)) ([]ingest.RevisionReport, error) {
	if len(collections) == 0 {
		list, err := a.library(ctx).Collections(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if !strings.HasPrefix(c.Name, evalPrefix) {
				collections = append(collections, c.Name)
			}
		}
	}
	reports := []ingest.RevisionReport{}
	for _, name := range collections {
		report, err := a.reembed(ctx, name, progress)
		if report.To != "" {
			reports = append(reports, report)
		}
		if err != nil {
			return reports, err
		}
	}
	return reports, nil
}

func (a *App) reembed(ctx context.Context, collection string, progress func(ingest.RevisionProgress)) (ingest.RevisionReport, error) {
	r, err := a.library(ctx).Reembed(ctx, collection, a.embed.Model(), a.embed.Dim(), a.keepsStates())
	if err != nil {
		return ingest.RevisionReport{}, err
	}
	defer r.Close()
	cfg := ingest.DefaultConfig(collection)
	cfg.Sentences = ingest.SentenceMode(a.cfg.Ingest.Sentences)
	cfg.States = a.keepsStates()
	return ingest.NewReembedder(a.embed, cfg, progress).
		Run(ctx, r, ingest.RevisionReport{Collection: collection, From: r.From(), To: a.embed.Model()})
}

// checkModel refuses to write into a collection of another embedding model.
func (a *App) checkModel(ctx context.Context, collection string) error {
	have, err := a.library(ctx).Model(ctx, collection)
	if err != nil || have == "" || have == a.embed.Model() {
		return err
	}
	return answer.AsError(&ingest.ModelError{Collection: collection, Have: have, Want: a.embed.Model()})
}
