package status

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// pictures is where what the browser showed is kept, to be looked at.
const pictures = "../out/status"

// browse starts a Chromium without a screen and without a way to any other machine.
func browse(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed here; with one this test looks at the page of a job and keeps pictures of it in e2e/out/status")
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...) // the test's own context ends before the browser can
	t.Cleanup(stop)
	browser, end := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		if err := chromedp.Cancel(browser); err != nil {
			t.Error(err)
		}
		end()
	})
	browserErrors(browser, t)
	if err := chromedp.Run(browser); err != nil { // it lives as long as the context that it was first used with
		t.Fatal(err)
	}
	ctx, limit := context.WithTimeout(browser, patience.Long)
	t.Cleanup(limit)
	return ctx
}

// complaints makes errors of what the browser reports: scripts that fail, what the page's own policy forbids, requests
// that go elsewhere.
func browserErrors(ctx context.Context, t *testing.T) {
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page's script fails: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			t.Errorf("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
		case *network.EventLoadingFailed:
			if !e.Canceled {
				t.Errorf("a request fails: %s", e.ErrorText)
			}
		}
	})
}

// looks are the ways in which each page is looked at.
var looks = []struct {
	name          string
	width, height int64
	scheme        string
}{
	{"wide-light", 1280, 900, "light"},
	{"wide-dark", 1280, 900, "dark"},
	{"phone-light", 375, 812, "light"},
	{"phone-dark", 375, 812, "dark"},
	{"small-phone-light", 320, 640, "light"},
}

// look opens a page in every way, checks its layout and keeps pictures. ready is a selector of what is awaited.
func look(ctx context.Context, t *testing.T, url, name, ready string) {
	for _, l := range looks {
		var faults []string
		var picture []byte
		err := chromedp.Run(
			ctx,
			emulation.SetDeviceMetricsOverride(l.width, l.height, 2, l.width < 700),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}),
			chromedp.Navigate(url),
			chromedp.WaitVisible(ready, chromedp.ByQuery),
			chromedp.Evaluate(faultsScript, &faults),
			chromedp.FullScreenshot(&picture, 100),
		)
		if err != nil {
			t.Fatalf("%s, %s: %v", name, l.name, err)
		}
		for _, fault := range faults {
			t.Errorf("%s, %s: %s", name, l.name, fault)
		}
		if err := os.WriteFile(filepath.Join(pictures, fmt.Sprintf("%s-%s.png", name, l.name)), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// faultsScript lists what a reader would stumble on: a page wider than the screen, text that is cut off or outside its
// picture, texts of a picture that cover one another, text of too little contrast, what has no name for a screen
// reader.
const faultsScript = `(() => {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push("the page is " + root.scrollWidth + " wide on a screen of " + root.clientWidth);
  const visible = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const scrolls = (e) => e.closest(".scroll, .notices");
  for (const e of document.querySelectorAll("h1,h2,p,dt,dd,th,td,li,span,summary")) {
    if (!visible(e)) continue;
    const r = e.getBoundingClientRect();
    if (!scrolls(e) && (r.right > root.clientWidth + 1 || r.left < -1)) faults.push("outside of the screen: " + e.textContent.slice(0, 40));
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" && e.clientWidth > 0) faults.push("cut off: " + e.textContent.slice(0, 40));
  }
  for (const svg of document.querySelectorAll("main svg[role=img]")) {
    if (!visible(svg)) continue;
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((e) => ({ text: e.textContent, r: e.getBoundingClientRect() }));
    texts.forEach((a, i) => {
      if (a.r.left < frame.left - 1 || a.r.right > frame.right + 1 || a.r.top < frame.top - 1 || a.r.bottom > frame.bottom + 1) faults.push("outside of its picture: " + a.text);
      for (const b of texts.slice(i + 1)) {
        if (a.r.left < b.r.right - 1 && b.r.left < a.r.right - 1 && a.r.top < b.r.bottom - 3 && b.r.top < a.r.bottom - 3) faults.push("cover one another: " + a.text + " and " + b.text);
      }
    });
    if (!svg.getAttribute("aria-label")) faults.push("a picture without a text");
  }
  const channel = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); };
  const parse = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const luminance = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || (c.length === 4 && c[3] > 0.99)) return c;
    }
    return [255, 255, 255];
  };
  for (const e of document.querySelectorAll("h1,h2,p,dt,dd,th,td,time,summary,a,.badge,svg text")) {
    if (!visible(e) || !e.textContent.trim()) continue;
    const style = getComputedStyle(e);
    const a = luminance(parse(e.tagName === "text" ? style.fill : style.color)), b = luminance(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faults.push("contrast of " + ratio.toFixed(1) + ": " + e.textContent.slice(0, 40));
  }
  if (!document.documentElement.lang || !document.title) faults.push("no language or no title");
  return [...new Set(faults)].slice(0, 12);
})()`
