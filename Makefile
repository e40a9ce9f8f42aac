# A tool is built from a module of its own, tools/NAME.mod with its exact versions, which keeps go.mod the program's own.
# To move one on: go get -modfile=tools/NAME.mod -tool PACKAGE@VERSION
# Helm releases that the chart's tests run, the newest one last. Those of make test are the default of deploy/release_test.go too. Some contain another
# validator of values.schema.json, and all contain other libraries of Kubernetes and YAML.
TEST_HELMS := 3.18.6 4.3.1
HELMS      := 3.18.6 3.21.4 3.22.0 4.2.4 4.3.1
HELM       := helm-$(lastword $(HELMS))

TOOLS      := minio versitygw pebble golangci-lint vale govulncheck compose-go $(TEST_HELMS:%=helm-%)
TEST_TOOLS := minio versitygw pebble compose-go $(TEST_HELMS:%=helm-%)

# Without cgo and the paths of this machine everything is compiled once, for all clones, as the program that people deploy is.
GO_TEST = CGO_ENABLED=0 GOFLAGS=-trimpath go test $(TESTFLAGS) -timeout $(PATIENCE) -parallel 4
# How long the tests of a package may take on a machine that is busy with something else.
PATIENCE = 30m
# These packages start first, because their tests take the longest and often wait.
SLOWEST := ./driver ./internal/server ./internal/acceptance ./deploy ./internal/dialects

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

FUZZTIME = 5m
TORTURE  = 1h
JUDGED   = 10m
ROUNDS   = 50

# Flags of go test for make test, such as -json.
TESTFLAGS =

# The tag of a release without its v, such as 1.2.3.
RELEASE = $(patsubst v%,%,$(shell git describe --tags --exact-match 2>/dev/null))
RELEASE_TOOLS := goreleaser cyclonedx-gomod $(HELM)

.PHONY: build help quick test race s3-servers cloud s3-packages clients client-packages manifests kube fuzz torture bench test-tools tools packages vulnerabilities release-check .goreleaser-check release-snapshot release

build: ## build ./babelftp
	go build -trimpath -ldflags '-X main.version=$(VERSION)' -o babelftp ./cmd/babelftp

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

# The heaps of these tests are so small that a fifth of their time would be garbage collection.
quick: ## run the tests that need nothing but Go: a simulated S3 only, no race detector (one package: go test -short ./driver)
	GOGC=400 $(GO_TEST) -short -p 2 $(SLOWEST) ./...

test: packages s3-packages test-tools ## install and build what the tests need, and run all tests
	$(GO_TEST) -p 2 $(SLOWEST) ./...

# The suite of the driver runs on MinIO and versitygw, which are processes of their own and so are not slowed down. Simulators are part of the test.
race: packages test-tools ## run all tests, and the program that they start, with the race detector
	CGO_ENABLED=1 go test $(TESTFLAGS) -race -timeout 60m -skip '^TestConformance$$/^sim-|Packaged$$' ./...

# All of the suite takes Ceph nine minutes and Swift twenty, and Ceph 3 GiB of memory. When it has passed, docs/s3-servers.md gets the versions, the month
# and the number of cases.
s3-servers: s3-packages ## run the whole suite of the driver on Ceph and OpenStack Swift
	go test $(TESTFLAGS) -v -count 1 -timeout 60m -parallel 4 -run '^TestConformancePackaged$$' ./driver -packaged.all

cloud: ## run the suite of the driver on any S3 server that the variables CLOUD_ENDPOINT, CLOUD_BUCKET, CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY name
	@tools/cloud.sh

# go test does not see that files outside of a module have changed, so none of its results are kept. Most of the time is that of the compiler, so it does
# not optimize.
manifests: $(HELMS:%=.tools/bin/helm-%) ## run the chart's tests with a range of Helm releases, and check pods, alerts and the objects of operators (the first build takes five minutes)
	$(GO_TEST) -count 1 -skip '^Test(Binary|Compose|Image|Quickstart|ServiceObtains|Systemd)' ./deploy -helm '$(HELMS)'
	cd deploy/kubetest && go mod tidy -diff && go test -vet all -gcflags='all=-N -l' -timeout $(PATIENCE) -count 1 $(TESTFLAGS) ./... -helm $(lastword $(HELMS))

kube: $(TEST_HELMS:%=.tools/bin/helm-%) .tools/bin/kube-apiserver .tools/bin/minio ## install the chart on an API server of Kubernetes, serve custom resources, and make the load balancer of AWS (the first build takes ten minutes)
	tools/debian-packages.sh etcd=etcd-server
	go test -tags kube -timeout $(PATIENCE) -count 1 -run '^TestKube' ./deploy
	cd deploy/nlbtest && go mod tidy -diff && go vet ./... && go test -timeout $(PATIENCE) -count 1 ./...

s3-packages: ## install the Debian packages of Ceph and OpenStack Swift
	@tools/debian-packages.sh radosgw=radosgw ceph-mon=ceph-mon ceph-osd=ceph-osd ceph-mgr=ceph-mgr ceph-authtool=ceph-common \
	  swift-proxy-server=swift-proxy swift-account-server=swift-account swift-container-server=swift-container \
	  swift-object-server=swift-object memcached=memcached

fuzz: ## run each fuzz target for five minutes; FUZZTIME=10s for less
	tools/fuzz.sh $(FUZZTIME)

clients: packages client-packages .tools/bin/minio .tools/bin/versitygw .tools/clients/node_modules ## install all FTP clients of internal/acceptance, let each do all tasks, and run the tests of other projects; UPDATE=-update writes the tables
	go test -count 1 -timeout 60m -parallel 8 -run '^TestClients' ./internal/acceptance -clients.all $(UPDATE)

# npm installs the exact versions of the lock file.
.tools/clients/node_modules: internal/acceptance/clients/package.json internal/acceptance/clients/package-lock.json | client-packages
	mkdir -p .tools/clients && cp $^ .tools/clients && cd .tools/clients && npm ci --no-audit --no-fund
	touch $@

# The programs that generate and compile a client of the API in the tests.
.tools/api/node_modules: internal/acceptance/api/package.json internal/acceptance/api/package-lock.json | packages
	mkdir -p .tools/api && cp $^ .tools/api && cd .tools/api && npm ci --no-audit --no-fund
	touch $@

# The OpenID Connect provider of the tests.
.tools/oidc/node_modules: internal/testkit/servicetest/oidc/package.json internal/testkit/servicetest/oidc/package-lock.json | packages
	mkdir -p .tools/oidc && cp $^ .tools/oidc && cd .tools/oidc && npm ci --no-audit --no-fund
	touch $@

# npm installs the exact versions of the lock file: the graphs of the admin listener's page, and axe-core for its tests.
.tools/page/node_modules: internal/admin/package.json internal/admin/package-lock.json | packages
	mkdir -p .tools/page && cp $^ .tools/page && cd .tools/page && npm ci --no-audit --no-fund
	touch $@

torture: packages .tools/bin/minio .tools/bin/versitygw ## kill clients in 50 rounds, have 100,000 sessions, judge what FTP clients are told for an hour, run random histories for an hour; ROUNDS=200 JUDGED=1h TORTURE=8h for longer
	go test -race -v -timeout 0 -run 'Test(Killed|Cluster$$)' ./internal/acceptance -kill.rounds $(ROUNDS) -cluster.transfers 10000
	go test -race -v -timeout 0 -run TestLinearizable ./internal/acceptance -histories.servers minio,versitygw -histories.time $(JUDGED) -histories.seed $$(date +%s)
	go test -v -timeout 0 -run 'Test(Views|ManySessions)$$' ./internal/server -views 5000 -views.seed $$(date +%s) -sessions 100000
	go test -v -timeout 0 -run TestHistories ./driver -histories.time $(TORTURE) -histories.seed $$(date +%s) -histories.all

bench: .tools/bin/minio ## measure babelftp and its S3 server (docs/benchmarks.md); BENCH='-short -only slow' for a part
	go run ./bench $(BENCH)

vulnerabilities: .tools/bin/govulncheck ## look for known vulnerabilities in what the program calls
	tools/govulncheck.sh

# Only a change of the chart, of a dependency or of the Go release breaks what is checked here, so each push goes without, but for the race detector,
# which has a job of its own in CI.
release-check: .goreleaser-check vulnerabilities manifests kube clients race ## check what only a release needs (an hour)
	for system in darwin windows; do CGO_ENABLED=0 GOOS=$$system go build -gcflags='all=-N -l' ./... || exit; done

.goreleaser-check: .tools/bin/goreleaser
	.tools/bin/goreleaser check

release-snapshot: .goreleaser-check $(RELEASE_TOOLS:%=.tools/bin/%) ## build what a release has into .release, but for the image
	rm -rf .release
	.tools/bin/$(HELM) package deploy/babelftp --destination .release/chart
	.tools/bin/goreleaser release --snapshot --clean --skip=docker,publish,sign

# For the workflow of a tag: it needs a Docker engine, credentials for GitHub and its registry, and cosign and gh. The notes get the digests of the
# image and of the chart when both are pushed.
release: .goreleaser-check $(RELEASE_TOOLS:%=.tools/bin/%) ## publish the release of the tag
	rm -rf .release && mkdir -p .release
	tools/release-notes.sh $(RELEASE) >.release/notes.md
	.tools/bin/$(HELM) package deploy/babelftp --version $(RELEASE) --app-version $(RELEASE) --destination .release/chart
	.tools/bin/goreleaser release --clean --release-notes .release/notes.md
	.tools/bin/$(HELM) push .release/chart/babelftp-$(RELEASE).tgz oci://ghcr.io/babelftp/charts >.release/push.txt 2>&1 || { cat .release/push.txt; exit 1; }
	tools/release-install.sh $(RELEASE) .release/dist/digests.txt .release/push.txt >.release/install.md
	cosign sign --yes ghcr.io/babelftp/charts/babelftp@$$(sed -n 's/^Digest: *//p' .release/push.txt)
	cat .release/install.md >>.release/notes.md
	gh release edit v$(RELEASE) --notes-file .release/notes.md

test-tools: $(TEST_TOOLS:%=.tools/bin/%) .tools/oidc/node_modules .tools/page/node_modules .tools/api/node_modules

tools: $(TOOLS:%=.tools/bin/%) ## build the tools of tests and checks into .tools/bin, or take them from the cache

.tools/bin/%: tools/%.mod tools/%.sum
	tools/build.sh $*

# Helm is built from its own go.mod and without cgo, so that it contains the libraries that its authors release. Go checks it by the checksum database.
.tools/bin/helm-%:
	tools/build.sh helm-$* helm.sh/helm/v$(basename $(basename $*))/cmd/helm@v$*

# Helm asks for the version of the API server, which its build sets.
.tools/bin/kube-apiserver: export LDFLAGS = -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36 \
	-X k8s.io/component-base/version.gitVersion=v1.36.4

# The race detector needs a C compiler. Perl's Net::FTP needs a module for TLS, which no command shows.
packages: ## install the Debian packages that the tests need
	@tools/debian-packages.sh curl=curl lftp=lftp rclone=rclone python3=python3 ruby=ruby perl:IO::Socket::SSL=perl,libio-socket-ssl-perl cc=gcc,libc6-dev slapd=slapd systemd-analyze=systemd chromium=chromium ip=iproute2 jq=jq json2po=translate-toolkit node=nodejs npm=npm nft=nftables haproxy=haproxy nginx=nginx-light vsftpd=vsftpd clamd=clamav-daemon c-icap=c-icap /usr/share/c_icap/templates/virus_scan/en/VIRUS_FOUND=libc-icap-mod-virus-scan
	@tools/ftp-servers.sh

client-packages: ## install the Debian packages of the FTP clients that make test does without, and the tests of their authors
	@tools/debian-packages.sh wget=wget wget2=wget2 aria2c=aria2 axel=axel ncftp=ncftp tnftp=tnftp inetutils-ftp=inetutils-ftp yafc=yafc duplicity=duplicity gio=libglib2.0-bin /usr/libexec/gvfsd-ftp=gvfs-backends,gvfs-daemons dbus-run-session=dbus-daemon filezilla=filezilla Xvfb=xvfb xdotool=xdotool \
	  php=php-cli /usr/lib/python3/dist-packages/aioftp=python3-aioftp \
	  /usr/lib/python3/dist-packages/fsspec=python3-fsspec /usr/lib/python3/dist-packages/fs=python3-fs /usr/lib/python3/dist-packages/ftputil=python3-ftputil \
	  javac=default-jdk-headless /usr/share/java/commons-net.jar=libcommons-net-java \
	  /usr/share/java/junit4.jar=junit4 /usr/share/shunit2/shunit2=shunit2 git=git
	@tools/debian-sources.sh git-ftp=1.6.0+dfsg-1 libcommons-net-java=3.9.0-1
