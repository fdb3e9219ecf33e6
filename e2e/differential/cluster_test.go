package differential

import (
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

func TestTheEngineDecidesAsTheEmbeddedClustersSchedulerDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; TestTheEngineDecidesAsKubeSchedulersCodeDoes compares in this process")
	}
	embedded := simcluster.Start(t, simcluster.SchedulerOnly())
	config, err := embedded.Config()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := NewCluster(config)
	if err != nil {
		t.Fatal(err)
	}
	first, count := seeds(40, 1500)
	begin := time.Now()
	var tally Tally
	for seed := first; seed < first+count; seed++ {
		snapshot, family := generate(seed)
		if len(snapshot.Storage.Classes) > 0 || len(snapshot.Devices.Classes) > 0 { // whose controllers are not here
			continue
		}
		steps, err := cluster.Decide(t.Context(), snapshot)
		if err != nil {
			t.Fatalf("seed %d, family %q: %v\n%s", seed, family, err, snapshot)
		}
		for _, step := range steps {
			compared, err := Compare(t.Context(), step)
			if err != nil {
				t.Errorf("seed %d, family %q, pod %s: %v\n%s", seed, family, nameOf(step.Pod), err, step.Before)
				continue
			}
			tally.Count(family, compared)
			if compared.Result == Different {
				t.Errorf("seed %d, family %q; replay with: go -C e2e test ./differential -run %s -seed %d -v\n%s",
					seed, family, t.Name(), seed, compared)
			}
		}
	}
	t.Logf("seeds %d to %d in %s\n%s", first, first+count-1, time.Since(begin).Round(time.Second), &tally)
}
