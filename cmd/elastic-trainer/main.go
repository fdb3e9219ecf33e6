// Command elastic-trainer is the trainer image's only program: master, worker and local trainer.
package main

import (
	"os"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli/elastictrainer"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(elastictrainer.Main(version, os.Args[1:])) }
