package truth_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// newStage starts the cluster of all situations, with Kueue and the other controllers that are built.
func newStage(t *testing.T) *truth.Stage {
	t.Helper()
	cluster := simcluster.Start(t,
		simcluster.NodeGroup(controlplane.NodeGroup{Name: "cpu", Count: 4, CPU: "4", Memory: "15Gi"}),
		simcluster.NodeGroup(controlplane.NodeGroup{
			Name: "gpu", Count: 2, CPU: "8", Memory: "32Gi", Resources: map[string]string{"nvidia.com/gpu": "4"}, Labels: map[string]string{"gpu": "t4"},
		}),
		simcluster.Image(controlplane.AnyImage, controlplane.HostImage),
		simcluster.Kueue(), simcluster.Controllers(built()...))
	simulator, err := program.Simulator(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stage, stop, err := truth.NewStage(t.Context(), cluster, simulator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stage
}

// built are the names of the controllers that are built.
func built() []string { return addon.Built(addon.Find(os.Getenv(simcluster.BinaryVariable))) }

// allBuilt reports whether all controllers are built that situations need.
func allBuilt() bool {
	return !slices.ContainsFunc([]string{addon.Kueue, addon.JobSet, addon.Trainer, addon.KubeRay}, func(name string) bool {
		return !slices.Contains(built(), name)
	})
}

// TestSituationsTurnOutAsForecast plays the situations in testdata. Those that do not are known, and become fewer. Some need
// a controller that only `make soak` builds before it plays them; without that, they are listed as not played.
func TestSituationsTurnOutAsForecast(t *testing.T) {
	dirs, err := filepath.Glob("testdata/situations/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there are no situations: %v", err)
	}
	stage := newStage(t)
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			situation, err := truth.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := stage.Play(t.Context(), situation)
			if meta.IsNoMatchError(err) && !truth.Broken(err) && !allBuilt() {
				fmt.Fprintf(rows, "%s\tits controller is not built\t\t%v\n", name, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(rows, "%s\t%s\t%.1fs\t%s\n", name, outcome.Verdict, outcome.Took.Seconds(), strings.Join(outcome.Why, "; "))
			switch expected := verdictsOf(name); {
			case slices.Contains(expected, outcome.Verdict):
			case outcome.Verdict == truth.Right:
				t.Errorf("it is forecast rightly now: take it out of %s", knownFile)
			default:
				t.Errorf("expected %q\n%s", expected, outcome)
			}
		})
	}
	if err := rows.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", &table)
}

func TestWhatIsKnownToBeForecastWronglyIsThere(t *testing.T) {
	for name := range known {
		if _, err := truth.Load(filepath.Join("testdata/situations", name)); err != nil {
			t.Errorf("%s names a situation that cannot be read: %v", knownFile, err)
		}
	}
}
