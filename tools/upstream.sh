#!/usr/bin/env bash
# upstream.sh [NAME …]: builds the controllers of other projects (kueue, jobset, trainer, kuberay) from their public
# repositories into bin/upstream, each with a file NAME.yaml of its definitions and webhooks, and NAME-configuration.yaml,
# the configuration of its release. Package e2e/upstream installs and starts them. Sources are cloned into bin/upstream/source/NAME, unless they are there, or in $UPSTREAM/NAME already.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/bin/upstream
sources=${UPSTREAM:-$out/source}

declare -A repository=(
  [kueue]=https://github.com/kubernetes-sigs/kueue [jobset]=https://github.com/kubernetes-sigs/jobset
  [trainer]=https://github.com/kubeflow/trainer [kuberay]=https://github.com/ray-project/kuberay)
declare -A tag=([kueue]=v0.19.2 [jobset]=v0.12.0 [trainer]=v2.2.1 [kuberay]=v1.6.2)
declare -A module=([kueue]=. [jobset]=. [trainer]=. [kuberay]=ray-operator)
declare -A main=([kueue]=./cmd/kueue [jobset]=. [trainer]=./cmd/trainer-controller-manager [kuberay]=.)
declare -A manifests=(
  [kueue]='config/components/crd/bases/*.yaml config/components/webhook/manifests.yaml'
  [jobset]='config/components/crd/bases/*.yaml config/components/webhook/manifests.yaml'
  [trainer]='manifests/base/crds/trainer*.yaml manifests/base/webhook/manifests.yaml'
  [kuberay]='config/crd/bases/*.yaml')
# The configuration file that the release ships.
declare -A configuration=(
  [kueue]=config/components/manager/controller_manager_config.yaml [jobset]=config/components/manager/controller_manager_config.yaml
  [trainer]=manifests/base/manager/controller_manager_config.yaml)

# source_of NAME: the folder of its source, which is cloned if it is not there.
source_of() {
  local folder=$sources/$1
  if [ ! -d "$folder" ]; then
    echo "  $1: cloning ${repository[$1]} at ${tag[$1]}" >&2
    git clone --quiet --depth 1 --branch "${tag[$1]}" "${repository[$1]}" "$folder"
  fi
  realpath "$folder"
}

mkdir -p "$out"
# These projects have flags of their own, but share the build cache.
export GOFLAGS=-buildvcs=false CGO_ENABLED=0 GOWORK=off
for name in "${@:-kueue jobset trainer kuberay}"; do
  for name in $name; do
    if [ -x "$out/$name" ]; then continue; fi
    [ -n "${repository[$name]:-}" ] || { echo "upstream.sh: unknown project $name: one of ${!repository[*]}" >&2; exit 2; }
    folder=$(source_of "$name")/${module[$name]}
    flags=()
    case $name in
    kueue)
      # Its metrics server reads certificates from a folder below /etc, and no option changes that. An overlay makes it
      # the folder that a variable names; the source stays as it is.
      sed 's|"/etc/kueue/metrics/certs"|os.Getenv("KUEUE_METRICS_CERTS")|' "$folder/cmd/kueue/main.go" >"$out/kueue-main.go.txt"
      printf '{"Replace": {"%s": "%s"}}\n' "$folder/cmd/kueue/main.go" "$out/kueue-main.go.txt" >"$out/kueue-overlay.json"
      flags=(-overlay "$out/kueue-overlay.json")
      if [ -d "$folder/vendor" ]; then flags+=(-mod=vendor); fi
      ;;
    trainer)
      # Where the module of JobSet cannot be had, $UPSTREAM/jobset-for-trainer is its source.
      if [ -d "$sources/jobset-for-trainer" ]; then
        cp "$folder/go.mod" "$out/trainer.mod" && cp "$folder/go.sum" "$out/trainer.sum"
        go mod edit -replace "sigs.k8s.io/jobset=$(realpath "$sources/jobset-for-trainer")" "$out/trainer.mod"
        flags=(-modfile "$out/trainer.mod")
      fi
      ;;
    esac
    echo "  bin/upstream/$name: building" >&2
    go -C "$folder" build -trimpath "${flags[@]}" -o "$out/$name" "${main[$name]}"
    for file in $(cd "$folder" && echo ${manifests[$name]}); do
      printf -- '---\n'
      cat "$folder/$file"
    done >"$out/$name.yaml"
    if [ -n "${configuration[$name]:-}" ]; then cp "$folder/${configuration[$name]}" "$out/$name-configuration.yaml"; fi
  done
done
