//go:build !podsonly

package elastictrainer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clusterflags"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// cleanUpTimeout bounds the deletion of a job of which not all objects could be created.
const cleanUpTimeout = 30 * time.Second

func (s *submission) run(cmd *cobra.Command) error {
	dryRun, err := s.isDryRun()
	if err != nil {
		return err
	}
	d, err := s.define(cmd)
	if err != nil {
		return err
	}
	fmt.Fprint(cmd.ErrOrStderr(), s.text())
	credentials, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(d.Job.Name))
	if err != nil {
		return err
	}
	objects, err := trainingjob.Render(d, credentials)
	if err != nil {
		return err
	}
	if dryRun {
		return printObjects(cmd.OutOrStdout(), objects, s.output)
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	if err := create(cmd.Context(), client, d, objects); err != nil {
		return err
	}
	in := ""
	if s.namespace != corev1.NamespaceDefault {
		in = " -n " + s.namespace
	}
	fmt.Fprintf(cmd.OutOrStdout(), "training job %s/%s created, with a master and %s\n\nTo follow it:\n  elastic-trainer status%s %s\n  elastic-trainer logs%s %s\n",
		s.namespace, d.Job.Name, upTo(d), in, d.Job.Name, in, d.Job.Name)
	return nil
}

// upTo reports how many workers a job has.
func upTo(d trainingjob.Definition) string {
	if d.Min == d.Max {
		return wording.Number(d.Max, "worker")
	}
	return fmt.Sprintf("%d to %s", d.Min, wording.Number(d.Max, "worker"))
}

// create makes a job's objects and starts it. Of a job that cannot be made whole nothing stays.
func create(ctx context.Context, client *cluster.Client, d trainingjob.Definition, objects *trainingjob.Objects) error {
	if err := checkClasses(ctx, client, d); err != nil {
		return err
	}
	created, err := cluster.Create(ctx, client, client.Kubernetes().BatchV1().Jobs(d.Job.Namespace), objects.Job)
	var exists *cluster.AlreadyExistsError
	if errors.As(err, &exists) {
		return fmt.Errorf("the Job %s/%s already exists; choose another --job-name, or delete that job first: elastic-trainer delete -n %s %s",
			d.Job.Namespace, d.Job.Name, d.Job.Namespace, d.Job.Name)
	}
	if err != nil {
		return clusterflags.Explained(err)
	}
	ref := refOf(created)
	objects.Own(ref)
	for _, part := range objects.Parts() {
		if err = jobparts.Create(ctx, client, part, ref); err != nil {
			break
		}
	}
	if err == nil {
		err = jobparts.Resume(ctx, client, ref)
	}
	if err == nil {
		return nil
	}
	cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	if left := jobparts.DeleteJob(cleanUp, client, trainingjob.LabelJobName, ref); left != nil {
		return errors.Join(clusterflags.Explained(err), fmt.Errorf("could not delete the incomplete job: %w", clusterflags.Explained(left)))
	}
	return clusterflags.Explained(err)
}

// checkClasses refuses PriorityClasses that do not exist, before anything is created: the API server would accept the
// Job, and then reject each of its pods. It checks nothing if the user may not read classes.
func checkClasses(ctx context.Context, client *cluster.Client, d trainingjob.Definition) error {
	for _, use := range [][2]string{{"master", d.Master.PriorityClassName}, {"worker", d.Workers.PriorityClassName}} {
		role, class := use[0], use[1]
		if class == "" {
			continue
		}
		_, err := cluster.Get(ctx, client, client.Kubernetes().SchedulingV1().PriorityClasses(), class)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("--%s-pod-priority=%s: this PriorityClass does not exist, and Kubernetes would reject every pod that uses it; "+
				"create it first, for example: kubectl create priorityclass %s --value=1000", role, class, class)
		case err != nil && !apierrors.IsForbidden(err):
			return clusterflags.Explained(err)
		}
	}
	return nil
}

// printObjects writes a job's objects as kubectl does: as documents of YAML, or as a List in JSON.
func printObjects(out io.Writer, objects *trainingjob.Objects, format string) error {
	all := append([]trainingjob.Object{objects.Job}, objects.Parts()...)
	if format == "json" {
		list := corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
		for _, object := range all {
			list.Items = append(list.Items, runtime.RawExtension{Object: object})
		}
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(list)
	}
	for i, object := range all {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out, "---")
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}
