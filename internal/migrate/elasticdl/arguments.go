// Package elasticdl converts the command line of ElasticDL's client, as of its tutorial on elastic scheduling (29 May
// 2019), to the attributes of elastic_training_job. It knows every flag of that client, and of the master to which the
// client passed its other flags, with their defaults. It rejects what they rejected, and what would have failed later
// or had no effect, with the flag's name. It is pure; internal/api/trainingjob decides whether values such as names and
// paths are valid.
package elasticdl

import (
	"errors"
	"fmt"
	"strings"
)

// Arguments is what a command line asks for.
type Arguments struct {
	Name      string
	ModelFile string // the path on the machine that ran the client, not the file's text
	Image     string // from which the client built the job's image
	Pushed    string // the flag for which the client pushed that image, with its value: "--repository=gcr.io"; "" for none

	TrainingData   string
	Codec          string // "bytes" or "tf_example"
	RecordsPerTask int64
	Epochs         int64
	MinibatchSize  int64
	GradsToWait    int64

	Workers int64
	Master  Pod
	Worker  Pod

	VolumeName string // "" for no volume
	MountPath  string // where master and workers mount it
}

// Claim is the PersistentVolumeClaim that the client mounted where a volume was requested; it could not be chosen.
const Claim = "fileserver-claim"

// Pod is what the client said of the master's pod, or of each worker's. Amounts are spelled as on the command line.
type Pod struct {
	PriorityClass string // "" for none
	CPURequest    string
	CPULimit      string
	MemoryRequest string
	MemoryLimit   string
}

// Parse reads a command line: the flags, after the words of the program where there are any. Its error has a line for
// everything that is wrong.
func Parse(line string) (Arguments, error) {
	words, err := Words(line)
	if err != nil {
		return Arguments{}, err
	}
	a := Arguments{
		Codec:  "bytes",
		Master: Pod{CPURequest: "100m", CPULimit: "100m", MemoryRequest: "1024Mi", MemoryLimit: "1024Mi"},
		Worker: Pod{CPURequest: "1000m", CPULimit: "1000m", MemoryRequest: "4096Mi", MemoryLimit: "4096Mi"},
	}
	flags := flagsOf(&a)
	given := map[string]bool{}
	var problems []error
	for words = afterProgram(words); len(words) > 0; {
		var name, value string
		name, value, words, err = next(words)
		if _, isLater := ofLater(name); err != nil && !isLater {
			problems = append(problems, err)
			continue
		}
		if first, is := renamed[name]; is {
			name = first
		}
		read, known := flags[name]
		if !known {
			problems = append(problems, unknown(name, flags))
			continue
		}
		given[name] = true
		if err := read(value); err != nil {
			problems = append(problems, fmt.Errorf("--%s is %q: %w", name, value, err))
		}
	}
	for _, name := range required {
		if !given[name] {
			problems = append(problems, fmt.Errorf("--%s is missing; the client needs it", name))
		}
	}
	problems = append(problems, a.contradictions(given)...)
	if err := errors.Join(problems...); err != nil {
		return Arguments{}, err
	}
	return a, nil
}

// contradictions are what each flag by itself does not show. A flag that is wrong by itself is not in question again.
func (a *Arguments) contradictions(given map[string]bool) []error {
	var problems []error
	if !given["num_worker"] {
		problems = append(problems, errors.New("--num_worker is missing: its default is 0, and then the workers were started by hand, without Kubernetes; write 1 or more"))
	}
	if given["volume_name"] != given["mount_path"] {
		problems = append(problems, errors.New("--volume_name and --mount_path belong together: the client mounted nothing with only one of them"))
	}
	return problems
}

// afterProgram leaves out what stands before the first flag: "python …/client.py".
func afterProgram(words []string) []string {
	for i, word := range words {
		if strings.HasPrefix(word, "-") {
			return words[i:]
		}
	}
	return nil
}

// next takes a flag and its value, "--flag=value" or "--flag value".
func next(words []string) (name, value string, rest []string, err error) {
	word, rest := words[0], words[1:]
	flag, isFlag := strings.CutPrefix(word, "--")
	if !isFlag || flag == "" {
		return "", "", rest, fmt.Errorf("%q is no flag; a value with blanks in it has to be quoted", word)
	}
	name, value, hasValue := strings.Cut(flag, "=")
	if hasValue {
		return name, value, rest, nil
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return name, "", rest, fmt.Errorf("--%s has no value", name)
	}
	return name, rest[0], rest[1:], nil
}
