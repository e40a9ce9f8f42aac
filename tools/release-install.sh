#!/bin/sh
# Prints how to install a release and to verify it, with the digests of its image and chart, for the notes.
# usage: release-install.sh 1.2.3 DIGESTS PUSH
# DIGESTS is the list of images that goreleaser writes, and PUSH what helm push prints.
set -eu
[ $# = 3 ] || { echo "usage: $0 VERSION DIGESTS PUSH" >&2; exit 1; }
image=$(awk -v name="ghcr.io/babelftp/babelftp:$1" '$2 == name { print $1; exit }' "$2")
chart=$(sed -n 's/^Digest: *//p' "$3")
[ -n "$image" ] || { echo "$0: $2 has no digest of ghcr.io/babelftp/babelftp:$1" >&2; exit 1; }
[ -n "$chart" ] || { echo "$0: $3 has no digest of the chart" >&2; exit 1; }
image=ghcr.io/babelftp/babelftp@sha256:${image#sha256:}
signer="--certificate-identity https://github.com/babelftp/babelftp/.github/workflows/release.yaml@refs/tags/v$1 \\
  --certificate-oidc-issuer https://token.actions.githubusercontent.com"
cat <<EOF

### Install

\`\`\`sh
docker run --rm $image version
helm install ftp oci://ghcr.io/babelftp/charts/babelftp --version $1 --set image.digest=${image#*@} --values values.yaml
\`\`\`

### Verify

\`\`\`sh
cosign verify $signer \\
  $image
cosign verify $signer \\
  ghcr.io/babelftp/charts/babelftp@$chart
cosign verify-blob $signer \\
  --bundle SHA256SUMS.sigstore.json SHA256SUMS
sha256sum --check --ignore-missing SHA256SUMS
gh attestation verify babelftp_$1_linux_amd64.tar.gz --repo babelftp/babelftp
gh attestation verify oci://$image --repo babelftp/babelftp
\`\`\`
EOF
