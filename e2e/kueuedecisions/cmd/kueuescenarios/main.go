// Command kueuescenarios draws scenarios for Kueue from seeds and writes them, one a line: what is there, and the steps
// to take. Command kueuerecord plays them to Kueue and adds what it decided; package conformance compares the engine with
// that.
//
//	cd e2e/kueuedecisions
//	go run ./cmd/kueuescenarios -family hierarchy -seed 1 -n 50 | go run ./cmd/kueuerecord -output recordings.jsonl
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/draw"
)

func main() {
	var family string
	var seed, n uint64
	var queues int
	flag.StringVar(&family, "family", "", "what the scenarios are about: one of "+strings.Join(draw.Families(), ", ")+"; empty: all")
	flag.Uint64Var(&seed, "seed", 1, "the first seed")
	flag.Uint64Var(&n, "n", 10, "how many of each family")
	flag.IntVar(&queues, "large", 0, "write one scenario with that many queues instead, to measure time with")
	flag.Parse()
	if err := write(os.Stdout, family, seed, n, queues); err != nil {
		fmt.Fprintln(os.Stderr, "kueuescenarios:", err)
		os.Exit(1)
	}
}

func write(to io.Writer, family string, seed, n uint64, queues int) error {
	line := func(text []byte, err error) error {
		if err == nil {
			_, err = fmt.Fprintf(to, "%s\n", text)
		}
		return err
	}
	if queues > 0 {
		return line(draw.Large(queues))
	}
	names := draw.Families()
	if family != "" {
		names = []string{family}
	}
	for _, name := range names {
		for i := range n {
			if err := line(draw.Text(name, seed+i)); err != nil {
				return err
			}
		}
	}
	return nil
}
