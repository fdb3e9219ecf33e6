package elastictrainer

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
)

func newTestRoot() *cobra.Command { return NewRoot("test") }

func TestManners(t *testing.T) { clitest.Manners(t, newTestRoot) }

func TestCompletion(t *testing.T) {
	const (
		noFiles     = cobra.ShellCompDirectiveNoFileComp
		anyFile     = cobra.ShellCompDirectiveDefault
		files       = cobra.ShellCompDirectiveFilterFileExt
		directories = cobra.ShellCompDirectiveFilterDirs
	)
	var kernels []string
	for _, set := range kernel.Available() {
		kernels = append(kernels, set.Name)
	}
	clitest.Completes(t, newTestRoot, map[string]clitest.Completion{
		"commands of people and of pods":         clitest.Offered([]string{"m"}, []string{"model", "master"}, noFiles),
		"train's model":                          clitest.Offered([]string{"train", "--model", ""}, zoo.Names(), noFiles),
		"train's model by its beginning":         clitest.Offered([]string{"train", "--model=c"}, []string{"cifar10", "census_dnn"}, noFiles),
		"train's model file":                     clitest.Offered([]string{"train", "--model-file", ""}, []string{"py"}, files),
		"train's data":                           clitest.Offered([]string{"train", "--train-data-dir", ""}, nil, anyFile),
		"train's data, synthetic":                clitest.Offered([]string{"train", "--train-data-dir", "synth"}, []string{"synthetic://digits?records=10000&seed=1", "synthetic://shapes?records=10000&seed=1", "synthetic://frappe?records=10000&seed=1", "synthetic://census?records=10000&seed=1"}, noFiles),
		"train's data with ElasticDL's spelling": clitest.Offered([]string{"train", "--data_format", "t"}, []string{"tfrecord"}, noFiles),
		"train's aggregation":                    clitest.Offered([]string{"train", "--aggregation", ""}, []string{"master", "allreduce", "auto"}, noFiles),
		"train's codec":                          clitest.Offered([]string{"train", "--codec-type", ""}, []string{"bytes", "tf_example"}, noFiles),
		"train's directory":                      clitest.Offered([]string{"train", "-o", ""}, nil, directories),
		"train's kernels":                        clitest.Offered([]string{"train", "--kernel", ""}, kernels, noFiles),
		"train's log level":                      clitest.Offered([]string{"train", "--log-level", ""}, []string{"debug", "info", "warn", "error"}, noFiles),
		"submit's model, as train's":             clitest.Offered([]string{"submit", "--model=c"}, []string{"cifar10", "census_dnn"}, noFiles),
		"submit's dry run":                       clitest.Offered([]string{"submit", "--dry-run=c"}, []string{"client"}, noFiles),
		"submit's documents":                     clitest.Offered([]string{"submit", "-o", ""}, []string{"yaml", "json"}, noFiles),
		"no file for a number":                   clitest.Offered([]string{"train", "--num-epoch", ""}, nil, noFiles),
		"evaluate's checkpoint":                  clitest.Offered([]string{"evaluate", "--checkpoint", ""}, []string{"safetensors"}, files),
		"evaluate's directory":                   clitest.Offered([]string{"evaluate", "--model-dir", ""}, nil, directories),
		"predict's lines":                        clitest.Offered([]string{"predict", "--format", ""}, []string{"csv", "jsonl"}, noFiles),
		"predict's file":                         clitest.Offered([]string{"predict", "--output", ""}, []string{"csv", "jsonl"}, files),
		"a model to show":                        clitest.Offered([]string{"model", "m"}, []string{"mnist"}, noFiles),
		"a model file to show":                   clitest.Offered([]string{"model", "my"}, []string{"py"}, files),
		"no second model":                        clitest.Offered([]string{"model", "mnist", ""}, nil, noFiles),
		"what a module is written to":            clitest.Offered([]string{"python-module", ""}, nil, directories),
		"sets to make":                           clitest.Offered([]string{"data", "synth", "-o", "x", ""}, []string{"digits", "shapes", "frappe", "census"}, noFiles),
		"formats to write":                       clitest.Offered([]string{"data", "convert", "--to-format", ""}, []string{"recordio", "tfrecord", "idx"}, noFiles),
		"formats to read":                        clitest.Offered([]string{"data", "convert", "--data-format", ""}, []string{"recordio", "tfrecord", "csv", "idx"}, noFiles),
		"codecs to write":                        clitest.Offered([]string{"data", "synth", "--to-codec", ""}, []string{"bytes", "tf_example"}, noFiles),
		"compressors of RecordIO":                clitest.Offered([]string{"data", "synth", "--compressor", ""}, []string{"none", "snappy", "gzip"}, noFiles),
		"compressors of TFRecord":                clitest.Offered([]string{"data", "synth", "--to-format=tfrecord", "--compressor", ""}, []string{"none", "gzip", "zlib"}, noFiles),
		"data to look at":                        clitest.Offered([]string{"data", "inspect", ""}, nil, anyFile),
		"a sheet of images":                      clitest.Offered([]string{"data", "inspect", "--sheet", ""}, []string{"png"}, files),
	})
}
