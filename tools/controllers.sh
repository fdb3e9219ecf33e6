#!/usr/bin/env bash
# controllers.sh NAME...: builds controllers of other projects for `simcluster up`, into bin/controllers/NAME: the program
# and its manifests, both from the project's Go module, at the version in a go.mod of simcluster/controllers.
set -euo pipefail
cd "$(dirname "$0")/.."

# dir PATH: the folder of a module that $module requires.
dir() { go -C "$module" mod download "$1" && go -C "$module" list -m -f '{{.Dir}}' "$1"; }

# manifests NAME FOLDER: what `kubectl apply -k FOLDER` would apply.
manifests() {
  local out=bin/controllers/$1/manifests.yaml
  tools/build.sh tools kustomize sigs.k8s.io/kustomize/kustomize/v5
  bin/kustomize build --load-restrictor LoadRestrictionsNone "$2" >"$out.new" 2>"$out.log" || { cat "$out.log" >&2; exit 1; }
  rm "$out.log"
  mv "$out.new" "$out"
}

for name in "$@"; do
  module=simcluster/controllers
  out=$PWD/bin/controllers/$name
  mkdir -p "$out"
  case "$name" in
  kueue)
    source=$(dir sigs.k8s.io/kueue)
    manifests kueue "$source/config/default"
    # Where the metrics' certificate lies is the one thing that no option of Kueue's program changes. The program is built
    # from its own source, with that line changed, through an overlay: nothing of it is copied into this repository. A
    # file that ended in .go would be a package of this module.
    # shellcheck disable=SC2016
    sed 's|metricsCertPath := "/etc/kueue/metrics/certs"|metricsCertPath := os.Getenv("KUEUE_METRICS_CERTIFICATES")|' "$source/cmd/kueue/main.go" >"$out/main.go.txt"
    if [ "$(diff "$source/cmd/kueue/main.go" "$out/main.go.txt" | grep -c '^>')" != 1 ]; then
      echo "controllers.sh: $source/cmd/kueue/main.go no longer says where the metrics' certificate is as version v0.19.2 does" >&2
      exit 1
    fi
    printf '{"Replace": {"%s": "%s"}}\n' "$PWD/$module/kueue/main.go" "$out/main.go.txt" >"$out/overlay.json"
    GOFLAGS="$GOFLAGS -overlay=$out/overlay.json" tools/build.sh "$module" controllers/kueue/manager ./kueue -ldflags '-s -w'
    ;;
  jobset)
    manifests jobset "$(dir sigs.k8s.io/jobset)/config/default"
    tools/build.sh "$module" controllers/jobset/manager sigs.k8s.io/jobset -ldflags '-s -w'
    ;;
  lws)
    module=$module/lws
    manifests lws "$(dir sigs.k8s.io/lws)/config/default"
    tools/build.sh "$module" controllers/lws/manager sigs.k8s.io/lws/cmd -ldflags '-s -w'
    ;;
  kuberay)
    module=$module/kuberay
    manifests kuberay "$(dir github.com/ray-project/kuberay/ray-operator)/config/default"
    tools/build.sh "$module" controllers/kuberay/manager github.com/ray-project/kuberay/ray-operator -ldflags '-s -w'
    ;;
  trainer)
    # The project's own overlay downloads a JobSet, which is a controller of its own here. Kustomize takes no absolute paths.
    base=$(realpath --relative-to="$out" "$(dir github.com/kubeflow/trainer/v2)/manifests")
    cat >"$out/kustomization.yaml" <<END
namespace: kubeflow-system
resources: [$base/overlays/manager/namespace.yaml, $base/base/crds, $base/base/manager, $base/base/rbac, $base/base/webhook]
END
    manifests trainer "$out"
    tools/build.sh "$module" controllers/trainer/manager github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager -ldflags '-s -w'
    ;;
  *)
    echo "controllers.sh: unknown controller $name; there are kueue, jobset, lws, trainer and kuberay" >&2
    exit 2
    ;;
  esac
done
