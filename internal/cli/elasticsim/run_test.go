package elasticsim

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

var (
	tutorial = filepath.Join("..", "..", "..", "examples", "scenarios", "elastic-scheduling.yaml")
	queues   = filepath.Join("..", "..", "..", "examples", "scenarios", "queue-priorities.yaml")
)

func TestRunPrintsWhatCameOfAScenario(t *testing.T) {
	out, err := call(t, "run", tutorial)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Elastic scheduling (seed 0)", "2, of which 2 completed", "pods preempted by the scheduler  1", "goodput", "1000000   1 of 1"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestRunWritesTheReportTheLogAndTheSummary(t *testing.T) {
	dir := t.TempDir()
	report, log := filepath.Join(dir, "report.html"), filepath.Join(dir, "events.jsonl")
	root := NewRoot("test")
	var out, stderr bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&stderr)
	root.SetArgs([]string{"run", queues, "-o", report, "--log", log, "--json"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "wrote the report to " + report + "\nwrote the event log to " + log + "\n"; stderr.String() != want {
		t.Errorf("it says %q, want %q", stderr.String(), want)
	}
	var summary struct {
		Evictions int     `json:"evictions"`
		Goodput   float64 `json:"goodput"`
	}
	if err := json.Unmarshal(out.Bytes(), &summary); err != nil || summary.Evictions != 1 || summary.Goodput < 0.5 || summary.Goodput > 1 {
		t.Errorf("%+v %v", summary, err)
	}
	page, err := os.ReadFile(report)
	if err != nil || !bytes.Contains(page, []byte("waiting for quota in queue user-queue")) || bytes.Contains(page, []byte("http")) {
		t.Errorf("the report: %v", err)
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	events, err := eventlog.Read(bytes.NewReader(lines))
	if err != nil || len(events) < 10 {
		t.Errorf("%d events, %v", len(events), err)
	}
	onOutput, err := call(t, "run", queues, "--log", "-")
	if err != nil || onOutput != string(lines) {
		t.Errorf("the log on the standard output is another one: %v", err)
	}
}

func TestCompareSetsScenariosSideBySide(t *testing.T) {
	out, err := call(t, "compare", tutorial, queues)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"elastic-scheduling.yaml", "queue-priorities.yaml", "workloads evicted by a queue", "priority 1000, waiting p50", "–"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out, err := call(t, "compare", "--json", tutorial, tutorial); err != nil || strings.Count(out, `"makespan_ms"`) != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTimesAreSaidToBeOfTheJobsThatEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cut.yaml")
	text := `name: Cut off
nodes: [{name: node, allocatable: {cpu: "1", memory: 4Gi}}]
priorityClasses: [{name: low, value: 10}]
until: 90m
jobs:
  - {name: job, repeat: {count: 5, every: 1m}, gang: {pods: 1, requests: {cpu: "1"}, priorityClass: low, runs: 40m}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", path}, {"compare", path, path}} {
		if out, err := call(t, args...); err != nil || !strings.Contains(out, "2 of 5") || !strings.Contains(out, "jobs completed") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func TestBadScenariosAndCommandLinesAreRefused(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("nodes: []\njobs: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no scenario":         {[]string{"run"}, cli.Usage, "SCENARIO is missing; see `elastic-sim run --help`"},
		"letters swapped":     {[]string{"rnu", tutorial}, cli.Usage, `unknown command "rnu"; did you mean run?`},
		"one to compare":      {[]string{"compare", tutorial}, cli.Usage, "SCENARIO is missing after"},
		"a seed that is none": {[]string{"run", tutorial, "--seed", "-1"}, cli.Usage, "--seed"},
		"nothing there":       {[]string{"run", "nowhere.yaml"}, cli.Failed, "nowhere.yaml"},
		"a broken scenario":   {[]string{"run", broken}, cli.Failed, "broken.yaml:2:7: jobs is \"5\" where a list is wanted"},
		"an unwritable log":   {[]string{"run", tutorial, "--log", filepath.Join(broken, "log")}, cli.Failed, "write the event log"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := call(t, test.args...); cli.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// crowded is a scenario of three hundred nodes.
const crowded = `name: Three hundred nodes
seed: 4
nodes: [{name: gpu, count: 300, allocatable: {cpu: "64", memory: 512Gi, nvidia.com/gpu: "8"}}]
priorityClasses: [{name: release, value: 1000}, {name: research, value: 10}]
failures: {meanTimeBetween: 400h, repair: 2h}
until: 24h
jobs:
  - {name: big, repeat: {count: 120, every: 8m, random: true}, gang: {pods: 8, requests: {nvidia.com/gpu: "8"}, priorityClass: research, runs: 4h, checkpointEvery: 30m, restart: 2m, stops: 10s}}
  - {name: release, submit: 10h, repeat: {count: 10, every: 1h}, gang: {pods: 20, requests: {nvidia.com/gpu: "8"}, priorityClass: release, runs: 90m}}
`

// screenshots is where a browser's pictures are kept, to be looked at.
var screenshots = filepath.Join("..", "..", "..", "e2e", "out", "simulator")

func TestTheReportIsAPictureInABrowser(t *testing.T) {
	browser := findBrowser(t)
	many := filepath.Join(t.TempDir(), "many.yaml")
	if err := os.WriteFile(many, []byte(crowded), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(screenshots, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, scenario := range map[string]string{"three-nodes": tutorial, "three-hundred-nodes": many} {
		report := filepath.Join(t.TempDir(), name+".html")
		if _, err := call(t, "run", scenario, "-o", report); err != nil {
			t.Fatal(err)
		}
		for mode, flag := range map[string]string{"light": "1", "dark": "0"} {
			picture := shoot(t, browser, report, filepath.Join(screenshots, name+"-"+mode+".png"), flag)
			if colours := coloursOf(picture); colours < 12 {
				t.Errorf("%s, %s: the picture has %d colours, as an empty page has", name, mode, colours)
			}
		}
	}
}

// findBrowser is a Chromium, or a Chrome.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed here; with one this test keeps pictures of reports in e2e/out/simulator")
	return ""
}

// shoot lets a browser without a screen and without a network draw a page.
func shoot(t *testing.T, browser, page, into, preferredScheme string) image.Image {
	t.Helper()
	path, err := filepath.Abs(page)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience.Medium)
	defer stop()
	out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP * ~NOTFOUND", "--blink-settings=preferredColorScheme="+preferredScheme, "--window-size=1100,2400",
		"--screenshot="+into, "file://"+path).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, out)
	}
	f, err := os.Open(into)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// coloursOf counts the colours of a picture, of every fourth point.
func coloursOf(picture image.Image) int {
	seen := map[[3]uint32]bool{}
	for y := 0; y < picture.Bounds().Dy(); y += 2 {
		for x := 0; x < picture.Bounds().Dx(); x += 2 {
			r, g, b, _ := picture.At(x, y).RGBA()
			seen[[3]uint32{r, g, b}] = true
		}
	}
	return len(seen)
}
