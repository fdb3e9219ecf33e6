package tutorial_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

func TestTheTutorialsCommandAppliedThroughElasticdlArgsTrains(t *testing.T) {
	u := newUser(t)
	config := fmt.Sprintf(`
terraform {
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path = %q
}

locals {
  low = provider::elastic::elasticdl_args(<<-EOT
%s
  EOT
  )
}

resource "elastic_training_job" "low" {
  name     = local.low.name
  image    = local.low.image
  model    = { content = file("%s/${local.low.model_file}") }
  data     = local.low.data
  training = local.low.training
  master   = local.low.master
  workers  = local.low.workers
  volumes  = local.low.volumes
  wait_for = "succeeded"
}

check "the_command_means_the_same_here" {
  assert {
    condition     = length(local.low.notices) == 0
    error_message = join("\n", local.low.notices)
  }
}

output "sha" {
  value = elastic_training_job.low.model_sha256
}
`, cluster.Kubeconfig, strings.TrimSuffix(command(t, "low"), "\n"), filepath.ToSlash(u.dir))
	r := providertest.NewTerminal(t)
	t.Cleanup(func() { u.remove(lowJob) })
	planned, code := r.Run(t, config, "plan")
	for _, notice := range []string{"--image_base=gcr.io/elasticdl/elasticdl:dev is replaced by", "--repository=gcr.io has no effect", "PersistentVolumeClaim"} {
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(planned), " "), notice) {
			t.Errorf("the plan (exit code %d) does not report %q:\n%s", code, notice, planned)
		}
	}
	applied, code := r.Run(t, config, "apply", "-auto-approve")
	if code != 0 || strings.Contains(applied, "sha = null") || strings.Contains(applied, "Warning: Training job") {
		t.Fatalf("apply exited with %d:\n%s", code, applied)
	}
	if destroyed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
		t.Fatalf("destroy exited with %d:\n%s", code, destroyed)
	}
	u.nothingIsLeft()
}
