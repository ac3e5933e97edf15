##@ Measure

# The control plane is built first, since it is no part of what is measured.
.PHONY: bench-admission
bench-admission: prerequisites controlplane-build ## Measure what the webhook and the CRD's rules cost a create; BENCH="-creates 600" for less
	@mkdir -p bin && go build -o bin/bench-admission ./test/bench/admission
	@exec bin/bench-admission $(BENCH)

.PHONY: bench-rollout
bench-rollout: prerequisites controlplane-build ## Measure the manager against a bare client (15 min); BENCH="-objects 100 -settled 1m -growth 500" for less
	@mkdir -p bin && go build -o bin/bench-rollout ./test/bench/rollout
	@exec bin/bench-rollout $(BENCH)

.PHONY: bench-fence-store
bench-fence-store: prerequisites ## Measure the fence's stores against pgbench and sysbench running the same statements
	@go run ./hack/benchfence
