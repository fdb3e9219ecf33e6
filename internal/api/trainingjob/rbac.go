//go:build !podsonly

package trainingjob

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// MasterRules are the only verbs a master has, each with its reason. The creator of the Role must hold them too.
func MasterRules(job string, queued bool) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		// Workers: created, listed after a restart, watched, retired. Create and list cannot be restricted by name,
		// and the numbers of the workers are not known beforehand.
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "delete"}},
		// workers.json changes while the job runs, and a mounted ConfigMap lags by a minute. List and watch are
		// allowed with the field selector metadata.name=NAME-job only.
		{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{ConfigMapName(job)},
			Verbs: []string{"get", "list", "watch"},
		},
		// Status, and the final model when it is small. The provider has made both: no create.
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{StatusName(job)}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{ModelName(job)}, Verbs: []string{"get", "update"}},
		// The address that workers are given: the Service's cluster IP, for clusters without DNS.
		{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{MasterName(job)}, Verbs: []string{"get"}},
		// Fencing: one master at a time.
		{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{MasterName(job)},
			Verbs: []string{"get", "update"},
		},
		// Its own deletion and suspension are looked up before each worker is created; the annotations with the
		// highest worker number and the time of the last checkpoint are written.
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, ResourceNames: []string{job}, Verbs: []string{"get", "patch"}},
		// What a person should see.
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}
	if !queued {
		return rules
	}
	return append(rules,
		// At the job's end the master's own pod is marked: its group ends, and with it the hold on the quota.
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}},
		// At the job's end the minimum workers that have not heard of it are stopped, and not made again.
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, ResourceNames: []string{MinJobName(job)}, Verbs: []string{"patch"}},
	)
}

func (d Definition) role() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: d.meta(ServiceAccountName(d.Job.Name)),
		Rules: MasterRules(d.Job.Name, d.Queue != nil),
	}
}

func (d Definition) roleBinding() *rbacv1.RoleBinding {
	name := ServiceAccountName(d.Job.Name)
	return &rbacv1.RoleBinding{
		TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"), ObjectMeta: d.meta(name),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: d.Job.Namespace}},
	}
}
