package app

import (
	"context"
	"path/filepath"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/ingest/source"
	"ragd/ingest/store"
	"ragd/internal/httpapi"
	"ragd/internal/tenant"
	"ragd/retrieve/lexical"
	"ragd/telemetry"
)

// library is the documents of whoever asks.
func (a *App) library(ctx context.Context) *store.Store {
	return store.New(a.pool, tenant.Of(ctx), lexical.Analyzer{})
}

// Documents implements httpapi.Library.
func (a *App) Documents(ctx context.Context, collection string) ([]store.DocumentInfo, error) {
	return a.library(ctx).Documents(ctx, collection)
}

// Collections implements httpapi.Library.
func (a *App) Collections(ctx context.Context) ([]store.CollectionInfo, error) {
	return a.library(ctx).Collections(ctx)
}

// Delete implements httpapi.Library.
func (a *App) Delete(ctx context.Context, collection string, paths []string) (int, error) {
	return a.library(ctx).Delete(ctx, collection, paths)
}

// Ingest reads paths of this machine into a collection.
func (a *App) Ingest(ctx context.Context, req httpapi.IngestRequest, progress func(ingest.Progress)) (report ingest.Report, err error) {
	run := a.tel.BeginIngest()
	defer func() {
		run.End(context.WithoutCancel(ctx), telemetry.IngestOutcome{
			Indexed: report.Indexed, Unchanged: report.Unchanged, Skipped: report.Skipped, Failed: report.Failed, Pruned: report.Pruned,
		})
	}()
	p, err := a.pipeline(ctx, req, func(p ingest.Progress) {
		run.Progress(ctx, telemetry.IngestProgress{Settled: p.Documents, Found: p.Total, Bytes: p.Bytes, Chunks: p.Chunks, Tokens: p.Tokens})
		if progress != nil {
			progress(p)
		}
	})
	if err != nil {
		return ingest.Report{}, err
	}
	roots := make([]string, len(req.Paths))
	for i, path := range req.Paths {
		if roots[i], err = filepath.Abs(path); err != nil {
			return ingest.Report{}, err
		}
	}
	return p.Run(ctx, roots)
}

// openSource prepares the reading of files. The sandbox for PDF files is compiled
// when the first one comes and kept in the data folder.
func (a *App) openSource() error {
	sc := source.DefaultConfig()
	sc.MaxBytes = a.cfg.Ingest.MaxFileBytes
	sc.PDF.CacheDir = filepath.Join(a.home, "cache", "pdfium")
	src, err := source.New(sc)
	if err != nil {
		return err
	}
	a.source = src
	a.onClose(closing(src))
	return nil
}

func (a *App) pipeline(ctx context.Context, req httpapi.IngestRequest, progress func(ingest.Progress)) (*ingest.Pipeline, error) {
	cutter, err := chunk.New(a.embed, chunk.Config{
		Target: min(a.cfg.Ingest.ChunkTokens, a.embed.MaxTokens()), Max: a.embed.MaxTokens(), Overlap: a.cfg.Ingest.OverlapTokens,
	})
	if err != nil {
		return nil, err
	}
	collection := req.Collection
	if collection == "" {
		collection = "default"
	}
	if err := a.checkModel(ctx, collection); err != nil {
		return nil, err
	}
	cfg := ingest.DefaultConfig(collection)
	cfg.Prune = req.Prune
	cfg.Sentences = ingest.SentenceMode(a.cfg.Ingest.Sentences)
	cfg.States = a.keepsStates()
	cfg.ParseTimeout = a.cfg.Ingest.ParseTimeout
	return ingest.New(a.source, cutter, a.embed, a.library(ctx), cfg, progress)
}
