package placement

import "testing"

func TestOnlyTheTestedVersionsOfKubernetesAreTested(t *testing.T) {
	for version, want := range map[string]string{
		"":                          "",
		"v1.36.1":                   "",
		"v1.36.3-gke.1234":          "",
		"v1.36.0+k3s1":              "",
		"v1.34.1-eks-3025e55":       "of version 1.34",
		"v1.37.0-alpha.1":           "of version 1.37",
		"v0.0.0-master+$Format:%H$": "of version 0.0",
		"unknown":                   "of an unknown version",
	} {
		if got := Untested(version); got != want {
			t.Errorf("%q is %q, not %q", version, got, want)
		}
	}
}
