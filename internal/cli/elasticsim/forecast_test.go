package elasticsim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

func TestAForecastThatCannotBeMadeIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("name: j\npods: [{name: p, requests: {cpu: 1}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no file":            {[]string{"forecast"}, cli.Usage, "--filename or --plan is missing; see `elastic-sim forecast --help`"},
		"two files":          {[]string{"forecast", "-f", file, "--plan", file}, cli.Usage, "mutually exclusive"},
		"no such format":     {[]string{"forecast", "-f", file, "--format", "xml"}, cli.Usage, "text, json or markdown"},
		"no such code":       {[]string{"forecast", "-f", file, "--accepted-reasons", "to-many-choices"}, cli.Usage, "is no code of a reason"},
		"an argument":        {[]string{"forecast", "-f", file, "again"}, cli.Usage, "--help"},
		"no such file":       {[]string{"forecast", "-f", "nowhere.yaml"}, cli.Failed, "nowhere.yaml"},
		"no such kubeconfig": {[]string{"forecast", "-f", file, "--kubeconfig", "nowhere"}, cli.Failed, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := call(t, test.args...); cli.Code(err) != test.code || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
