package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/internal/app"
	"ragd/internal/config"
)

// kvReport is what `ragd kv --json` prints. Sizes are bytes.
type kvReport struct {
	Model         string `json:"model"`
	CacheType     string `json:"kv_cache_type"`
	BytesPerToken int64  `json:"bytes_per_token"`
	Tokens        int    `json:"tokens"`
	Batch         int    `json:"batch"`
	Bytes         int64  `json:"bytes"`
	// Places are where the layers would lie with that cache, where a GPU computes.
	Places []kvPlace `json:"places,omitempty"`
	// DoesNotFit says what is missing there.
	DoesNotFit string `json:"does_not_fit,omitempty"`
}

// kvPlace is a run of layers; sizes are bytes.
type kvPlace struct {
	Backend string `json:"backend"`
	First   int    `json:"first_layer"`
	Last    int    `json:"last_layer"`
	Weights int64  `json:"weights"`
	Cache   int64  `json:"kv_cache"`
}

func newKV(o *options) *cobra.Command {
	var name string
	var tokens, batch int
	cmd := &cobra.Command{
		Use: "kv", Short: "Say how much memory a model's KV cache takes", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokens < 1 || batch < 1 || int64(tokens) > (1<<40)/int64(batch) {
				return &usageError{fmt.Errorf("kv: --tokens and --batch must be at least 1, and their product at most 2^40")}
			}
			cfg, err := o.config()
			if err != nil {
				return err
			}
			if name == "" {
				name = cfg.Models.Answer
			}
			show := newDownloads(cmd.ErrOrStderr())
			path, err := app.ModelPath(cmd.Context(), cfg, name, show.progress)
			show.end()
			if err != nil {
				return err
			}
			r, err := kvMemory(name, path, cfg, tokens, batch)
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			r.print(cmd.OutOrStdout())
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "model", "", "model name or GGUF file (default the configured answer model)")
	f.IntVar(&tokens, "tokens", 4096, "tokens of one sequence")
	f.IntVar(&batch, "batch", 1, "sequences at the same time")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (r kvReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s a token in %s; %d tokens × %d: %s\n", r.Model, size(r.BytesPerToken), r.CacheType, r.Tokens, r.Batch, size(r.Bytes))
	for _, p := range r.Places {
		fmt.Fprintf(w, "  layers %d to %d on %s: %s of weights, %s of KV cache\n", p.First, p.Last, p.Backend, size(p.Weights), size(p.Cache))
	}
	if len(r.Places) > 1 {
		fmt.Fprintf(w, "  the CPU reads its weights, %s, once a step\n", size(r.Places[0].Weights))
	}
	if r.DoesNotFit != "" {
		fmt.Fprintln(w, "  "+r.DoesNotFit)
	}
}

// kvMemory reads the model's shape and applies the formula
// layers × kv_heads × head_dim × 2 × bytes a token, for the cache that the settings say.
func kvMemory(name, path string, cfg config.Config, tokens, batch int) (kvReport, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return kvReport{}, err
	}
	defer f.Close()
	c, err := model.ReadConfig(f)
	if err != nil {
		return kvReport{}, fmt.Errorf("%s: %w", path, err)
	}
	i := &cfg.Inference
	perToken := int64(c.KVBytesPerToken(app.CacheType(*i).ValueBytes()))
	r := kvReport{
		Model: name, CacheType: i.KVCacheType, BytesPerToken: perToken,
		Tokens: tokens, Batch: batch, Bytes: perToken * int64(tokens) * int64(batch),
	}
	i.KVCacheTokens = tokens * batch
	places, err := app.Layers(f, cfg)
	for _, p := range places {
		r.Places = append(r.Places, kvPlace{p.Backend, p.First, p.Last(), p.Weights, p.Cache})
	}
	var room *model.RoomError
	if errors.As(err, &room) {
		r.DoesNotFit, err = err.Error(), nil
	}
	return r, err
}
