# docker build --build-arg VERSION=$(git describe --tags --always) --tag babelftp .
#
# The image holds the program and the certificates of the public authorities: no shell, no libc, no user but 65532. It writes
# nothing, so it runs with --read-only and --cap-drop=ALL:
#
#   docker run --read-only --cap-drop=ALL --volume "$PWD/babelftp.yaml:/etc/babelftp/babelftp.yaml:ro" \
#     --publish 21:2121 --publish 30000-30019:30000-30019 --publish 127.0.0.1:9121:9121 babelftp
#
# with `listen: ":2121"`, `metrics_listen: ":9121"`, `passive: {ports: 30000-30019, public_address: ...}` in babelftp.yaml.
# Its probes are HTTP on metrics_listen: /healthz answers 200 while the process works, /readyz while it can serve.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /babelftp ./cmd/babelftp

FROM scratch
LABEL org.opencontainers.image.title="babelftp" \
      org.opencontainers.image.description="S3 buckets over FTP and FTPS, in the reader's language" \
      org.opencontainers.image.source="https://github.com/babelftp/babelftp"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /babelftp /babelftp
USER 65532:65532
EXPOSE 2121 9121 30000-30019
ENTRYPOINT ["/babelftp"]
CMD ["serve", "--config", "/etc/babelftp/babelftp.yaml"]
