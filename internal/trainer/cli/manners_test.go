package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/commandline/commandlinetest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/zoo"
)

func newTestRoot() *cobra.Command { return NewRoot("test") }

func TestManners(t *testing.T) { commandlinetest.Manners(t, newTestRoot) }

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
	commandlinetest.Completes(t, newTestRoot, map[string]commandlinetest.Completion{
		"commands of people and of pods":         commandlinetest.Offered([]string{"m"}, []string{"model", "master"}, noFiles),
		"train's model":                          commandlinetest.Offered([]string{"train", "--model", ""}, zoo.Names(), noFiles),
		"train's model by its beginning":         commandlinetest.Offered([]string{"train", "--model=c"}, []string{"cifar10", "census_dnn"}, noFiles),
		"train's model file":                     commandlinetest.Offered([]string{"train", "--model-file", ""}, []string{"py"}, files),
		"train's data":                           commandlinetest.Offered([]string{"train", "--train-data-dir", ""}, nil, anyFile),
		"train's data, synthetic":                commandlinetest.Offered([]string{"train", "--train-data-dir", "synth"}, []string{"synthetic://digits?records=10000&seed=1", "synthetic://shapes?records=10000&seed=1", "synthetic://frappe?records=10000&seed=1", "synthetic://census?records=10000&seed=1"}, noFiles),
		"train's data with ElasticDL's spelling": commandlinetest.Offered([]string{"train", "--data_format", "t"}, []string{"tfrecord"}, noFiles),
		"train's aggregation":                    commandlinetest.Offered([]string{"train", "--aggregation", ""}, []string{"master", "allreduce", "auto"}, noFiles),
		"train's codec":                          commandlinetest.Offered([]string{"train", "--codec-type", ""}, []string{"bytes", "tf_example"}, noFiles),
		"train's directory":                      commandlinetest.Offered([]string{"train", "-o", ""}, nil, directories),
		"train's kernels":                        commandlinetest.Offered([]string{"train", "--kernel", ""}, kernels, noFiles),
		"train's log level":                      commandlinetest.Offered([]string{"train", "--log-level", ""}, []string{"debug", "info", "warn", "error"}, noFiles),
		"no file for a number":                   commandlinetest.Offered([]string{"train", "--num-epoch", ""}, nil, noFiles),
		"evaluate's checkpoint":                  commandlinetest.Offered([]string{"evaluate", "--checkpoint", ""}, []string{"safetensors"}, files),
		"evaluate's directory":                   commandlinetest.Offered([]string{"evaluate", "--model-dir", ""}, nil, directories),
		"predict's lines":                        commandlinetest.Offered([]string{"predict", "--format", ""}, []string{"csv", "jsonl"}, noFiles),
		"predict's file":                         commandlinetest.Offered([]string{"predict", "--output", ""}, []string{"csv", "jsonl"}, files),
		"a model to show":                        commandlinetest.Offered([]string{"model", "m"}, []string{"mnist"}, noFiles),
		"a model file to show":                   commandlinetest.Offered([]string{"model", "my"}, []string{"py"}, files),
		"no second model":                        commandlinetest.Offered([]string{"model", "mnist", ""}, nil, noFiles),
		"what a module is written to":            commandlinetest.Offered([]string{"python-module", ""}, nil, directories),
		"sets to make":                           commandlinetest.Offered([]string{"data", "synth", "-o", "x", ""}, []string{"digits", "shapes", "frappe", "census"}, noFiles),
		"formats to write":                       commandlinetest.Offered([]string{"data", "convert", "--to-format", ""}, []string{"recordio", "tfrecord", "idx"}, noFiles),
		"formats to read":                        commandlinetest.Offered([]string{"data", "convert", "--data-format", ""}, []string{"recordio", "tfrecord", "csv", "idx"}, noFiles),
		"codecs to write":                        commandlinetest.Offered([]string{"data", "synth", "--to-codec", ""}, []string{"bytes", "tf_example"}, noFiles),
		"compressors of RecordIO":                commandlinetest.Offered([]string{"data", "synth", "--compressor", ""}, []string{"none", "snappy", "gzip"}, noFiles),
		"compressors of TFRecord":                commandlinetest.Offered([]string{"data", "synth", "--to-format=tfrecord", "--compressor", ""}, []string{"none", "gzip", "zlib"}, noFiles),
		"data to look at":                        commandlinetest.Offered([]string{"data", "inspect", ""}, nil, anyFile),
		"a sheet of images":                      commandlinetest.Offered([]string{"data", "inspect", "--sheet", ""}, []string{"png"}, files),
	})
}
