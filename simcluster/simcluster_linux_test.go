package simcluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/kubeversion"
)

// shared is the cluster of the tests that leave it as they found it.
var shared *simcluster.Cluster

// orphanVariable makes this test binary a program that starts a cluster in the directory it names, and waits.
const orphanVariable = "SIMCLUSTER_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(orphanVariable); dir != "" {
		if _, err := simcluster.Run(context.Background(), simcluster.Options{Dir: dir, Nodes: noNodes(), Progress: os.Stderr}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {} // until it is killed
	}
	// Built once, so that every start below does not look again whether it is up to date.
	binary, err := simcluster.Binary(context.Background(), os.Stderr)
	if err == nil {
		err = os.Setenv(simcluster.BinaryVariable, binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := simcluster.Main(m, &shared, simcluster.Nodes(2, "4", "15Gi"), simcluster.Allocatable("3.92"), simcluster.Image(controlplane.AnyImage, controlplane.HostImage))
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// noNodes declares a control plane alone.
func noNodes() []controlplane.NodeGroup {
	group := controlplane.DefaultNodes()
	group.Count = 0
	return []controlplane.NodeGroup{group}
}

func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// waitFor looks until holds says nothing more.
func waitFor(t *testing.T, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience.Medium)
	defer cancel()
	if err := await.Until(ctx, what, 20*time.Millisecond, func(context.Context) error { return holds() }); err != nil {
		t.Fatal(err)
	}
}

// command runs simcluster and returns its output and exit code.
func command(t *testing.T, attributes *syscall.SysProcAttr, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	// Not the test's context, which has ended when things are cleaned up.
	ctx, cancel := context.WithTimeout(context.Background(), patience.Long)
	defer cancel()
	c := exec.CommandContext(ctx, os.Getenv(simcluster.BinaryVariable), args...)
	c.SysProcAttr = attributes
	c.Dir = "/"
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), c.ProcessState.ExitCode()
}

// offered is the completion that simcluster returns to a shell for the last of the words on the shared cluster.
func offered(t *testing.T, words ...string) string {
	t.Helper()
	stdout, _, _ := command(t, nil, append([]string{"__complete", words[0], "--dir", shared.Dir}, words[1:]...)...)
	return stdout
}

func TestReadyCluster(t *testing.T) {
	client := clientOf(t, shared.Kubeconfig)
	ctx := t.Context()

	t.Run("it is the Kubernetes that it says it is", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		if err != nil || version.GitVersion != kubeversion.Version {
			t.Error(version, err)
		}
	})
	t.Run("what every cluster has is there", func(t *testing.T) {
		for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			if _, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
		for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
			if _, err := client.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
		if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("nodes have what was declared, whatever this machine has", func(t *testing.T) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 2 {
			t.Fatal(len(nodes.Items), err)
		}
		for i := range nodes.Items {
			status := &nodes.Items[i].Status
			if status.Capacity.Cpu().String() != "4" || status.Allocatable.Cpu().String() != "3920m" || status.Capacity.Memory().String() != "15Gi" {
				t.Errorf("%s: capacity %v, allocatable %v", nodes.Items[i].Name, status.Capacity, status.Allocatable)
			}
		}
	})
	t.Run("a service gets an address that this machine has", func(t *testing.T) {
		service, err := client.CoreV1().Services(shared.Namespace(t)).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "here"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}, Selector: map[string]string{"a": "b"}},
		}, metav1.CreateOptions{})
		if err != nil || !strings.HasPrefix(service.Spec.ClusterIP, "127.96.") {
			t.Error(service.Spec.ClusterIP, err)
		}
	})
	t.Run("a user without a role is known, and refused", func(t *testing.T) {
		user := clientOf(t, shared.UserKubeconfig)
		review, err := user.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || review.Status.UserInfo.Username != controlplane.UserName {
			t.Error(review, err)
		}
		if _, err := user.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing pods: %v", err)
		}
	})
	t.Run("a pod runs, and its words can be read", func(t *testing.T) {
		namespace := shared.Namespace(t)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "speaker"},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "anything", Command: []string{"/bin/sh", "-c", "echo the pod ran"}}},
			},
		}
		if _, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the pod has succeeded", func() error {
			have, err := client.CoreV1().Pods(namespace).Get(ctx, "speaker", metav1.GetOptions{})
			if err == nil && have.Status.Phase != corev1.PodSucceeded {
				err = fmt.Errorf("it is %s: %+v", have.Status.Phase, have.Status)
			}
			return err
		})
		stdout, stderr, code := command(t, nil, "logs", "speaker", "-n", namespace, "--dir", shared.Dir)
		if stdout != "the pod ran\n" || code != 0 {
			t.Error(stdout, stderr, code)
		}
		for _, offer := range []struct {
			words []string
			want  string
		}{
			{[]string{"logs", "-n", namespace, "sp"}, "speaker\tSucceeded\n:4\n"},
			{[]string{"logs", "-n", namespace, "speaker", "--container", ""}, "main\n:4\n"},
			{[]string{"logs", "--namespace", namespace}, namespace + "\n:4\n"},
			{[]string{"logs", "-n", namespace, "speaker", ""}, ":4\n"},
		} {
			if got := offered(t, offer.words...); got != offer.want {
				t.Errorf("a shell is offered %q for %q, not %q", got, offer.words, offer.want)
			}
		}
	})
	t.Run("everything it keeps is its owner's alone", func(t *testing.T) {
		err := filepath.WalkDir(shared.Dir, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // a temporary file of the moment
				return nil
			}
			if err != nil {
				return err
			}
			// What containers write is theirs, and lies below directories that nobody else may enter.
			if path == filepath.Join(shared.Dir, "node", "pods") {
				return fs.SkipDir
			}
			info, err := entry.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("nothing listens beyond loopback", func(t *testing.T) {
		status, err := shared.Status()
		if err != nil {
			t.Fatal(err)
		}
		listening := listeners(t, append(descendants(t, status.SupervisorPID), status.SupervisorPID))
		for _, address := range listening {
			if !address.Addr().IsLoopback() {
				t.Errorf("a process listens on %s", address)
			}
		}
		for _, port := range []int{status.Ports.APIServer, status.Ports.Scheduler, status.Ports.Kubelet} {
			if !slices.ContainsFunc(listening, func(address listener) bool { return int(address.Port()) == port }) {
				t.Errorf("nothing listens on port %d: %v", port, listening)
			}
		}
	})
}

func TestCommandOnRunningCluster(t *testing.T) {
	t.Run("a second up says that the cluster is running and where", func(t *testing.T) {
		stdout, stderr, code := command(t, nil, "up", "--dir", shared.Dir)
		if stdout != "KUBECONFIG="+shared.Kubeconfig+"\n" || !strings.Contains(stderr, "is already running") || !strings.Contains(stderr, "simcluster down --dir") || code != 0 {
			t.Error(stdout, stderr, code)
		}
	})
	t.Run("a second up with a different configuration does not pretend", func(t *testing.T) {
		stdout, stderr, code := command(t, nil, "up", "--dir", shared.Dir, "--nodes", "7")
		if stdout != "" || !strings.Contains(stderr, "a different configuration") || code != 1 {
			t.Error(stdout, stderr, code)
		}
	})
	t.Run("status names every component and node", func(t *testing.T) {
		stdout, stderr, code := command(t, nil, "status", "--dir", shared.Dir)
		for _, name := range append(controlplane.Components(), "node-1", "node-2", "Ready since", shared.Kubeconfig) {
			if !strings.Contains(stdout, name) {
				t.Errorf("%q is missing in %q", name, stdout)
			}
		}
		if code != 0 || stderr != "" {
			t.Error(stderr, code)
		}
	})
	t.Run("the command that needs no argument says so, and one that needs one", func(t *testing.T) {
		for _, args := range [][]string{{"down", "now"}, {"node", "stop"}, {"logs"}, {"up", "--colour=blue"}, {"sideways"}, {"up", "--node-group=cpu=many", "--dir=" + t.TempDir()}} {
			if _, stderr, code := command(t, nil, args...); code != 2 || stderr == "" {
				t.Errorf("%q: code %d, %q", args, code, stderr)
			}
		}
	})
}

func TestNodesThatDie(t *testing.T) {
	client := clientOf(t, shared.Kubeconfig)
	ctx := t.Context()
	if err := shared.StopNode(ctx, "node-2", true); err != nil {
		t.Fatal(err)
	}
	t.Run("a node that is gone is no node", func(t *testing.T) {
		if _, err := client.CoreV1().Nodes().Get(ctx, "node-2", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	t.Run("a shell is offered the nodes that can be stopped, and those that can be started", func(t *testing.T) {
		for verb, want := range map[string]string{"stop": "node-1\n:4\n", "start": "node-2\n:4\n"} {
			stdout, _, _ := command(t, nil, "__complete", "node", verb, "--dir", shared.Dir, "no")
			if stdout != want {
				t.Errorf("%s: %q", verb, stdout)
			}
		}
	})
	if err := shared.StartNode(ctx, "node-2"); err != nil {
		t.Fatal(err)
	}
	t.Run("a node that is started again takes pods", func(t *testing.T) {
		if err := shared.WaitReady(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("a node that was never declared cannot be stopped", func(t *testing.T) {
		if err := shared.StopNode(ctx, "node-9", false); err == nil {
			t.Error("it was")
		}
	})
}

func TestComponentsThatDie(t *testing.T) {
	client := clientOf(t, shared.Kubeconfig)
	namespace := shared.Namespace(t)
	for _, name := range controlplane.Components() {
		t.Run("a "+name+" that was killed comes back, and nothing is lost", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
			defer cancel()
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "before-" + name}}
			if _, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := shared.KillComponent(ctx, name); err != nil {
				t.Fatal(err)
			}
			if err := shared.WaitReady(ctx); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the object can be read again", func() error {
				_, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, object.Name, metav1.GetOptions{})
				return err
			})
			status, err := shared.Status()
			if err != nil {
				t.Fatal(err)
			}
			component, err := status.Component(name)
			if err != nil || component.Restarts != 1 || component.PID == 0 {
				t.Errorf("%+v, %v", component, err)
			}
		})
	}
	t.Run("a component that does not exist cannot be killed", func(t *testing.T) {
		if err := shared.KillComponent(t.Context(), "kubelet"); err == nil {
			t.Error("it was")
		}
	})
}

func TestStateSurvives(t *testing.T) {
	// A name that asks for trouble: flags with lists and URLs carry it.
	dir := filepath.Join(t.TempDir(), "a state, 100%25 kept?")
	stdout, stderr, code := command(t, nil, "up", "--dir", dir, "--nodes", "0")
	t.Cleanup(func() { _, _, _ = command(t, nil, "down", "--dir", dir) })
	kubeconfig, ok := strings.CutPrefix(strings.TrimSpace(stdout), "KUBECONFIG=")
	if code != 0 || !ok {
		t.Fatal(stdout, stderr, code)
	}
	server := clientcmd.GetConfigFromFileOrDie(kubeconfig).Clusters["simcluster"].Server
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "memory"}, Data: map[string]string{"a": "b"}}
	if _, err := clientOf(t, kubeconfig).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := command(t, nil, "down", "--dir", dir); code != 0 {
		t.Fatal(stderr, code)
	}
	t.Run("a cluster that is stopped says so", func(t *testing.T) {
		for _, args := range [][]string{{"status"}, {"logs", "pod"}, {"node", "stop", "node-1"}} {
			if _, stderr, code := command(t, nil, append(args, "--dir", dir)...); code != 3 || !strings.Contains(stderr, "simcluster up") {
				t.Error(args, stderr, code)
			}
		}
		if _, stderr, code := command(t, nil, "down", "--dir", dir); code != 0 || !strings.Contains(stderr, "no cluster is running") || !strings.Contains(stderr, "simcluster up --dir") {
			t.Error(stderr, code)
		}
	})
	t.Run("what was stored is there after down and up, at the same address", func(t *testing.T) {
		if _, stderr, code := command(t, nil, "up", "--dir", dir); code != 0 {
			t.Fatal(stderr, code)
		}
		if again := clientcmd.GetConfigFromFileOrDie(kubeconfig).Clusters["simcluster"].Server; again != server {
			t.Errorf("%s was at %s", again, server)
		}
		have, err := clientOf(t, kubeconfig).CoreV1().ConfigMaps("default").Get(t.Context(), "memory", metav1.GetOptions{})
		if err != nil || have.Data["a"] != "b" {
			t.Error(have, err)
		}
	})
	t.Run("down with --delete leaves nothing", func(t *testing.T) {
		if _, stderr, code := command(t, nil, "down", "--delete", "--dir", dir); code != 0 {
			t.Error(stderr, code)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestAPortInUseIsRefusedAndAnotherSuggested(t *testing.T) {
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close() //nolint:errcheck // Nothing was sent.
	port := strconv.Itoa(busy.Addr().(*net.TCPAddr).Port)
	stdout, stderr, code := command(t, nil, "up", "--dir", t.TempDir(), "--port", port)
	if stdout != "" || code != 1 || !strings.Contains(stderr, "port "+port) || !strings.Contains(stderr, "--port 0") {
		t.Error(stdout, stderr, code)
	}
}

func TestSuddenDeath(t *testing.T) {
	t.Run("a supervisor that is killed leaves no process", func(t *testing.T) {
		cluster := simcluster.Start(t, simcluster.NodeGroup(noNodes()[0]), simcluster.Dir(filepath.Join(t.TempDir(), "state")))
		status, err := cluster.Status()
		if err != nil {
			t.Fatal(err)
		}
		processes := descendants(t, status.SupervisorPID)
		if len(processes) != len(controlplane.Components()) {
			t.Errorf("%d processes", len(processes))
		}
		if err := syscall.Kill(status.SupervisorPID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "no process is left", func() error { return anyAlive(processes) })
		waitFor(t, "the supervisor's lock is free", func() error { // it may end after those that end with it
			status, err := cluster.Status()
			if err == nil && status.Phase != controlplane.PhaseStopped {
				err = fmt.Errorf("%+v", status)
			}
			return err
		})
		if err := cluster.Close(); err == nil {
			t.Error("that the supervisor was killed goes unnoticed")
		}
	})
	t.Run("a cluster ends with the program that started it, however that ends", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		program := exec.Command(os.Args[0])
		program.Env = append(os.Environ(), orphanVariable+"="+dir)
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		layout, err := controlplane.NewLayout(dir)
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the program's cluster is ready", func() error {
			status, err := controlplane.ReadStatus(layout)
			if err == nil && status.Phase != controlplane.PhaseReady {
				err = fmt.Errorf("it is %s", status.Phase)
			}
			return err
		})
		processes := descendants(t, program.Process.Pid)
		if len(processes) != 1+len(controlplane.Components()) {
			t.Errorf("%d processes", len(processes))
		}
		if err := program.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = program.Wait() // "signal: killed"
		waitFor(t, "no process is left", func() error { return anyAlive(processes) })
	})
}

func TestAClusterNeedsNoRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can try another user; every other test in this run shows that root is not needed")
	}
	const nobody = 65534
	// A long path, too, so that the sockets have to lie elsewhere.
	parent, err := os.MkdirTemp("/tmp", "simcluster-nobody-"+strings.Repeat("long", 20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chown(parent, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	// Where the repository is may be root's alone.
	program := filepath.Join(parent, "simcluster")
	if err := os.Link(os.Getenv(simcluster.BinaryVariable), program); err != nil {
		built, err := os.ReadFile(os.Getenv(simcluster.BinaryVariable))
		if err := errors.Join(err, os.WriteFile(program, built, 0o755)); err != nil { //nolint:gosec // another user runs it
			t.Fatal(err)
		}
	}
	t.Setenv(simcluster.BinaryVariable, program)
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	dir := filepath.Join(parent, "state")
	t.Cleanup(func() { _, _, _ = command(t, user, "down", "--dir", dir) })
	stdout, stderr, code := command(t, user, "up", "--dir", dir, "--nodes", "1")
	if code != 0 {
		t.Fatal(stdout, stderr, code)
	}
	status, stderr, code := command(t, user, "status", "--dir", dir)
	if code != 0 || !strings.Contains(status, "node-1") {
		t.Error(status, stderr, code)
	}
	if stdout, stderr, code := command(t, user, "down", "--dir", dir); code != 0 {
		t.Error(stdout, stderr, code)
	}
	for _, trace := range []string{"/tmp/simcluster-65534-*", "/usr/libexec/kubernetes", "/var/run/kubernetes"} {
		if left, err := filepath.Glob(trace); len(left) != 0 || err != nil {
			t.Error(left, err)
		}
	}
}
