package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	simulator "github.com/elastic-training/terraform-provider-elastic/internal/cli/elasticsim"
	trainer "github.com/elastic-training/terraform-provider-elastic/internal/cli/elastictrainer"
	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// Command lines of simcluster and of terraform are e2e's to check (e2e/documents), whose module has what that takes.
func TestEveryCommandOfADocumentIsOneThatItsProgramKnows(t *testing.T) {
	makefile, err := os.ReadFile("GNUmakefile")
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(doccheck.Command) error{
		"elastic-trainer": func(c doccheck.Command) error { return c.CheckAgainst(trainer.NewRoot("test")) },
		"elastic-sim":     func(c doccheck.Command) error { return c.CheckAgainst(simulator.NewRoot("test")) },
		"withkind":        func(c doccheck.Command) error { return checkFlags("e2e/cmd/withkind", c.Arguments) },
		"make":            func(c doccheck.Command) error { return checkMake(string(makefile), c) },
		"go":              checkGo,
	}
	for program, check := range checks {
		t.Run(program, func(t *testing.T) {
			seen := 0
			for _, d := range read(t) {
				commands, err := d.Commands(program)
				if err != nil {
					t.Error(err)
				}
				for _, c := range commands {
					seen++
					if err := expand(&c); err != nil {
						t.Errorf("%s: %s: %v", c.Where, c, err)
					}
					if err := check(c); err != nil {
						t.Errorf("%s: %s: %v", c.Where, c, err)
					}
				}
			}
			if seen == 0 {
				t.Errorf("no document has a command of %s", program)
			}
		})
	}
}

// expand replaces what a shell would replace by the examples that are there.
func expand(c *doccheck.Command) error {
	var arguments []string
	for _, argument := range c.Arguments {
		if !strings.HasPrefix(argument, "examples/") {
			arguments = append(arguments, argument)
			continue
		}
		found, err := filepath.Glob(filepath.Join(c.Folder, argument))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("there is no %s", argument)
		}
		arguments = append(arguments, found...)
	}
	c.Arguments = arguments
	return nil
}

// checkMake wants targets that the GNUmakefile has, and variables that it knows.
func checkMake(makefile string, c doccheck.Command) error {
	for _, assignment := range c.Environment {
		name, _, _ := strings.Cut(assignment, "=")
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(makefile) {
			return fmt.Errorf("the GNUmakefile does not know %s", name)
		}
	}
	arguments := c.Arguments
	if len(arguments) > 1 && arguments[0] == "-C" {
		if folder := filepath.Join(c.Folder, arguments[1]); folder != "." {
			return fmt.Errorf("the GNUmakefile is not in %s", folder)
		}
		arguments = arguments[2:]
	}
	for _, argument := range arguments {
		name, _, variable := strings.Cut(argument, "=")
		pattern := `(?m)^` + regexp.QuoteMeta(name) + `:(?: |$)`
		if variable {
			pattern = `(?m)^(?:export )?` + regexp.QuoteMeta(name) + ` *[?:]?=`
		}
		if !regexp.MustCompile(pattern).MatchString(makefile) {
			return fmt.Errorf("the GNUmakefile has no %s", name)
		}
	}
	return nil
}

// checkGo wants packages that are there, and flags that a program of ours has.
func checkGo(c doccheck.Command) error {
	folder, arguments := c.Folder, c.Arguments
	if len(arguments) > 1 && arguments[0] == "-C" {
		folder, arguments = arguments[1], arguments[2:]
	}
	for i, argument := range arguments {
		if !strings.HasPrefix(argument, "./") {
			continue
		}
		path := filepath.Join(folder, strings.TrimSuffix(argument, "/..."))
		if _, err := os.Stat(path); err != nil {
			return err
		}
		if arguments[0] == "run" {
			return checkFlags(path, arguments[i+1:])
		}
	}
	return nil
}

// checkFlags wants flags that the program in a folder declares, whose command tree is in package main.
func checkFlags(folder string, arguments []string) error {
	declared := []string{"h", "help"}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				declared = append(declared, flagOf(call))
			}
			return true
		})
	}
	for _, argument := range arguments {
		if !strings.HasPrefix(argument, "-") {
			continue // a flag's value, or an argument
		}
		if name, _, _ := strings.Cut(strings.TrimLeft(argument, "-"), "="); !slices.Contains(declared, name) {
			return fmt.Errorf("%s has no flag %s", folder, argument)
		}
	}
	return nil
}

// flagOf is the name in StringVar(&x, "name", …), StringVarP and the like, or "" in other calls.
func flagOf(call *ast.CallExpr) string {
	function, is := call.Fun.(*ast.SelectorExpr)
	if !is || !strings.HasSuffix(strings.TrimSuffix(function.Sel.Name, "P"), "Var") || len(call.Args) < 2 {
		return ""
	}
	literal, is := call.Args[1].(*ast.BasicLit)
	if !is {
		return ""
	}
	name, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return name
}

// A command line with a selector of pods, of which the text says that they are the master and the workers.
var podsOfAJob = regexp.MustCompile("kubectl get pods [^`\n]*-l ([\\w./-]+)=([\\w-]+)[^\n]*\\bmaster and (?:the |its )?workers\\b")

func TestASelectorThatIsSaidToFindMasterAndWorkersFindsBoth(t *testing.T) {
	seen := 0
	for _, d := range read(t) {
		for _, m := range podsOfAJob.FindAllStringSubmatch(d.Text, -1) {
			seen++
			job := forecasttest.TrainingJob(m[2], "", "", 1, 2)
			for name, template := range map[string]func() (corev1.PodTemplateSpec, error){"master": job.MasterTemplate, "worker": job.WorkerTemplate} {
				pod, err := template()
				if err != nil {
					t.Fatal(err)
				}
				if pod.Labels[m[1]] != m[2] {
					t.Errorf("%s: -l %s=%s does not find the %s, whose labels are %v", d.Path, m[1], m[2], name, pod.Labels)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no document lists master and workers")
	}
}
