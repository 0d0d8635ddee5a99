# What must pass, and what is run by hand. `make` alone checks everything that needs no network once the tools are built.
LINT     := go tool -modfile=.ci/tools.mod golangci-lint
FUZZTIME ?= 30000x
CHECKS   ?= 1000
SUITE    ?=
SOAK     ?= 10m

.PHONY: check fmt fmt-check vet lint test race arch fuzz explore attack bench soak mutate golden cover generate gallery conformance demo clean

check: fmt-check vet lint test

fmt:         ; $(LINT) fmt
fmt-check:   ; $(LINT) fmt --diff
vet:         ; go vet ./...
lint:        ; $(LINT) run
test:        ; go test ./...
race:        ; .ci/race
arch:        ; .ci/arch
fuzz:        ; FUZZTIME=$(FUZZTIME) .ci/fuzz
explore:     ; RAPID_CHECKS=$(CHECKS) go test -count=1 -timeout 4h $$(grep -rl --include='*_test.go' pgregory.net/rapid . | xargs -n1 dirname | sort -u)
attack:      ; SAJOU_ATTACK=long go test -count=1 -timeout 2h -run "^TestAttack" ./...
mutate:      ; go run ./internal/mutate
bench:       ; go run ./internal/bench
soak:        ; go run ./internal/soak -for $(SOAK)
# Without TestAPI: the list of the API is rewritten on purpose only, see docs/compatibility.md.
golden:      ; go test -skip '^TestAPI$$' . ./docs ./internal/layers ./adapter/prometheus ./choreography ./director ./director/episode ./stage ./stage/scene ./stage/picture ./director/episode/graph ./internal/simulate ./cmd/sajou-replay -update
cover:       ; go test -coverpkg=./... -coverprofile=cover.out ./... && go tool cover -func=cover.out | tail -n 1
generate:    ; go generate ./...
gallery:     ; docs/gallery.sh
conformance: ; SAJOU_CONFORMANCE=$(SUITE) go test -v -count=1 ./internal/conformance
demo:        ; go run ./cmd/sajou-replay demo
clean:       ; rm -rf sajou-data cover.out *.test *.prof
