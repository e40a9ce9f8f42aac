# This file builds two images:
#
#   docker build --build-arg VERSION=$(git describe --tags --always) --build-arg COMMIT=$(git rev-parse HEAD) --tag babelftp .
#   docker build --target demo --tag babelftp-demo .
#
# The first one is for production. It contains only the programs and the certificates of public authorities: no shell, no libc, no S3 server, and no user
# other than 65532. The second program, babelftp-kubernetes, serves tenants and users that are custom resources of Kubernetes. It writes nothing except the certificates of tls.acme, to /var/lib/babelftp, for which it needs a volume. Therefore it can run with
# --read-only and --cap-drop=ALL:
#
#   docker run --read-only --cap-drop=ALL --volume "$PWD/config:/etc/babelftp:ro" \
#     --publish 21:2121 --publish 30000-30019:30000-30019 --publish 127.0.0.1:9121:9121 babelftp
#
# with `listen: ":2121"`, `metrics_listen: ":9121"`, `passive: {ports: 30000-30019, public_address: ...}` in config/babelftp.yaml. Mount the folder
# and not the file, because a mounted file keeps its old content when an editor replaces it.
# Docker checks the health with `babelftp health`, which needs metrics_listen. Kubernetes uses HTTP: /healthz returns 200 while the process works, and
# /readyz while it can serve clients.
#
# The second one runs `babelftp demo`, which chooses its passive ports itself, so it needs the network of the host:
#
#   docker run --rm --network host babelftp-demo

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown COMMIT=unknown TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go build -trimpath -tags nodemo -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /babelftp ./cmd/babelftp
RUN go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /babelftp-kubernetes ./cmd/babelftp-kubernetes
RUN mkdir /empty

FROM build AS build-demo
ARG VERSION=unknown COMMIT=unknown
RUN go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /babelftp ./cmd/babelftp

FROM scratch AS base
LABEL org.opencontainers.image.title="babelftp" \
      org.opencontainers.image.description="S3 buckets over FTP and FTPS, in the reader's language" \
      org.opencontainers.image.source="https://github.com/babelftp/babelftp"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
USER 65532:65532
ENV PATH=/usr/local/bin
ENTRYPOINT ["babelftp"]

# The demo stores its files in the volume /data, because they need a file system with extended attributes.
FROM base AS demo
COPY --from=build-demo /babelftp /usr/local/bin/babelftp
COPY --from=build-demo --chown=65532:65532 /empty /data
# For the socket of the S3 server.
COPY --from=build-demo --chown=65532:65532 /empty /tmp
VOLUME /data
EXPOSE 2121
CMD ["demo", "--data", "/data"]

FROM base
COPY --from=build /babelftp /babelftp-kubernetes /usr/local/bin/
# A volume for the certificates of tls.acme gets the owner of this folder.
COPY --from=build --chown=65532:65532 /empty /var/lib/babelftp
EXPOSE 2121 9121 30000-30019
HEALTHCHECK CMD ["babelftp", "health", "--config", "/etc/babelftp/babelftp.yaml"]
CMD ["serve", "--config", "/etc/babelftp/babelftp.yaml"]
