package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

// limits are the rows of the guide "Limits" and the constants that hold them: FOLDER.NAME.
var limits = map[string]string{
	"characters of a job's name":             "internal/api/trainingjob.MaxNameLength",
	"`training.epochs`":                      "internal/api/trainingjob.MaxEpochs",
	"`training.minibatch_size`":              "internal/api/trainingjob.MaxMinibatchSize",
	"`training.grads_to_wait`":               "internal/api/trainingjob.MaxGradsToWait",
	"`data.records_per_task`":                "internal/api/trainingjob.MaxRecordsPerTask",
	"`workers.max`":                          "internal/api/trainingjob.MaxWorkers",
	"`checkpoint.interval_steps`":            "internal/api/trainingjob.MaxSteps",
	"`checkpoint.max_to_keep`":               "internal/api/trainingjob.MaxKeep",
	"records in one task (range)":            "internal/trainer/protocol/schedule.maxRangeRecords",
	"tasks (ranges) in an epoch":             "internal/trainer/protocol/schedule.maxRanges",
	"a model kept in ConfigMap `NAME-model`": "internal/api/trainingjob.MaxModelConfigMapBytes",
	"the state of a script":                  "4 * internal/trainer/runtime/framework.maxState",

	"consecutive worker failures without a gradient from any worker":  "internal/trainer/runtime/master.maxFailures",
	"ticks of 100 ms without a message until a worker counts as lost": "internal/trainer/runtime/master.silentTicks",
	"steps between two comparisons of the workers' state hashes":      "internal/trainer/runtime/master.hashEvery",
	"characters of a task's name":                                     "internal/api/task.MaxNameLength",
	"`num_nodes`":                                                     "internal/api/task.maxNodes",
	"accelerators of a pod":                                           "internal/api/task/accelerator.maxCount",
	"alternatives in `accelerators`":                                  "internal/api/task/accelerator.maxChoices",
	"times that a task may be started":                                "internal/api/task/gang.maxRuns",
	"size of a file with all that it imports":                         "internal/trainer/ml/modelfile.maxSourceBytes",
	"modules that a file imports":                                     "internal/trainer/ml/modelfile.maxModules",
	"nested brackets or blocks":                                       "internal/trainer/ml/modelfile.maxNesting",
	"layers":                                                          "internal/trainer/ml/modelfile.maxLayers",
	"features of a record":                                            "internal/trainer/ml/modelfile.maxFeatures",
	"one dimension of a tensor":                                       "internal/trainer/ml/modelfile.maxDimension",
	"dimensions of a tensor":                                          "internal/trainer/ml/modelfile.maxRank",
	"elements of a tensor":                                            "internal/trainer/ml/modelfile.maxElements",
	"a record of the `bytes` and `tf_example` codecs":                 "internal/trainer/data/codec.maxRecordBytes",
	"features of one `tf.train.Example`":                              "internal/trainer/data/example.maxFeatures",
	"a record of a TFRecord file":                                     "internal/trainer/data/tfrecord.MaxRecordBytes",
	"a chunk of a RecordIO file, decoded":                             "internal/trainer/data/recordio.MaxDecodedChunkBytes",
	"decompressed size of one compressed block":                       "internal/trainer/data/expand.MinLimit",
	"an image of an IDX file":                                         "internal/trainer/data/idx.maxImageBytes",
	"a pair of compressed IDX files, decoded":                         "internal/trainer/data/idx.MaxPairBytes",
	"the header row of a CSV file":                                    "internal/trainer/data/table.maxHeaderBytes",
	"a row of a CSV file":                                             "internal/trainer/data/table.maxRowBytes",
	"records of a `synthetic://` data set":                            "internal/api/dataset.maxSyntheticRecords",
	"the default cache of read data":                                  "internal/trainer/data.maxDefaultCacheBytes",
	"characters of `field_manager`":                                   "internal/provider.maxFieldManagerLength",
	"pods of one group in `data.elastic_forecast`":                    "internal/provider.maxForecastPods",
	"training jobs whose status one forecast reads":                   "internal/provider.maxJobsRead",
	"dry runs at the same time":                                       "internal/cluster/snapshot.maxDryRuns",
	"pods of one object":                                              "internal/scheduler/forecast/manifest.MaxPods",
	"a job file":                                                      "internal/scheduler/forecast/jobfile.MaxBytes",
	"a plan as JSON":                                                  "internal/scheduler/forecast/terraformplan.MaxBytes",
	"pending pods of higher priority, and of lower priority (each)":   "internal/scheduler/forecast.maxPending",
	"placement attempts of a forecast, over all alternatives":         "internal/scheduler/forecast.maxTries",
	"possible victims that a forecast lists":                          "internal/scheduler/forecast.maxPossible",
	"simulated scheduling cycles of a queue":                          "internal/scheduler/forecast.maxCycles",
	"nodes of a cluster for which a start time is estimated":          "internal/scheduler/forecast.maxEstimateNodes",
	"rows of a Markdown report":                                       "internal/scheduler/forecast/report.maxRows",
	"nodes":                                                           "internal/scheduler/simulator/scenariofile.MaxNodes",
	"jobs":                                                            "internal/scheduler/simulator/scenariofile.MaxJobs",
	"pods of a job":                                                   "internal/scheduler/simulator/scenariofile.MaxPodsOfJob",
	"pods of all jobs":                                                "internal/scheduler/simulator/scenariofile.MaxPods",
	"steps of a job":                                                  "internal/scheduler/simulator/scenariofile.maxSteps",
	"a scenario file":                                                 "internal/scheduler/simulator/scenariofile.maxBytes",
	"`run`, `setup` and the files of `workdir` together":              "internal/api/task.MaxConfigMapBytes",
	"rows of ElasticDL's `Embedding` without `input_dim`":             "internal/trainer/ml/modelfile.defaultRows",
	"consecutive restarts of a master in its container, each after less than a minute": "internal/trainer/runtime/supervise.maxRestarts",
	"memory of the interpreter":   "", // a field of defaultLimits
	"time for a plan's forecasts": "", // a duration
}

func TestTheLimitsOfTheGuideAreThoseOfTheCode(t *testing.T) {
	d, err := doccheck.Open(".", "templates/guides/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([0-9][^|]*) \|`).FindAllStringSubmatch(d.Text, -1) {
		name, documented := row[1], row[2]
		seen[name] = true
		symbol, known := limits[name]
		if !known {
			t.Errorf("no constant is known for %q", name)
		}
		if symbol == "" {
			continue
		}
		if number, err := numberOf(documented); err != nil || number != constantOf(t, symbol) {
			t.Errorf("%s: the guide has %s (%v), and %s is %d", name, documented, err, symbol, constantOf(t, symbol))
		}
	}
	for name := range limits {
		if !seen[name] {
			t.Errorf("the guide has no row %q", name)
		}
	}
}

// numberOf reads "1,000" and "64 MiB".
func numberOf(text string) (int64, error) {
	digits, unit, _ := strings.Cut(text, " ")
	shift, known := map[string]int{"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]
	if !known {
		return 0, fmt.Errorf("unit %q is not known", unit)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, ",", ""), 10, 64)
	return n << shift, err
}

// constantOf is the value of FOLDER.NAME, an integer constant, perhaps with a factor before it.
func constantOf(t *testing.T, symbol string) int64 {
	t.Helper()
	factor := int64(1)
	if number, rest, multiplied := strings.Cut(symbol, " * "); multiplied {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		factor, symbol = n, rest
	}
	at := strings.LastIndexByte(symbol, '.')
	values := constantsOf(t, symbol[:at])
	value, found := values[symbol[at+1:]]
	if !found {
		t.Fatalf("there is no constant %s", symbol)
	}
	result, err := types.Eval(token.NewFileSet(), nil, token.NoPos, types.ExprString(value))
	if err != nil {
		t.Fatalf("%s: %v", symbol, err)
	}
	n, exact := constant.Int64Val(constant.ToInt(result.Value))
	if !exact {
		t.Fatalf("%s is %v", symbol, result.Value)
	}
	return factor * n
}

// constantsOf are the constants that a folder's files declare with a value of their own.
func constantsOf(t *testing.T, folder string) map[string]ast.Expr {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]ast.Expr{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			group, is := declaration.(*ast.GenDecl)
			if !is || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						values[name.Name] = spec.Values[i]
					}
				}
			}
		}
	}
	return values
}
