// Package podadmission computes what an API server makes of a pod before a scheduler sees it: the defaults it adds, and
// whether it rejects the pod.
//
// It is pure. It knows the admission plugins of kube-apiserver that are on by default and decide something about where
// a pod goes: defaults of the API, PriorityClass, RuntimeClass, LimitRange, ResourceQuota, default tolerations, Pod
// Security and the merge of matchLabelKeys. It does not know webhooks and admission policies, Pod Security's exemptions
// and cluster-wide defaults, and plugins that an administrator switched on: a server-side dry run answers those.
//
// The rules have their source in k8s.io/kubernetes named where they are.
package podadmission
