#!/usr/bin/env bash
# try.sh: a first forecast, for who has only cloned this repository. Without the clients of clusters and the provider, elastic-sim compiles
# in less than half of the time. One that make build has built is not replaced by one without them.
set -euo pipefail
cd "$(dirname "$0")/.."
sim=bin/elastic-sim page=e2e/out/simulated/elastic-scheduling.html tags=(-tags=grpcnotrace,offline)
if $sim snapshot --help >/dev/null 2>&1; then
  tags=()
else
  echo "bin/elastic-sim is built, without what reads clusters; the first time this takes about a minute on two cores:"
fi
tools/build.sh . elastic-sim ./cmd/elastic-sim -ldflags '-s -w' "${tags[@]}"

# forecast OUTCOME CODE: forecasts a job on the snapshot, and wants an exit code.
forecast() {
  local code=0
  printf '\n$ %s\n' "$sim forecast --snapshot examples/snapshots/gpu-cluster.json.gz -f examples/snapshots/$1.yaml"
  $sim forecast --snapshot examples/snapshots/gpu-cluster.json.gz -f "examples/snapshots/$1.yaml" 2>/dev/null || code=$?
  [ "$code" = "$2" ] || { echo "it exited with $code instead of $2" >&2; exit 1; }
}

printf '\nA cluster of 40 GPU nodes under Kueue, of which examples/snapshots has a snapshot, and three jobs:\n'
forecast fits 0
first=$SECONDS
forecast evicts 10
forecast waits 11
printf '\nThe first tutorial, simulated:\n\n$ %s\n' "$sim run examples/scenarios/elastic-scheduling.yaml -o $page"
mkdir -p "$(dirname $page)"
$sim run examples/scenarios/elastic-scheduling.yaml -o $page
printf '\nThe first forecast was there after %s s. Picture of the simulation, for a browser: %s\n' "$first" "$PWD/$page"
echo "A forecast for your own cluster: make elastic-sim, then bin/elastic-sim forecast -f job.yaml (README.md)"
