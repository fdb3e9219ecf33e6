package farmhash

import "testing"

func TestBucketsAreThoseOfElasticDLsDocumentation(t *testing.T) {
	for text, want := range map[string]int64{"A": 1, "B": 0, "C": 1, "D": 1, "E": 2} {
		if got := Bucket([]byte(text), 3); got != want {
			t.Errorf("%q is in bucket %d of 3, and in %d in TensorFlow", text, got, want)
		}
	}
}

// The sum was made by github.com/dgryski/go-farm, which is another implementation.
func TestFingerprintsOfAllLengthsAreFarmHashs(t *testing.T) {
	var text []byte
	sum := uint64(0)
	for i := range 301 {
		sum = sum*1099511628211 + Fingerprint64(text)
		text = append(text, byte(i*7+3))
	}
	if sum != 0x83095d3b9f41a328 {
		t.Errorf("the fingerprints of 0 to 300 bytes add up to %#x", sum)
	}
}
