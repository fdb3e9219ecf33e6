package tutorial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/elasticdl"
)

// The names of the two jobs.
const (
	lowJob  = "low-prio-job"
	highJob = "high-prio-job"
)

// command is the tutorial's command that submits the job of lower or of higher priority.
func command(t *testing.T, priority string) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/migrate/elasticdl/testdata/tutorial-" + priority + ".sh")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// modelFile is the commands' --model_file, below the directory in which they are typed.
const modelFile = "elasticdl/python/examples/mnist_functional_api.py"

// checkout makes dir the directory in which the tutorial types its commands: it has the model file, from the examples
// of this repository, whose root is given.
func checkout(root, dir string) error {
	text, err := os.ReadFile(filepath.Join(root, "examples", "models", filepath.Base(modelFile)))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, filepath.FromSlash(modelFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// prepare gives a cluster whose nodes are this machine what the tutorial's cluster has: the two priority classes, and
// so many records in mnist/train of the PersistentVolumeClaim of ElasticDL's client, in a directory. The trainer, a
// program, writes them.
func prepare(ctx context.Context, client kubernetes.Interface, namespace, trainer, dir string, records int) error {
	synth := exec.CommandContext(ctx, trainer, "data", "synth", "--output", filepath.Join(dir, "mnist", "train"), "--records", strconv.Itoa(records)) //nolint:gosec // ours
	if printed, err := synth.CombinedOutput(); err != nil {
		return fmt.Errorf("write the records: %w\n%s", err, printed)
	}
	var errs []error
	made := func(_ metav1.Object, err error) {
		if !apierrors.IsAlreadyExists(err) {
			errs = append(errs, err)
		}
	}
	for name, value := range map[string]int32{"high-priority": 1_000_000, "low-priority": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		made(client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}))
	}
	storage := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	made(client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + elasticdl.Claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: storage, AccessModes: modes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: elasticdl.Claim},
		},
	}, metav1.CreateOptions{}))
	made(client.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: elasticdl.Claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: storage}, StorageClassName: new(string),
		},
	}, metav1.CreateOptions{}))
	return errors.Join(errs...)
}
