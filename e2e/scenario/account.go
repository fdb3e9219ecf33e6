package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/elastic-training/terraform-provider-elastic/examples/rbac"
)

// The roles of examples/rbac that the documentation recommends: one for queues and classes, and one for what forecasts read,
// which belong to the whole cluster; and two for tasks and jobs, in their namespace.
const (
	adminRole      = "elastic-admin"
	forecasterRole = "elastic-forecaster"
	userRole       = "elastic-user"
	accountsRole   = "elastic-accounts" // the scenarios' jobs have ServiceAccounts of their own
)

var (
	clusterRoles   = []string{adminRole, forecasterRole}
	namespaceRoles = []string{userRole, accountsRole}
)

// accountName is the ServiceAccount's name, and the prefix of the names of its roles and bindings, so that roles from
// examples/rbac that a user has applied to the cluster are not changed.
const accountName = "elastic-scenario"

// tokenLasts is longer than any scenario runs.
const tokenLasts = 2 * time.Hour

// account is the ServiceAccount under which terraform runs: it may do what the documentation recommends and no more.
type account struct {
	kubeconfig string // with its token, mode 0600

	client    kubernetes.Interface
	namespace string
}

// newAccount creates the ServiceAccount with the example's roles, and its kubeconfig in dir. It replaces an account that a
// killed run has left.
func newAccount(ctx context.Context, client kubernetes.Interface, cluster Cluster, dir string) (_ *account, err error) {
	a := &account{kubeconfig: filepath.Join(dir, "terraform.kubeconfig"), client: client, namespace: cluster.Namespace}
	roles, err := rbac.ClusterRoles(rbac.YAML)
	if err != nil {
		return nil, err
	}
	if err := a.remove(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.remove(context.WithoutCancel(ctx)))
		}
	}()
	if _, err := client.CoreV1().ServiceAccounts(a.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: accountName}}, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create terraform's ServiceAccount: %w", err)
	}
	for _, name := range slices.Concat(clusterRoles, namespaceRoles) {
		at := slices.IndexFunc(roles, func(role rbacv1.ClusterRole) bool { return role.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("create terraform's ServiceAccount: examples/rbac/rbac.yaml has no ClusterRole %s", name)
		}
		roles[at].Name = grantName(name)
		_, errRole := client.RbacV1().ClusterRoles().Create(ctx, &roles[at], metav1.CreateOptions{})
		if err := errors.Join(errRole, a.bind(ctx, name)); err != nil {
			return nil, fmt.Errorf("grant the roles of terraform's ServiceAccount: %w", err)
		}
	}
	return a, a.writeKubeconfig(ctx, cluster.Kubeconfig)
}

// grantName is the name of a role of the example, and of its binding, in the cluster.
func grantName(role string) string { return accountName + "-" + role }

func (a *account) bind(ctx context.Context, role string) error {
	meta := metav1.ObjectMeta{Name: grantName(role)}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grantName(role)}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: accountName, Namespace: a.namespace}}
	if slices.Contains(clusterRoles, role) {
		_, err := a.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		return err
	}
	_, err := a.client.RbacV1().RoleBindings(a.namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	return err
}

// writeKubeconfig writes the administrator's kubeconfig with the account's token in place of the administrator's
// credentials.
func (a *account) writeKubeconfig(ctx context.Context, administrators string) error {
	seconds := int64(tokenLasts.Seconds())
	token, err := a.client.CoreV1().ServiceAccounts(a.namespace).CreateToken(ctx, accountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request a token for terraform's ServiceAccount: %w", err)
	}
	config, err := clientcmd.LoadFromFile(administrators)
	if err == nil {
		err = errors.Join(clientcmdapi.MinifyConfig(config), clientcmdapi.FlattenConfig(config))
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", administrators, err)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{accountName: {Token: token.Status.Token}}
	config.Contexts[config.CurrentContext].AuthInfo = accountName
	if err := clientcmd.WriteToFile(*config, a.kubeconfig); err != nil {
		return fmt.Errorf("write the kubeconfig of terraform's ServiceAccount: %w", err)
	}
	return nil
}

// remove removes the account with everything that belongs to it.
func (a *account) remove(ctx context.Context) error {
	var errs []error
	gone := func(err error) {
		if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove terraform's ServiceAccount: %w", err))
		}
	}
	gone(os.Remove(a.kubeconfig))
	for _, name := range clusterRoles {
		gone(a.client.RbacV1().ClusterRoleBindings().Delete(ctx, grantName(name), metav1.DeleteOptions{}))
	}
	for _, name := range namespaceRoles {
		gone(a.client.RbacV1().RoleBindings(a.namespace).Delete(ctx, grantName(name), metav1.DeleteOptions{}))
	}
	for _, name := range slices.Concat(clusterRoles, namespaceRoles) {
		gone(a.client.RbacV1().ClusterRoles().Delete(ctx, grantName(name), metav1.DeleteOptions{}))
	}
	gone(a.client.CoreV1().ServiceAccounts(a.namespace).Delete(ctx, accountName, metav1.DeleteOptions{}))
	return errors.Join(errs...)
}
