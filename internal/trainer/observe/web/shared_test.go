package web

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPageIsDrawnOnceASecondForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drawn := 0
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
		if drawn != 1 {
			t.Errorf("drawn %d times for 50 viewers", drawn)
		}
		time.Sleep(updateEvery - 1)
		if page.get(); drawn != 1 {
			t.Error("it was drawn again within a second")
		}
		time.Sleep(time.Nanosecond)
		if page.get(); drawn != 2 {
			t.Error("what is a second old was shown again")
		}
	})
}
