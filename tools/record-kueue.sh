#!/usr/bin/env bash
# record-kueue.sh [-cycles N] <scenarios >recordings: plays scenarios to the scheduler of a real Kueue, in process, and writes what it
# decided, or with -cycles how long its cycles take. The scenarios are those of e2e/cmd/kueuescenarios, the recordings those of
# internal/scheduler/conformance, whose testdata/recorder has the source. Kueue's source is cloned into bin/upstream/source/kueue,
# unless $UPSTREAM/kueue has it. An overlay adds our files to it, so that it stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/bin/upstream
source=${UPSTREAM:-$out/source}/kueue
tag=v0.19.2
if [ ! -d "$source" ]; then
  git clone --quiet --depth 1 --branch "$tag" https://github.com/kubernetes-sigs/kueue "$source"
fi
source=$(realpath "$source")
files=$PWD/internal/scheduler/conformance/testdata/recorder

mkdir -p "$out"
# place PACKAGE FILE …: pairs of an overlay that adds our files to a package of Kueue.
place() {
  local package=$1
  shift
  for file in "$@"; do printf '"%s/%s/%s": "%s",\n' "$source" "$package" "$(basename "$file")" "$file"; done
}
pairs=$(place pkg/scheduler "$files/scheduler_seams.go"; place pkg/cache/queue "$files/queue_seams.go"
  place pkg/controller/core "$files/controller_seams.go"
  place cmd/recorder "$files"/{main,measure,run,steps,outcome,scenario}.go)
printf '{"Replace": {%s}}\n' "${pairs%,}" >"$out/recorder-overlay.json"
flags=(-overlay "$out/recorder-overlay.json")
if [ -d "$source/vendor" ]; then flags+=(-mod=vendor); fi
GOFLAGS=-buildvcs=false CGO_ENABLED=0 GOWORK=off go -C "$source" build -trimpath "${flags[@]}" -o "$out/recorder" ./cmd/recorder
exec "$out/recorder" "$@"
