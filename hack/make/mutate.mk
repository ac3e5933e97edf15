##@ Check

.PHONY: mutate
mutate: prerequisites ## Break the chain's rules, in Go and in the CRD, one place at a time; a test must fail each time (long)
	go run ./hack/mutate
	PARITY_MUTANT_STEP=1 go test ./test/parity -short -count=1 -timeout 60m -run TestEveryChangeOfARuleIsNoticed -v
