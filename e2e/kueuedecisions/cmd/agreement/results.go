package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions"
	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/inprocess"
)

// results is a file with a line for each scenario that was compared: family, seed, result, steps, Kueue's release and the
// engine's revision. With it, a comparison that was stopped goes on, and one may be done in parts.
type results struct {
	file      *os.File // nil: they are not kept
	known     map[kueuedecisions.Drawn]result
	revisions []string // of the engine, whose results count; the first is the present one
}

type result struct {
	is    kueuedecisions.Result
	steps int
}

func openResults(path, revision, earlier string) (*results, error) {
	r := &results{known: map[kueuedecisions.Drawn]result{}, revisions: []string{revision, earlier}}
	if path == "" {
		return r, nil
	}
	if revision == "" {
		return nil, errors.New("-known needs a -revision: results of another engine say nothing of this one")
	}
	var err error
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err != nil { //nolint:gosec // it is no secret
		return nil, err
	}
	lines := bufio.NewScanner(r.file)
	for lines.Scan() {
		r.read(lines.Text())
	}
	return r, lines.Err()
}

// read notes the result in a line of the same release of Kueue and of a revision that counts. A scenario that differed is
// compared again: the engine may have been mended.
func (r *results) read(line string) {
	var of kueuedecisions.Drawn
	var name, release, revision string
	var steps int
	if _, err := fmt.Sscan(line, &of.Family, &of.Seed, &name, &steps, &release, &revision); err != nil {
		return // its writing was cut off
	}
	if release != inprocess.Release || !slices.Contains(r.revisions, revision) {
		return
	}
	for is := kueuedecisions.Equal; is < kueuedecisions.Different; is++ {
		if is.String() == name {
			r.known[of] = result{is, steps}
		}
	}
}

// unknown are those of some scenarios that have no result; the results of the others are counted.
func (r *results) unknown(all []kueuedecisions.Drawn, tally kueuedecisions.Tally) (left []kueuedecisions.Drawn) {
	for _, drawn := range all {
		if known, is := r.known[drawn]; is {
			tally.Count(drawn.Family, known.is, known.steps)
		} else {
			left = append(left, drawn)
		}
	}
	return left
}

func (r *results) add(of kueuedecisions.Drawn, c *kueuedecisions.Comparison) error {
	if r.file == nil {
		return nil
	}
	_, err := fmt.Fprintln(r.file, of.Family, of.Seed, c.Result, c.Steps, inprocess.Release, r.revisions[0])
	return err
}
