package elastictrainer

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
)

// builtIn completes the names of the built-in models, each with its summary.
func builtIn(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range zoo.Names() {
		if m, err := zoo.Load(name); err == nil {
			names = append(names, cobra.CompletionWithDesc(name, m.Summary))
		}
	}
	return cli.Beginning(typed, names)
}

// models completes by built-in models, and by files where no built-in one begins like that.
func models(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if names, directive := builtIn(c, args, typed); len(names) > 0 {
		return names, directive
	}
	return []string{"py"}, cobra.ShellCompDirectiveFilterFileExt
}

// dataPaths completes by files and directories, and by synthetic data once the beginning of that word is typed.
func dataPaths(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(typed) > 1 {
		var paths []string
		for _, set := range dataset.SyntheticSets() {
			if path := data.Synthetic(set, 10000, 1); strings.HasPrefix(path, typed) {
				paths = append(paths, path)
			}
		}
		if len(paths) > 0 {
			return paths, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// completeModel is for commands that take a model by its file or its name.
func completeModel(c *cobra.Command) {
	cli.CompleteFiles(c, "model-file", "py")
	cli.CompleteFlag(c, "model", builtIn)
}

// completeData is for commands that compute on data.
func completeData(c *cobra.Command, flags ...string) {
	for _, flag := range flags {
		cli.CompleteFlag(c, flag, dataPaths)
	}
	cli.CompleteFrom(c, "data-format", dataset.Formats()...)
	cli.CompleteFrom(c, "codec-type", dataset.Codecs()...)
}

// completeKernels offers those that this processor can run.
func completeKernels(c *cobra.Command) {
	cli.CompleteFlag(c, "kernel", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, set := range kernel.Available() {
			names = append(names, set.Name)
		}
		return cli.Beginning(typed, names)
	})
}

// compressors are those of the format that is written.
func (o *output) compressors(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if o.Format == dataset.TFRecord {
		names = named(compressions)
	} else {
		names = named(compressors)
	}
	return cli.Beginning(typed, names)
}

// named are the keys of a table but "", in order.
func named[V any](table map[string]V) []string {
	var names []string
	for name := range table {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
