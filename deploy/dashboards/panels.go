package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// source is the data source that deploy/grafana/provisioning sets up. Without a
// type the SDK would not check the targets of a panel.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("prometheus")}

// query is one line of a panel.
type query struct {
	expr, legend string
	exemplars    bool
}

func target(i int, q query) *prometheus.DataqueryBuilder {
	b := prometheus.NewDataqueryBuilder().
		Datasource(source).RefId(string(rune('A' + i))).Expr(q.expr).LegendFormat(q.legend).Range()
	if q.exemplars {
		b.Exemplar(true)
	}
	return b
}

// lines is a panel of lines, half of the page wide.
func lines(title, what, unit string, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Title(title).Description(what).Unit(unit).Datasource(source).Span(12).Height(8).
		Min(0).LineWidth(1.5).FillOpacity(6).ShowPoints(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti)).
		Legend(common.NewVizLegendOptionsBuilder().
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true))
	for i, q := range queries {
		p.WithTarget(target(i, q))
	}
	return p
}

// stacked is lines on top of each other.
func stacked(title, what, unit string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, what, unit, queries...).
		FillOpacity(70).LineWidth(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// stageColors are those of the page /debug/latency.
var stageColors = []struct{ stage, color string }{
	{"retrieval", "#2f6db3"},
	{"rerank", "#76abd9"},
	{"pack", "#8c98a4"},
	{"render", "#bcc5cd"},
	{"queue", "#dfa63c"},
	{"prefill", "#cb5a43"},
	{"decode", "#3f936e"},
	{"other", "#9d9b94"},
}

func byStage(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	for _, c := range stageColors {
		p.OverrideByName(c.stage, []dashboard.DynamicConfigValue{
			{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": c.color}},
		})
	}
	return p
}

// heat is a heat map over the buckets of a histogram.
func heat(title, what, histogram string) *heatmap.PanelBuilder {
	expr := fmt.Sprintf("sum by (le) (increase(%s_bucket[$__rate_interval]))", histogram)
	return heatmap.NewPanelBuilder().
		Title(title).Description(what).Datasource(source).Span(12).Height(8).
		WithTarget(target(0, query{expr, "{{le}}", true}).Format(prometheus.PromQueryFormatHeatmap))
}

// percentiles are three quantiles of a histogram; selector may be empty.
func percentiles(histogram, selector string) []query {
	out := make([]query, 0, 3)
	for _, q := range []struct{ value, name string }{{"0.50", "p50"}, {"0.95", "p95"}, {"0.99", "p99"}} {
		expr := fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket%s[$__rate_interval])))", q.value, histogram, selector)
		out = append(out, query{expr, q.name, q.name == "p95"})
	}
	return out
}
