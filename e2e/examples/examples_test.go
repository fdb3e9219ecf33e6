package examples_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

const root = "../.."

// requiredProvider is for examples that only show one thing, where the user's own configuration has it.
const requiredProvider = "terraform {\n  required_providers {\n    elastic = { source = \"elastic-training/elastic\" }\n  }\n}\n"

func TestEveryExampleIsInTheTable(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".tf") || strings.HasSuffix(path, ".tfquery.hcl")) {
			folder, err := filepath.Rel(filepath.Join(root, "examples"), filepath.Dir(path))
			found[folder] = true
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range found {
		if _, there := table[folder]; !there {
			t.Errorf("examples/%s is not in the table, and so is never applied", folder)
		}
	}
	for folder, e := range table {
		if !found[folder] {
			t.Errorf("there is no example %s", folder)
		}
		if (e.before == "") != (e.beforeBecause == "") {
			t.Errorf("%s: what is there before has no reason, or the reason is of nothing", folder)
		}
	}
}

// TestEveryExampleIsAppliedPlansNothingMoreAndLeavesNothing applies the examples in turn where they make objects of the
// same names, and beside one another elsewhere.
func TestEveryExampleIsAppliedPlansNothingMoreAndLeavesNothing(t *testing.T) {
	makeNamespaces(t)
	before := providertest.ListObjects(t, admin(t))
	underEachStandard(t, table, func(t *testing.T, folder string, e example) {
		t.Helper()
		applyAndDestroy(t, copied(t, folder, e), e)
	})
	before.ExpectNoOthers(t, admin(t))
}

// copied is a terminal in a copy of the example's folder, outside of the repository.
func copied(t *testing.T, folder string, e example) *providertest.Terminal {
	t.Helper()
	r := terminal(t)
	examples := filepath.Join(root, "examples")
	outside := r.Directory
	r.Directory = filepath.Join(outside, folder)
	for _, part := range append([]string{folder}, e.with...) {
		noError(t, os.CopyFS(filepath.Join(outside, part), os.DirFS(filepath.Join(examples, part))))
	}
	read := strings.Join(texts(t, r.Directory, "*.tf", "README.md"), "\n")
	for _, part := range e.with {
		if !strings.Contains(read, "examples/"+part) {
			t.Errorf("examples/%s reads examples/%s, and none of its comments says so", folder, part)
		}
	}
	for file, from := range e.files {
		text, err := os.ReadFile(filepath.Join(root, from))
		noError(t, err)
		noError(t, os.WriteFile(filepath.Join(r.Directory, file), text, 0o600))
		if !strings.Contains(read, from) {
			t.Errorf("examples/%s reads %s, and does not say that it is %s", folder, file, from)
		}
	}
	for file := range e.without {
		noError(t, os.Remove(filepath.Join(r.Directory, file)))
	}
	for name, value := range e.variables {
		if name == "config_path" {
			value = cluster.Kubeconfig
		}
		r.Environment = append(r.Environment, "TF_VAR_"+name+"="+value)
	}
	return r
}

// terminal has the cluster in its environment, and as ~/.kube/config.
func terminal(t *testing.T) *providertest.Terminal {
	t.Helper()
	home := t.TempDir()
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	noError(t, err)
	noError(t, os.Mkdir(filepath.Join(home, ".kube"), 0o700))
	noError(t, os.WriteFile(filepath.Join(home, ".kube", "config"), kubeconfig, 0o600))
	return providertest.NewTerminalWith(t, map[string]string{"KUBE_CONFIG_PATH": cluster.Kubeconfig, "HOME": home})
}

// texts are the files of a folder.
func texts(t *testing.T, folder string, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		noError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			noError(t, err)
			all = append(all, string(text))
		}
	}
	return all
}

// applyAndDestroy is what this package does with every configuration.
func applyAndDestroy(t *testing.T, r *providertest.Terminal, e example) {
	t.Helper()
	config := requiredProvider
	if text, err := os.ReadFile(filepath.Join(r.Directory, "main.tf")); err == nil {
		config = string(text)
	} else if strings.Contains(strings.Join(texts(t, r.Directory, "*.tf"), ""), "required_providers") {
		config = ""
	}
	defer locked(t, append(texts(t, r.Directory, "*.tf"), e.before)...)()
	if e.before != "" {
		first := terminal(t)
		first.Directory = t.TempDir()
		succeeds(t, first, requiredProvider+e.before, "apply", "-auto-approve")
		defer succeeds(t, first, requiredProvider+e.before, "destroy", "-auto-approve")
	}
	if strings.Contains(config, "\nmodule ") {
		succeeds(t, r, config, "init")
	}
	begin := time.Now()
	printed, code := r.Run(t, config, "apply", "-auto-approve")
	if code != 0 || regexp.MustCompile(`is not \w+ yet|has not \w+ yet`).MatchString(printed) {
		t.Errorf("apply exited with %d:\n%s", code, printed)
		cluster.LogState(t, metav1.NamespaceAll)
	}
	t.Logf("apply took %s", time.Since(begin).Round(time.Second))
	if code == 0 {
		expectPods(t, e)
		r.ExpectNoChanges(t, config)
	}
	succeeds(t, r, config, "destroy", "-auto-approve")
}

func succeeds(t *testing.T, r *providertest.Terminal, config string, arguments ...string) {
	t.Helper()
	if printed, code := r.Run(t, config, arguments...); code != 0 {
		t.Errorf("terraform %s exited with %d:\n%s", arguments[0], code, printed)
	}
}

// locks are by the names of objects, which one example at a time may make. Who looks at the whole cluster is alone in
// it.
var (
	alone      sync.RWMutex
	locks      = map[string]*sync.Mutex{}
	locksMutex sync.Mutex
)

// locked waits until no other example makes an object that one of the configurations makes. What a data source says of
// the cluster depends on all others.
func locked(t *testing.T, configs ...string) (unlock func()) {
	t.Helper()
	names, looks := namesOf(t, configs...)
	unlock = alone.RUnlock
	if looks {
		alone.Lock()
		return alone.Unlock
	}
	alone.RLock()
	for _, name := range names { // in one order, so that nobody waits for ever
		locksMutex.Lock()
		lock, there := locks[name]
		if !there {
			lock = &sync.Mutex{}
			locks[name] = lock
		}
		locksMutex.Unlock()
		lock.Lock()
		rest := unlock
		unlock = func() { lock.Unlock(); rest() }
	}
	return unlock
}

// namesOf are the kinds and names of the objects that configurations make; looks says that they have data sources. A
// module and an object whose name is not plain text count as all of their kind.
func namesOf(t *testing.T, configs ...string) (names []string, looks bool) {
	t.Helper()
	for _, config := range configs {
		file, problems := hclparse.NewParser().ParseHCL([]byte(config), "example")
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		for _, block := range file.Body.(*hclsyntax.Body).Blocks { //nolint:forcetypeassert // what the parser of this syntax gives
			switch {
			case block.Type == "data" || block.Type == "module":
				looks = true
			case block.Type == "resource" && strings.HasPrefix(block.Labels[0], "elastic_"):
				given, named := block.Body.Attributes["name"]
				if !named {
					continue // its name is generated, and nobody else's
				}
				name, problems := given.Expr.Value(nil)
				if looks = looks || problems.HasErrors(); !looks {
					names = append(names, block.Labels[0]+" "+name.AsString())
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), looks
}

func makeNamespaces(t *testing.T) {
	t.Helper()
	kube, err := cluster.Client()
	noError(t, err)
	for _, name := range append([]string{probe}, namespaces...) {
		_, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) { // by another test
			noError(t, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
	defer cancel()
	noError(t, await.Until(ctx, "the namespace's account", 100*time.Millisecond, func(ctx context.Context) error {
		_, err := kube.CoreV1().ServiceAccounts(probe).Get(ctx, "default", metav1.GetOptions{})
		return err
	}))
}

func admin(t *testing.T) *rest.Config {
	t.Helper()
	config, err := cluster.Config()
	noError(t, err)
	return config
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
