#!/bin/sh
# cluster.sh create     makes a GKE cluster for this example: one n1-standard-4 that stays and two that are spot machines;
#                       with T4S_PER_NODE=4, a pool of none to one machine with T4s
# cluster.sh variables  prints what terraform wants to know of it: cluster.sh variables >gke.auto.tfvars
# cluster.sh delete     deletes the cluster with its machines and their disks
#
# PROJECT and ZONE say where; CLUSTER is its name. Machines cost money until they are deleted.
set -eu

case ${1-} in
create | variables | delete) ;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac

: "${PROJECT:?set PROJECT to the id of a Google Cloud project}"
: "${ZONE:?set ZONE, such as us-central1-b; T4s are not in every zone}"
: "${CLUSTER:=elastic}"
: "${T4S_PER_NODE:=0}"

# Every command below is about this project and place, and names the cluster itself.
pool() {
	name=$1
	shift
	gcloud container node-pools create "$name" --cluster="$CLUSTER" --project="$PROJECT" --location="$ZONE" "$@"
}

describe() {
	gcloud container clusters describe "$CLUSTER" --project="$PROJECT" --location="$ZONE" --format="value($1)"
}

case ${1-} in
create)
	gcloud container clusters create "$CLUSTER" --project="$PROJECT" --location="$ZONE" \
		--machine-type=n1-standard-4 --num-nodes=1
	pool spot --machine-type=n1-standard-4 --num-nodes=2 --spot \
		--node-taints=cloud.google.com/gke-spot=true:NoSchedule
	if [ "$T4S_PER_NODE" -gt 0 ]; then
		pool t4 --machine-type=n1-standard-16 --accelerator="type=nvidia-tesla-t4,count=$T4S_PER_NODE,gpu-driver-version=default" \
			--num-nodes=0 --enable-autoscaling --min-nodes=0 --max-nodes=1
	fi
	gcloud container clusters get-credentials "$CLUSTER" --project="$PROJECT" --location="$ZONE"
	;;
variables)
	endpoint=$(describe endpoint)
	authority=$(describe masterAuth.clusterCaCertificate)
	printf 'endpoint               = "%s"\ncluster_ca_certificate = "%s"\n' "$endpoint" "$authority"
	;;
delete)
	gcloud container clusters delete "$CLUSTER" --project="$PROJECT" --location="$ZONE"
	;;
esac
