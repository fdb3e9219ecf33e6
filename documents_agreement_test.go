package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page is made by `make agreement`, the README by hand.
func TestTheReadmeRepeatsTheTotalsOfTheAgreementWithTheSchedulers(t *testing.T) {
	page, err := os.ReadFile("docs/development/agreement.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Join(strings.Fields(string(readme)), " ")
	totals := regexp.MustCompile(`(?m)^([0-9,]+ of [0-9,]+) (?:decisions|recordings|scenarios) were .*\.$`).FindAllStringSubmatch(string(page), -1)
	if len(totals) != 3 {
		t.Fatalf("the page has %d sentences with totals, not 3: %q", len(totals), totals)
	}
	for _, total := range totals {
		if !strings.Contains(plain, total[1]) {
			t.Errorf("the README does not say %q, of: %s", total[1], total[0])
		}
	}
	version, err := os.ReadFile("simcluster/kubeversion/version.txt")
	if err != nil {
		t.Fatal(err)
	}
	if heading := "\n## kube-scheduler " + strings.TrimSpace(string(version)) + "\n"; !strings.Contains(string(page), heading) {
		t.Errorf("the page is not of kube-scheduler %s: run make agreement", strings.TrimSpace(string(version)))
	}
}
