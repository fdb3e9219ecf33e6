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
# The older versions with which the scheduling engine is compared, too: e2e/kube-1.36.mod is e2e/go.mod with that version.
for file in e2e/kube-*.mod; do
  version=$(basename "${file#*kube-}" .mod)
  # A file that is still a copy of an earlier e2e/go.mod requires its version and has no line that replaces it.
  older=$(awk '$1 == "k8s.io/kubernetes" { older = $2 == "=>" ? $4 : $2 } END { print older }' "$file")
  sed -E "s#(k8s\.io/[a-z-]+) ${staging//./\\.}#\1 v0.${older#v1.}#g; s#(k8s\.io/kubernetes) $kubernetes\$#\1 $older#
    s#^replace \(#&\n\tk8s.io/kubernetes => k8s.io/kubernetes $older#" e2e/go.mod >"$file"
  cat e2e/go.sum >>"${file%.mod}.sum" && sort -u -o "${file%.mod}.sum" "${file%.mod}.sum"
  go -C e2e vet -mod=mod -modfile="${file#e2e/}" -tags="grpcnotrace,kubernetes$version" ./differential
done
git --no-pager diff --stat -- '*.mod' '*.sum'
