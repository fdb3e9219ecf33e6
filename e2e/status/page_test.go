// Package status tests the web page of a job in a real browser.
package status

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history/historytest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/page"
)

func TestReportsAreReadableInEveryBrowserWindow(t *testing.T) {
	ctx := browse(t)
	for name, h := range map[string]*history.History{
		"report-2-workers":  historytest.NewRun(2, 4*time.Minute).Succeed(),
		"report-16-workers": historytest.NewRun(16, 12*time.Minute).Succeed(),
		"report-64-workers": historytest.NewRun(64, 25*time.Minute).History,
		"report-at-once":    historytest.NewRun(1, 300*time.Millisecond).History,
	} {
		file, err := filepath.Abs(filepath.Join(t.TempDir(), "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, page.Report(h, historytest.Began.Add(time.Hour)), 0o600); err != nil {
			t.Fatal(err)
		}
		look(ctx, t, "file://"+file, name, "#head")
	}
}
