// Package page draws a run's history for people: how far it is, curves of loss and throughput, a lane for each worker
// with its starts, preemptions and ends, and what happened. It is the page that a master serves, kept up to date by
// server-sent events, and the report that a run leaves behind. Both are whole in themselves: nothing is loaded from
// elsewhere.
//
// It is pure: the same history gives the same page. Whatever comes from outside (names of jobs, models and pods,
// reasons) is escaped.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
)

// EventsPath is where a live page asks for what is new: events "message" and "end", each with a Body.
const EventsPath = "/events"

//go:embed page.css
var style string

//go:embed live.js
var script string

// Policy is the Content-Security-Policy of a live page: it runs its own script alone, and talks to its own server.
var Policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; script-src 'sha256-" + digest(script) + "'"

// reportPolicy is that of a report, which has no script.
const reportPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:"

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Live is the page that keeps itself up to date.
func Live(h *history.History, now time.Time) []byte {
	var m picture.Markup
	begin(&m, h)
	m.Put(`<noscript><meta http-equiv="refresh" content="5"></noscript>
</head>
<body>
%s
<footer class="soft"><p id="connection" role="status">as of %s</p><p>For Prometheus: <a href="metrics">metrics</a></p></footer>
<script>%s</script>
</body>
</html>`, picture.Raw(Body(h, now)), clock(now), picture.Raw(script))
	return []byte(m.Markup())
}

// Report is the page of a run that is over, or was interrupted.
func Report(h *history.History, now time.Time) []byte {
	var m picture.Markup
	begin(&m, h)
	m.Put(`<meta http-equiv="Content-Security-Policy" content="%s">
</head>
<body>
%s
<footer class="soft"><p>Written %s.</p></footer>
</body>
</html>`, reportPolicy, picture.Raw(Body(h, now)), clock(now))
	return []byte(m.Markup())
}

func begin(m *picture.Markup, h *history.History) {
	m.Put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<link rel="icon" href="data:,">
<style>
%s%s</style>`, title(h), picture.Raw(picture.Style), picture.Raw(style))
}

// Body is what changes while a run continues: a <main> whose children, each with an id, replace those of the page.
func Body(h *history.History, now time.Time) string {
	v := newView(h, now)
	var m picture.Markup
	m.Put(`<main data-title="%s">`, title(h))
	v.head(&m)
	v.facts(&m)
	v.pictures(&m)
	v.workers(&m)
	v.disruptions(&m)
	v.evaluations(&m)
	v.notices(&m)
	v.numbers(&m)
	v.about(&m)
	m.Put(`</main>`)
	return string(m.Markup())
}

func clock(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 UTC") }
