#!/bin/sh
# cluster.sh create     creates an EKS cluster for this example: one m5.xlarge on demand and two on spot capacity
# cluster.sh variables  prints what terraform needs to know about it: cluster.sh variables >eks.auto.tfvars
# cluster.sh delete     deletes the cluster with its machines
#
# REGION says where; CLUSTER is its name. Machines cost money until they are deleted.
set -eu

: "${REGION:?set REGION, such as us-east-1}"
: "${CLUSTER:=elastic}"

describe() {
	aws eks describe-cluster --name "$CLUSTER" --region "$REGION" --query "cluster.$1" --output text
}

case ${1-} in
create)
	eksctl create cluster -f - <<-END
		apiVersion: eksctl.io/v1alpha5
		kind: ClusterConfig
		metadata: {name: $CLUSTER, region: $REGION}
		managedNodeGroups:
		  - {name: on-demand, instanceType: m5.xlarge, desiredCapacity: 1}
		  - name: spot
		    instanceTypes: [m5.xlarge, m5a.xlarge, m5n.xlarge]
		    spot: true
		    desiredCapacity: 2
		    taints: [{key: elastic-training/spot, value: "true", effect: NoSchedule}]
	END
	;;
variables)
	endpoint=$(describe endpoint)
	authority=$(describe certificateAuthority.data)
	printf 'cluster                = "%s"\nendpoint               = "%s"\ncluster_ca_certificate = "%s"\n' "$CLUSTER" "$endpoint" "$authority"
	;;
delete)
	eksctl delete cluster --name "$CLUSTER" --region "$REGION"
	;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
