#!/usr/bin/env bash
# snapshots.sh: makes examples/snapshots anew. A cluster of 40 simulated GPU nodes starts, with Kueue, JobSet and Kubeflow Trainer; its
# jobs are those of cluster.yaml. kubectl has to be on PATH.
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

bin/elastic-sim snapshot -o "$work/snapshot.json"
gzip -9 --no-name --stdout "$work/snapshot.json" >$snapshots/gpu-cluster.json.gz

# What the README prints is what the commands in it print now.
cd $snapshots
awk '/^\$ / { print; command = substr($0, 3) " 2>/dev/null"; while ((command | getline line) > 0) print line; printed = 1; next }
  /^```/ { printed = 0 } !printed' README.md >"$work/README.md"
cp "$work/README.md" README.md
