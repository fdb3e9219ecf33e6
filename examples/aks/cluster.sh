#!/bin/sh
# cluster.sh create     creates an AKS cluster for this example: one Standard_D4s_v5 on demand and two on spot capacity
# cluster.sh variables  prints what terraform needs to know about it: cluster.sh variables >aks.auto.tfvars
# cluster.sh delete     deletes the resource group with the cluster and its machines
#
# LOCATION says where; GROUP is the resource group, CLUSTER the name. Machines cost money until they are deleted.
set -eu

: "${GROUP:=elastic}"
: "${CLUSTER:=elastic}"

of_the_cluster() {
	kubectl config view --minify --raw --context "$CLUSTER" -o "jsonpath={.clusters[0].cluster.$1}"
}

case ${1-} in
create)
	: "${LOCATION:?set LOCATION, such as westeurope}"
	az group create --name "$GROUP" --location "$LOCATION"
	az aks create --resource-group "$GROUP" --name "$CLUSTER" --enable-aad --enable-azure-rbac \
		--nodepool-name system --node-vm-size Standard_D4s_v5 --node-count 1 --generate-ssh-keys
	az aks nodepool add --resource-group "$GROUP" --cluster-name "$CLUSTER" --name spot \
		--priority Spot --eviction-policy Delete --spot-max-price -1 --node-vm-size Standard_D4s_v5 --node-count 2
	az aks get-credentials --resource-group "$GROUP" --name "$CLUSTER"
	kubelogin convert-kubeconfig -l azurecli
	;;
variables)
	endpoint=$(of_the_cluster server)
	authority=$(of_the_cluster certificate-authority-data)
	printf 'endpoint               = "%s"\ncluster_ca_certificate = "%s"\n' "$endpoint" "$authority"
	;;
delete)
	az group delete --name "$GROUP"
	;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
