// Command kueuescenarios draws scenarios for Kueue from seeds and writes them, one a line: what is there, and the steps
// to take. tools/record-kueue.sh plays them to a real Kueue and adds what it decided; package conformance compares the
// engine with that.
//
//	go -C e2e run ./cmd/kueuescenarios -family hierarchy -seed 1 -n 50 | tools/record-kueue.sh >recordings.jsonl
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

func main() {
	var family string
	var seed, n uint64
	var queues int
	flag.StringVar(&family, "family", "", "what the scenarios are about: one of "+strings.Join(slices.Sorted(maps.Keys(families)), ", ")+"; empty: all")
	flag.Uint64Var(&seed, "seed", 1, "the first seed")
	flag.Uint64Var(&n, "n", 10, "how many of each family")
	flag.IntVar(&queues, "large", 0, "write one scenario with that many queues instead, to measure time with")
	flag.Parse()
	if queues > 0 {
		if err := json.NewEncoder(os.Stdout).Encode(large(queues)); err != nil {
			fmt.Fprintln(os.Stderr, "kueuescenarios:", err)
			os.Exit(1)
		}
		return
	}
	if err := write(os.Stdout, family, seed, n); err != nil {
		fmt.Fprintln(os.Stderr, "kueuescenarios:", err)
		os.Exit(1)
	}
}

func write(to io.Writer, family string, seed, n uint64) error {
	names := slices.Sorted(maps.Keys(families))
	if family != "" {
		if _, known := families[family]; !known {
			return fmt.Errorf("there is no family %q: use one of %s", family, strings.Join(names, ", "))
		}
		names = []string{family}
	}
	out := json.NewEncoder(to)
	for _, name := range names {
		for i := range n {
			if err := out.Encode(draw(name, seed+i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// draw makes the scenario of a family and a seed: always the same one.
func draw(family string, seed uint64) object {
	d := &drawing{
		Rand: rand.New(rand.NewPCG(seed, uint64(len(family))<<32+uint64(family[0])<<8+uint64(family[len(family)-1]))), //nolint:gosec // it draws test cases
		with: families[family], made: map[string]object{},
	}
	s := d.cluster()
	s["format"], s["name"], s["seed"] = 1, fmt.Sprintf("v-%s-%d", family, seed), seed
	s["steps"] = d.steps()
	return s
}
