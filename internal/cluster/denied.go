package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/examples/rbac"
)

// DeniedError is a request that RBAC does not allow, with all that the user lacks of the role that the request belongs
// to: an operation makes several requests, and nobody wants to be refused one by one.
type DeniedError struct {
	Missing []string // "create, delete, patch of jobs.batch"; nil if unknown
	Err     error    // the API server's
}

func (e *DeniedError) Error() string { return e.Err.Error() }
func (e *DeniedError) Unwrap() error { return e.Err }

// denial is what the API server says of a request that RBAC does not allow.
type denial struct{ user, verb, resource, group, namespace string }

// denied matches the API server's own words.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)"| at the cluster scope)?`)

func denialOf(err error) (denial, bool) {
	match := denied.FindStringSubmatch(err.Error())
	if match == nil || !apierrors.IsForbidden(err) {
		return denial{}, false
	}
	return denial{user: match[1], verb: match[2], resource: match[3], group: match[4], namespace: match[5]}, true
}

// shippedRoles are the ClusterRoles of examples/rbac that users are given, in the order in which they are recommended.
var shippedRoles = sync.OnceValue(func() []rbacv1.ClusterRole {
	roles, err := rbac.ClusterRoles(rbac.YAML + "\n---\n" + rbac.Suspend)
	if err != nil {
		panic(err) // the files are part of the program, and a test reads them
	}
	return slices.DeleteFunc(roles, func(role rbacv1.ClusterRole) bool { return role.Name == masterRole })
})

// masterRole is for an account that jobs use, and suspenderRole for users. It is in a file of its own, with its policy.
const masterRole, suspenderRole = "elastic-master", "elastic-suspender"

// roleFor is the shipped role that a request belongs to; nil where none allows it. Of several it is the one that also
// makes objects of the kind, so that reading and writing an object lead to the same role. The role of users is bound in
// a namespace, and allows nothing outside of one; a Namespace counts as outside.
func roleFor(d denial) *rbacv1.ClusterRole {
	var found *rbacv1.ClusterRole
	everywhere := d.namespace == "" || d.resource == "namespaces"
	for i, role := range shippedRoles() {
		if everywhere && isOfNamespaces(role.Name) || !allows(role.Rules, d.verb, d.group, d.resource) {
			continue
		}
		// The first role of users has what they need to read; the others allow more.
		better := found != nil && !isOfNamespaces(found.Name) &&
			!allows(found.Rules, "create", d.group, d.resource) && allows(role.Rules, "create", d.group, d.resource)
		if found == nil || better {
			found = &shippedRoles()[i]
		}
	}
	return found
}

// isOfNamespaces reports whether a role is bound in namespaces, as its file says.
func isOfNamespaces(role string) bool {
	return role == "elastic-user" || role == accountsRole || role == suspenderRole
}

// accountsRole is of who does not name an account for a job.
const accountsRole = "elastic-accounts"

func allows(rules []rbacv1.PolicyRule, verb, group, resource string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return contains(r.Verbs, verb) && contains(r.APIGroups, group) && contains(r.Resources, resource)
	})
}

func contains(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// missingOf are the rights of a role that somebody's rules do not give, a line for each resource.
func missingOf(role *rbacv1.ClusterRole, given []rbacv1.PolicyRule) []string {
	verbs := map[string][]string{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := qualified(group, resource)
				for _, verb := range rule.Verbs {
					if !allows(given, verb, group, resource) && !slices.Contains(verbs[name], verb) {
						verbs[name] = append(verbs[name], verb)
					}
				}
			}
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		lines = append(lines, strings.Join(verbs[name], ", ")+" of "+name)
	}
	return lines
}

// qualified is a resource as kubectl names it: "jobs.batch", "pods/log".
func qualified(group, resource string) string {
	name, sub, _ := strings.Cut(resource, "/")
	if group != "" {
		name += "." + group
	}
	if sub != "" {
		name += "/" + sub
	}
	return name
}

// rightsTimeout bounds the question which rights the user has.
const rightsTimeout = 10 * time.Second

// withMissing adds to a refusal by RBAC what else the user lacks; it asks once for each namespace.
func (c *Client) withMissing(err error) error {
	var already *DeniedError
	d, ok := denialOf(err)
	if !ok || errors.As(err, &already) || d.user == "system:anonymous" || c.kube == nil {
		return err
	}
	role := roleFor(d)
	if role == nil {
		return err
	}
	given, known := c.rights(d.namespace)
	if !known {
		return &DeniedError{Err: err}
	}
	return &DeniedError{Missing: missingOf(role, given), Err: err}
}

// rights are the user's rules in a namespace, or in the whole cluster; what is allowed for some names only is left out.
func (c *Client) rights(namespace string) (rules []rbacv1.PolicyRule, known bool) {
	c.rightsMutex.Lock()
	defer c.rightsMutex.Unlock()
	if rules, known = c.rightsIn[namespace]; known {
		return rules, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), rightsTimeout)
	defer cancel()
	// A review is always of a namespace; in one that nobody has there are the rights in the whole cluster alone.
	in := cmp.Or(namespace, "no-such-namespace")
	review, err := c.kube.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: in}}, metav1.CreateOptions{})
	if err != nil || review.Status.Incomplete {
		return nil, false
	}
	rules = []rbacv1.PolicyRule{}
	for _, r := range review.Status.ResourceRules {
		if len(r.ResourceNames) == 0 {
			rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources})
		}
	}
	if c.rightsIn == nil {
		c.rightsIn = map[string][]rbacv1.PolicyRule{}
	}
	c.rightsIn[namespace] = rules
	return rules, true
}

// rolesURL is where the shipped roles are to be had.
const rolesURL = "https://raw.githubusercontent.com/elastic-training/terraform-provider-elastic/main/examples/rbac/"

// fileOf is where a role is.
func fileOf(role string) string {
	if role == suspenderRole {
		return rolesURL + "suspend.yaml"
	}
	return rolesURL + "rbac.yaml"
}

// explainDenied names what is missing, and the commands that grant it: the shipped role first, then the same rights as
// a manifest of one's own. Both are the same for every request that belongs to the role.
func explainDenied(d denial, missing []string) string {
	if d.user == "system:anonymous" {
		return fmt.Sprintf("The request to %s %s came without a credential that the API server knows (user system:anonymous, 403 Forbidden). "+
			"Set token, client_certificate and client_key, exec, or a config_path whose context has a user.", d.verb, d.resource)
	}
	where := "in the whole cluster"
	if d.namespace != "" {
		where = "in namespace " + d.namespace
	}
	text := fmt.Sprintf("User %q may not %s %s %s (403 Forbidden). ", d.user, d.verb, qualified(d.group, d.resource), where)
	role := roleFor(d)
	if role == nil {
		return text + "None of the provider's roles allows that. " + grantOne(d)
	}
	text += fmt.Sprintf("ClusterRole %s of examples/rbac has every right that the provider needs for this.", role.Name)
	if len(missing) > 0 {
		text += " Missing are:\n\n  " + strings.Join(missing, "\n  ")
	}
	kind, scope := "ClusterRole", ""
	if isOfNamespaces(role.Name) {
		kind, scope = "Role", d.namespace
	}
	if role.Name == accountsRole {
		text += "\n\nOr name an account that an administrator has made for jobs, by service_account_name: then no right of these is needed."
	}
	text += "\n\nSomebody who may grants them with:\n\n  kubectl apply -f " + fileOf(role.Name) + "\n  " +
		bindCommand("ClusterRole", role.Name, d.user, scope)
	if role.Name == suspenderRole {
		return text // a role of one's own would have no policy
	}
	return text + "\n\nWhere no ClusterRole of that name may be made, a " + kind + " of your own has the same rights:\n\n" +
		manifest(kind, role, scope) + "\n\n  " + bindCommand(kind, role.Name, d.user, scope)
}

// bindCommand gives a user a role. Its name is the user's and the role's, so that no two bindings have one name.
func bindCommand(kind, role, user, namespace string) string {
	subject, short := "--user="+quotedForShell(user), user
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		subject, short = "--serviceaccount="+account, strings.ReplaceAll(account, ":", "-")
	}
	name := strings.Trim(unusual.ReplaceAllString(short, "-"), "-") + "-" + role
	if namespace == "" {
		return fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s %s", name, role, subject)
	}
	return fmt.Sprintf("kubectl create rolebinding %s --%s=%s %s --namespace=%s", name, strings.ToLower(kind), role, subject, namespace)
}

// grantOne is for a right that no shipped role has; verb and resource are in the names.
func grantOne(d denial) string {
	kind, scope := "clusterrole", ""
	name := "elastic-" + d.verb + "-" + strings.ReplaceAll(qualified(d.group, d.resource), "/", "-")
	if d.namespace != "" {
		kind, scope = "role", " --namespace="+d.namespace
	}
	binding := bindCommand(kind, name, d.user, d.namespace)
	return fmt.Sprintf("Somebody who may grants it with:\n\n  kubectl create %s %s --verb=%s --resource=%s%s\n  %s",
		kind, name, d.verb, qualified(d.group, d.resource), scope, binding)
}

// manifest is a role with the rules of a shipped one, for kubectl apply -f.
func manifest(kind string, role *rbacv1.ClusterRole, namespace string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  apiVersion: rbac.authorization.k8s.io/v1\n  kind: %s\n  metadata:\n    name: %s\n", kind, role.Name)
	if namespace != "" {
		fmt.Fprintf(&b, "    namespace: %s\n", namespace)
	}
	b.WriteString("  rules:\n")
	for _, r := range role.Rules {
		groups := make([]string, len(r.APIGroups))
		for i, group := range r.APIGroups {
			groups[i] = fmt.Sprintf("%q", group)
		}
		names := ""
		if len(r.ResourceNames) > 0 {
			names = ", resourceNames: [" + strings.Join(r.ResourceNames, ", ") + "]"
		}
		fmt.Fprintf(&b, "    - {apiGroups: [%s], resources: [%s]%s, verbs: [%s]}\n", strings.Join(groups, ", "), strings.Join(r.Resources, ", "), names, strings.Join(r.Verbs, ", "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// unusual is what a name in a command line should not have.
var unusual = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func quotedForShell(text string) string {
	if regexp.MustCompile(`^[A-Za-z0-9.:@_-]+$`).MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
