#!/usr/bin/env bash
# kubernetes.sh: every go.mod requires the version of Kubernetes in simcluster/kubeversion/version.txt, with the versions of
# its staging repositories (v0.36.1 for v1.36.1). etcd is left: simcluster/go.mod names the version that Kubernetes is released with.
set -euo pipefail
cd "$(dirname "$0")/.."
kubernetes=$(cat simcluster/kubeversion/version.txt)
staging=v0.${kubernetes#v1.}
for module in . simcluster e2e; do
  before=$(awk '$1 == "k8s.io/client-go" { print $2; exit }' "$module/go.mod")
  sed -i -E "s#(k8s\.io/[a-z-]+) ${before//./\\.}\$#\1 $staging#; s#(k8s\.io/[a-z-]+) ${before//./\\.}( //.*)\$#\1 $staging\2#
    s#(k8s\.io/kubernetes) v[0-9.]+#\1 $kubernetes#" "$module/go.mod"
  go -C "$module" mod tidy
done
git --no-pager diff --stat -- '*go.mod' '*go.sum'
