#!/bin/sh
# build.sh DIR: builds the OpenTelemetry Collector of builder.yaml and Jaeger from
# their Go modules into DIR/bin, one package at a time and at low priority: about 25
# minutes of processor time the first time, 2.2 GB of memory at the most.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/bin"
dir=$(cd "$1" && pwd)
export GOFLAGS="-p=${JOBS:-1} -buildvcs=false"

collector=v0.161.0
jaeger=v1.76.0 # the module of Jaeger 2.13.0

if [ ! -x "$dir/bin/otelcol-$collector" ]; then
	cp "$here/builder.yaml" "$dir/builder.yaml"
	(cd "$dir" && nice -n 10 go run "go.opentelemetry.io/collector/cmd/builder@$collector" --config builder.yaml)
	mv "$dir/build/otelcol" "$dir/bin/otelcol-$collector"
fi
if [ ! -x "$dir/bin/jaeger-$jaeger" ]; then
	# Its go.mod has replacements, so it is built in its own folder. The page that it
	# would serve is not in the module; its API is.
	source=$(go mod download -json "github.com/jaegertracing/jaeger@$jaeger" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
	(cd "$source" && nice -n 10 go build -trimpath -o "$dir/bin/jaeger-$jaeger" ./cmd/jaeger)
fi
ln -sf "otelcol-$collector" "$dir/bin/otelcol"
ln -sf "jaeger-$jaeger" "$dir/bin/jaeger"
