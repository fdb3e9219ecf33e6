// Command elastic-trainer is the trainer image's only program: master, worker and local trainer.
package main

import (
	"os"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/cli"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(cli.Main(version, os.Args[1:])) }
