package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
)

var bothAggregations = []string{trainingjob.AggregationMaster, trainingjob.AggregationAllReduce}

// survived are the ways of training a job whose master dies too: some, or with ELASTIC_SOAK all of them.
func survived(some ways) []run {
	if os.Getenv("ELASTIC_SOAK") == "" {
		return some.runs()
	}
	all := ways{kernels: kernels(), workers: []int{1, 2, 3, 8}, aggregations: bothAggregations, stops: []int{0, 1}}
	undisturbed := all.runs()
	all.kills, all.masterKills = []int{50}, []int{5}
	return append(undisturbed, all.runs()...)
}

func TestTheReferenceJobGivesOneHashWhenItsMasterDiesAndStops(t *testing.T) {
	givesOneHash(t, reference("testdata/reference_model.py"), survived(ways{
		workers: []int{3, 8}, kills: []int{8}, masterKills: []int{3}, stops: []int{0, 1}, aggregations: bothAggregations,
	}))
}

func TestEveryModelOfTheZooGivesOneHashWhenItsMasterDiesAndStops(t *testing.T) {
	if underRace {
		t.Skip("it trains seven models again and again")
	}
	for name, spec := range zooJobs(t) {
		if testing.Short() && name != "wide_deep" { // it has dense layers, and tables of embeddings
			continue
		}
		t.Run(name, func(t *testing.T) {
			givesOneHash(t, spec, survived(ways{workers: []int{3}, kills: []int{2}, masterKills: []int{1}, stops: []int{1}, aggregations: bothAggregations}))
		})
	}
}

func TestEveryRecordCountsOnceWhenMastersDieAndStop(t *testing.T) {
	everyRecordCountsOnce(t, survived(ways{workers: []int{3, 8}, kills: []int{10}, masterKills: []int{3}, stops: []int{1}, aggregations: bothAggregations}))
}

// zooJobs is a job of some thirty steps for each built-in model.
func zooJobs(t *testing.T) map[string]trainingjob.Job {
	t.Helper()
	flowers, err := filepath.Abs("../../ml/zoo/testdata/iris.csv")
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]trainingjob.Job{}
	for model, set := range map[string]string{"deepfm": "frappe", "wide_deep": "census", "census_dnn": "census"} {
		spec := reference("../../ml/zoo/" + model + ".py")
		spec.Data.Training = data.Synthetic(set, 1200, 1)
		jobs[model] = spec
	}
	for _, model := range []string{"cifar10", "resnet"} {
		spec := reference("../../ml/zoo/" + model + ".py")
		spec.Data.Training, spec.Data.RecordsPerTask = data.Synthetic("shapes", 180, 1), 18
		spec.Training.MinibatchSize = 3
		spec.Training.LearningRate = new(0.01)
		jobs[model] = spec
	}
	mnist := reference("../../ml/zoo/mnist.py")
	mnist.Data.Training = data.Synthetic("digits", 600, 1)
	mnist.Training.MinibatchSize = 5
	jobs["mnist"] = mnist
	iris := reference("../../ml/zoo/iris.py")
	iris.Training.Epochs = 8
	iris.Data = trainingjob.Data{Training: flowers, Format: dataset.CSV, Codec: "bytes", RecordsPerTask: 30, CSV: &trainingjob.CSV{
		Columns: map[string][]string{"features": {"sepal_length", "sepal_width", "petal_length", "petal_width"}, "label": {"species"}},
		Words:   map[string][]string{"species": {"setosa", "versicolor", "virginica"}},
	}}
	jobs["iris"] = iris
	return jobs
}
