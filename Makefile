# Every step of CI is a target here. `make help` lists them.
GO      ?= go
BIN     := bin/ragd
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)

# Packages whose tests run real models for minutes; the race detector would make
# that hours. Everything else runs under it.
SLOW := ragd/inference/model ragd/inference/encode

.PHONY: help build setup demo test lint vet race slow test-gemma soak test-arm64 g++ cuda-tools build-cuda generate-cuda check-cuda test-cuda test-gemma-cuda generate bench bench-engine bench-retrieval compare clean dashboards check-dashboards check-rules check-page check-attribution check-collector bench-telemetry

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

build: ## write bin/ragd
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/ragd

setup: build ## fetch the private PostgreSQL and the starter models
	$(BIN) pull starter

demo: setup ## ingest examples/corpus, ask three questions, serve
	./examples/demo.sh $(BIN)

# The simulated device is written for x86-64.
test: lint setup race slow $(if $(filter x86_64,$(shell uname -m)),test-cuda) ## what CI runs

lint: vet ## gofumpt, staticcheck, go vet
	@out=$$($(GO) run mvdan.cc/gofumpt@v0.12.0 -l .); test -z "$$out" || { echo "gofumpt would change:"; echo "$$out"; exit 1; }
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

vet:
	$(GO) vet ./...
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./inference/...

race: ## all tests but the slow model tests, under the race detector
	$(GO) test -race -timeout 20m $$($(GO) list ./... | grep -vxF $(addprefix -e ,$(SLOW)))

slow: ## tests that run real models for long
	$(GO) test -timeout 20m $(SLOW)

test-gemma: ## tests on Gemma 3 270M; fetches it, which accepts Gemma's terms
	$(GO) test -tags gemma -run Gemma ./inference/...

# The two below are no part of `make test` either: one needs minutes, the other Debian's
# qemu-user-static.
soak: ## 10,000 requests to the engine; fails when memory grows with them
	$(GO) test -tags soak -count=1 -timeout 30m -run '^TestSoak$$' -v ./inference/engine

# What of the engine is portable: kernels, block formats, and whole forward passes of
# tiny models against their references.
ARM64 := CGO_ENABLED=0 GOARCH=arm64 $(GO) test -count=1 -timeout 60m -exec qemu-aarch64-static
test-arm64: ## tests of the portable kernels on 64-bit Arm, under qemu
	command -v qemu-aarch64-static >/dev/null || apt-get install -y --no-install-recommends qemu-user-static
	$(ARM64) -skip 'Generated|AssemblyIsVEX' ./inference/cpu/kernel ./inference/quant ./inference/gguf
	$(ARM64) -run 'FamiliesAgainstReference|BERTAgainstReference|LogitsDependOnTheSequence' ./inference/model

# The device backend (build tag cuda). The compiler and headers are fetched once; the
# tests run on a simulated driver, so none of it needs a GPU.
CUDA      := $(CURDIR)/.cache/cuda
CUDADIR   := inference/cuda
CUDATOOLS := $(CUDADIR)/tools
CUDAENV   := CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -I$(CUDA)/nvidia/cuda_runtime/include" CGO_LDFLAGS="-O2 -g -Wl,--as-needed"

cuda-tools:
	@$(CUDATOOLS)/fetch.sh $(CUDA)

build-cuda: cuda-tools ## write bin/ragd with the device backend
	$(CUDAENV) $(GO) build -tags cuda -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/ragd

generate-cuda: cuda-tools ## rewrite the device code and the driver's trampolines
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/kernels.cu $(CUDADIR)/kernel/kernels.ptx -ptx compute_70
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/tensor.cu $(CUDADIR)/kernel/tensor.ptx -ptx compute_80
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/half.cu $(CUDADIR)/kernel/half.ptx -ptx compute_80
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/attend_tensor.cu $(CUDADIR)/kernel/attend_tensor.ptx -ptx compute_80
	$(CUDATOOLS)/resources.sh $(CUDA) sm_70 sm_80 sm_90 >$(CUDADIR)/kernel/resources.txt
	$(GO) run ./$(CUDATOOLS)/genshim $(CUDA)/nvidia/cuda_runtime/include >$(CUDADIR)/cudrv/shim_gen.c

check-cuda: cuda-tools # the committed device code is what the sources compile to
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/kernels.cu $(CUDA)/kernels.ptx -ptx compute_70
	cmp $(CUDA)/kernels.ptx $(CUDADIR)/kernel/kernels.ptx
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/tensor.cu $(CUDA)/tensor.ptx -ptx compute_80
	cmp $(CUDA)/tensor.ptx $(CUDADIR)/kernel/tensor.ptx
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/half.cu $(CUDA)/half.ptx -ptx compute_80
	cmp $(CUDA)/half.ptx $(CUDADIR)/kernel/half.ptx
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/kernel/attend_tensor.cu $(CUDA)/attend_tensor.ptx -ptx compute_80
	cmp $(CUDA)/attend_tensor.ptx $(CUDADIR)/kernel/attend_tensor.ptx
	$(CUDATOOLS)/resources.sh $(CUDA) sm_70 sm_80 sm_90 >$(CUDA)/resources.txt
	diff $(CUDADIR)/kernel/resources.txt $(CUDA)/resources.txt
	$(GO) run ./$(CUDATOOLS)/genshim $(CUDA)/nvidia/cuda_runtime/include >$(CUDA)/shim_gen.c
	cmp $(CUDA)/shim_gen.c $(CUDADIR)/cudrv/shim_gen.c

# The simulated driver is C++. gcc alone has no compiler for it.
g++:
	@command -v g++ >/dev/null || $(CUDATOOLS)/install.sh g++

# All of it runs under the race detector: most of the time goes into the simulated device,
# which is C++ and no slower for it.
test-cuda: g++ check-cuda ## tests of the device backend, on a simulated driver, under the race detector
	$(CUDATOOLS)/simdriver.sh $(CUDA)
	$(CUDATOOLS)/nvrtc.sh $(CUDA) $(CUDADIR)/simdriver/testdata/misuse.cu $(CUDA)/misuse.ptx -ptx compute_70
	$(CUDAENV) $(GO) vet -tags cuda ./$(CUDADIR)/... ./internal/app ./cmd/ragd
	$(CUDAENV) RAGD_CUDA_DRIVER=$(CUDA)/libcuda.so.1 $(GO) test -race -tags cuda -count=1 -timeout 30m ./$(CUDADIR)/...
	$(CUDAENV) RAGD_CUDA_DRIVER=$(CUDA)/libcuda.so.1 $(GO) test -race -tags cuda -count=1 -timeout 30m -run Device ./internal/app

test-gemma-cuda: g++ cuda-tools ## Gemma 3 270M on the simulated device; fetches it, which accepts Gemma's terms
	$(CUDATOOLS)/simdriver.sh $(CUDA)
	$(CUDAENV) RAGD_CUDA_DRIVER=$(CUDA)/libcuda.so.1 $(GO) test -tags cuda,gemma -count=1 -timeout 30m -v -run Gemma ./$(CUDADIR)

generate: ## rewrite the generated assembly
	$(GO) generate ./inference/cpu/kernel

bench: ## speed of kernels, models and tokenizers on this machine
	$(GO) test -run '^$$' -bench . -benchtime 1s ./inference/...

bench-engine: build ## speed of the engine, its caches and prompt lookup: docs/PERFORMANCE.md
	$(BIN) bench engine

compare: build ## in turn with llama.cpp: make compare LLAMA_BENCH=path [PEER_MODEL=file]
	@test -n "$(LLAMA_BENCH)" || { echo "usage: make compare LLAMA_BENCH=path of llama-bench [PEER_MODEL=file] (docs/PERFORMANCE.md)"; exit 2; }
	$(BIN) bench engine --against $(LLAMA_BENCH) $(if $(PEER_MODEL),--peer-model $(PEER_MODEL)) --svg bin/compare.svg

dashboards: ## write the Grafana dashboard from its Go source
	cd deploy/dashboards && $(GO) run . > ../grafana/dashboards/ragd.json

# The three below are no part of `make test`: they need Grafana's SDK, Debian's
# prometheus and Debian's chromium.
check-dashboards: ## the committed dashboard is current and fits Grafana's schema
	cd deploy/dashboards && $(GO) vet ./... && $(GO) test ./...

check-rules: ## promtool over the rules, every alert's test and the dashboard's queries
	command -v promtool >/dev/null || apt-get install -y --no-install-recommends prometheus
	promtool check config --syntax-only deploy/prometheus/prometheus.yml
	promtool check rules deploy/prometheus/rules/*.yml
	promtool test rules deploy/prometheus/tests/*.yml
	f=$$(mktemp) && trap 'rm -f "$$f"' EXIT && (cd deploy/dashboards && $(GO) run . -rules) > "$$f" && promtool check rules "$$f"

check-attribution: ## delays put into the running service show in their stage; wants a quiet machine
	$(GO) vet -tags timing ./internal/app
	$(GO) test -tags timing -count 1 -v -run DelaysAreCharged ./internal/app

# About 25 minutes of processor time the first time, 2.2 GB of memory, 7 GB of caches;
# what is built stays in .cache/collector.
check-collector: build ## ragd with a real collector, Jaeger and Prometheus: traces, queries, alerts, exemplars
	command -v prometheus >/dev/null || apt-get install -y --no-install-recommends prometheus
	deploy/collector/build.sh .cache/collector
	$(GO) vet -tags collector ./deploy
	$(GO) test -tags collector -count 1 -v -run Stack ./deploy

bench-telemetry: ## what all telemetry costs a search, with it on and off in turn
	$(GO) test -tags timing -run '^$$' -bench Telemetry -benchtime 1x ./internal/app

check-page: ## the latency page in headless Chromium; pictures in _artifacts
	command -v chromium >/dev/null || apt-get install -y --no-install-recommends chromium
	$(GO) vet -tags browser ./internal/webui
	$(GO) test -tags browser -count 1 -artifacts -outputdir $(CURDIR) ./internal/webui

SIZES ?= 10000,100000

bench-retrieval: build ## time the searches as a corpus grows: make bench-retrieval SET=folder of a judged set [SIZES=10000,100000,1000000]
	@test -n "$(SET)" || { echo "usage: make bench-retrieval SET=folder of a judged set [SIZES=numbers of chunks] (docs/RETRIEVAL.md)"; exit 2; }
	$(BIN) eval $(SET) --grow $(SIZES)

clean: ## remove what build made
	rm -rf bin _artifacts
