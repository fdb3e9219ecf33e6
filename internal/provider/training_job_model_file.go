package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
)

// checkModelFile reads a job's model file as its master will: a mistake that the master would refuse is an error with
// its line, and a probable mistake a warning. It does not read a script of another framework.
func checkModelFile(d trainingjob.Definition) diag.Diagnostics {
	var diags diag.Diagnostics
	if d.ModelText == "" || len(d.Job.Command) > 0 {
		return diags
	}
	at := path.Root("model").AtName("content")
	_, report, err := modelfile.Load(at.String(), []byte(d.ModelText), modelfile.Options{LearningRate: d.Job.Training.LearningRate})
	if err != nil {
		diags.AddAttributeError(at, "Invalid model file", fmt.Sprintf("%s.\n\n"+
			"To check a model file and show its layers, run elastic-trainer model FILE. A script of another framework, such as PyTorch, needs workers.command.", err))
		return diags
	}
	for _, warning := range report.Warnings {
		diags.AddAttributeWarning(at, "Possible mistake in the model file", fmt.Sprintf("%s, %s.", at, warning))
	}
	return diags
}
