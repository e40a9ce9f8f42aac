# A tool is built from a module of its own, tools/NAME.mod with its exact versions, which keeps go.mod the program's own.
# To move one on: go get -modfile=tools/NAME.mod -tool PACKAGE@VERSION
TOOLS      := minio versitygw golangci-lint helm vale
TEST_TOOLS := minio versitygw helm

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

TORTURE = 1h

.PHONY: build help quick test tools packages bench torture

build: ## build ./babelftp
	go build -trimpath -ldflags '-X main.version=$(VERSION)' -o babelftp ./cmd/babelftp

help: ## list the targets
	@sed -n 's/^\([a-z][a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

quick: ## run the tests that need nothing but Go: embedded S3 only, no race detector (one package: go test -short ./driver)
	go test -short ./...

test: packages $(TEST_TOOLS:%=.tools/bin/%) ## install and build what the tests need, and run all tests
	go test -race -timeout 20m ./...
	go test -timeout 20m -run '^(TestConformanceSimulated|TestHistories)$$' ./driver

torture: ## run random histories of sessions and replicas on a simulated S3 for an hour; TORTURE=8h for longer
	go test -v -timeout 0 -run TestHistories ./driver -histories.time $(TORTURE) -histories.seed $$(date +%s) -histories.all

bench: .tools/bin/minio ## measure babelftp and its S3 server (docs/benchmarks.md); BENCH='-short -only slow' for a part
	go run ./bench $(BENCH)

tools: $(TOOLS:%=.tools/bin/%) ## build the tools of tests and checks into .tools/bin

.tools/bin/%: tools/%.mod tools/%.sum
	go build -modfile=$< -ldflags '-s -w' -o $@ tool

# The race detector needs a C compiler. Perl's Net::FTP needs a module for TLS, which no command shows.
packages: ## install the Debian packages that the tests need
	@tools/debian-packages.sh curl=curl lftp=lftp rclone=rclone python3=python3 ruby=ruby perl:IO::Socket::SSL=perl,libio-socket-ssl-perl cc=gcc,libc6-dev
