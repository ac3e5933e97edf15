##@ Measure

.PHONY: bench-fence
bench-fence: prerequisites ## Measure calls through the fence against a plain proxy and the database alone (5 min); BENCH="-open 10 -only PostgreSQL" for less
	@go run ./hack/benchfence -through $(BENCH)
