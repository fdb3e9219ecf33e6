package web

import (
	"sync"
	"testing"
	"time"
)

func TestAPageIsDrawnOnceASecondForAll(t *testing.T) {
	drawn, began := 0, time.Now()
	page := shared[string]{make: func() string {
		drawn++
		return "page"
	}}
	var viewers sync.WaitGroup
	for range 50 {
		viewers.Go(func() {
			for range 20 {
				if got := page.get(); got != "page" {
					t.Errorf("got %q", got)
				}
			}
		})
	}
	viewers.Wait()
	if most := 1 + int(time.Since(began)/updateEvery); drawn > most {
		t.Errorf("drawn %d times for 50 viewers, and not %d times at most", drawn, most)
	}
	page.at = page.at.Add(-updateEvery)
	before := drawn
	if page.get(); drawn != before+1 {
		t.Errorf("what is a second old was shown again")
	}
}
