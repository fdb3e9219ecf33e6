package training_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// looter is what a hostile script does before it computes: it looks for everything that the master has, by the paths
// and the environment of its container and through the processes that it sees, and tries to put something in the
// master's way.
const looter = `
import glob, os
def found(what): print("FOUND", what, flush=True)
for path in glob.glob("/var/run/secrets/kubernetes.io/*/*") + glob.glob("/etc/elastic-credentials/*") + glob.glob("/etc/elastic/*"):
    found(path)
for name in os.environ:
    if any(word in name for word in ("TOKEN", "SECRET", "KEY", "CREDENTIAL")):
        found("variable " + name)
for process in glob.glob("/proc/[0-9]*"):
    try:
        with open(process + "/cmdline") as f:
            line = f.read().split("\0")
    except OSError:
        continue
    if "master" in line:
        found("the master: " + process)
        for path in ("/etc/elastic-credentials/tls.key", "/var/run/secrets/kubernetes.io/serviceaccount/token"):
            seen = os.path.join(process, "root") + path # its root file system, as /proc shows it
            try:
                open(seen).close()
                found(seen)
            except OSError:
                pass
for change in (lambda: os.mkdir("/elastic-script/mine"), lambda: os.remove("/elastic-script/script"), lambda: os.rename("/elastic-script/script", "/elastic-script/other")):
    try:
        change()
        found("a way to change the master's sockets")
    except OSError:
        pass
if os.path.isdir("/elastic-script"): # a worker has none
    print("LOOKED AROUND", sorted(os.listdir("/elastic-script")), flush=True)
`

func TestAHostileScriptFindsNothingOfTheMaster(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	script, err := os.ReadFile(countingScript)
	if err != nil {
		t.Fatal(err)
	}
	d := define(t, countingScript)
	d.Job.Name, d.Job.Command, d.Job.Data.Training = "hostile", []string{python}, "indices://numbers?records=700"
	text := string(script)
	// Behind "from __future__" and the documentation, which must come first.
	at := strings.Index(text, "\nimport ")
	d.ModelText = text[:at+1] + looter + text[at+1:]
	j := start(t, d)
	j.awaitSuccess()
	pods, err := j.pods(t.Context(), trainingjob.RoleMaster)
	if err != nil || len(pods) != 1 {
		t.Fatal(pods, err)
	}
	j.await("the script's log", func(ctx context.Context) (string, bool, error) {
		raw, err := j.client.CoreV1().Pods(j.ns).GetLogs(pods[0].Name, &corev1.PodLogOptions{Container: "script"}).DoRaw(ctx)
		log := string(raw)
		for line := range strings.Lines(log) {
			if strings.Contains(line, "FOUND") {
				t.Error(strings.TrimSpace(line))
			}
		}
		return log, strings.Contains(log, "LOOKED AROUND ['control', 'script']") || strings.Contains(log, "LOOKED AROUND ['script']"), err
	})
}
