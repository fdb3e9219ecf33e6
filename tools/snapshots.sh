#!/usr/bin/env bash
# snapshots.sh: makes examples/snapshots anew. A cluster of 40 simulated GPU nodes starts, with Kueue, JobSet and Kubeflow Trainer; its
# jobs are those of cluster.yaml. Then its snapshot is written without names. kubectl has to be on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
snapshots=examples/snapshots
work=$(mktemp -d "${TMPDIR:-/tmp}/snapshots.XXXXXX")
root=$PWD
trap '"$root/bin/simcluster" down --dir "$work/cluster"; rm -rf "$work"' EXIT

bin/simcluster up --dir "$work/cluster" --kueue --controllers jobset,trainer --image '*=host' \
  --node-group name=gpu,count=40,cpu=192,memory=2Ti,resource:nvidia.com/gpu=8,label:nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
export KUBECONFIG=$work/cluster/admin.kubeconfig
kubectl apply --server-side -f $snapshots/cluster.yaml
kubectl wait --for=condition=Admitted --timeout=5m -A --all workloads
kubectl wait --for=condition=Ready --timeout=5m -A --all pods

# names FILE: the names that job files use, in the order of the API server, which anonymizing keeps.
names() {
  sed -nE '/"kind":"(Namespace|LocalQueue|PriorityClass|WorkloadPriorityClass)"/s/.*"metadata":\{"name":"([^"]+)".*/\1/p' "$1"
}
bin/elastic-sim snapshot -o "$work/named.json"
bin/elastic-sim snapshot -o "$work/anonymous.json" --anonymize
gzip -9 --no-name --stdout "$work/anonymous.json" >$snapshots/gpu-cluster.json.gz
paste -d ' ' <(names "$work/named.json") <(names "$work/anonymous.json") | while read -r named anonymous; do
  echo "s/(namespace|queue-name|priority-class): $named([,}]|\$)/\\1: $anonymous\\2/g"
done >"$work/names.sed"
for job in $snapshots/jobs/*.yaml; do
  { echo "# Made of jobs/$(basename "$job") by make snapshots: the names are those of the snapshot."; sed -E -f "$work/names.sed" "$job"; } >"$snapshots/$(basename "$job")"
done

# What the README prints is what the commands in it print now.
cd $snapshots
awk '/^\$ / { print; command = substr($0, 3) " 2>/dev/null"; while ((command | getline line) > 0) print line; printed = 1; next }
  /^```/ { printed = 0 } !printed' README.md >"$work/README.md"
cp "$work/README.md" README.md
