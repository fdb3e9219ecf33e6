// Package kueue is Kueue's API, group kueue.x-k8s.io version v1beta2 as of Kueue v0.19.2, as Go types of our own: the
// kinds that the provider manages or shows, with spec and status, and the words that Kueue writes into them (condition
// types, reasons, labels, annotations, gates, finalizers).
//
// It guarantees: the JSON of these types is what Kueue's API server serves, and the CustomResourceDefinitions generated
// from the markers here (folder crd) accept, default and refuse what Kueue's own do. A test compares both, field by
// field and rule by rule, with CRD files that it is given (KUEUE_CRDS), and names what is left out and why. Kinds for
// MultiKueue and for cluster autoscalers are left out altogether.
//
// It is data only. Folder validation has the rules as functions; who is admitted or evicted is internal/scheduler's.
//
// +kubebuilder:object:generate=true
// +groupName=kueue.x-k8s.io
// +versionName=v1beta2
package kueue

// The tool is the one that tools/go.mod pins.
//go:generate sh -c "../../../tools/build.sh tools controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen && ../../../bin/controller-gen object crd paths=. output:crd:dir=crd output:object:dir=."
