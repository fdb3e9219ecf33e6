// Package kueue contains Kueue's API, group kueue.x-k8s.io version v1beta2 as of Kueue v0.19.2, as Go types: the kinds
// that the provider manages or shows, with spec and status, and the constants that Kueue writes into them (condition
// types, reasons, labels, annotations, gates, finalizers).
//
// The JSON of these types is what Kueue's API server serves. The CustomResourceDefinitions generated from the markers
// here (folder crd) accept, default and reject the same objects as Kueue's own. A test compares both, field by field
// and rule by rule, with the CRD files in KUEUE_CRDS, and lists omissions with their reasons. Kinds for MultiKueue and
// for cluster autoscalers are omitted.
//
// The package contains data only. Folder validation contains the rules as functions; internal/scheduler decides which
// workloads are admitted or evicted.
//
// +kubebuilder:object:generate=true
// +groupName=kueue.x-k8s.io
// +versionName=v1beta2
package kueue

// The tool is the one that tools/go.mod pins.
//go:generate sh -c "../../../tools/build.sh tools controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen && ../../../bin/controller-gen object crd paths=. output:crd:dir=crd output:object:dir=."
