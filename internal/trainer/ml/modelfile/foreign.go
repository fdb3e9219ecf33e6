package modelfile

import "fmt"

// foreign are programs that are not model files, with what identifies them: a sequence of names.
var foreign = []struct {
	tokens []string
	what   string
	remedy string
}{
	{[]string{"import", "torch"}, "a PyTorch program", "train it as a script: the guide to PyTorch says how"},
	{[]string{"tf", ".", "estimator"}, "a program of tf.estimator", notAModel},
	{[]string{"tf", ".", "Session"}, "a TensorFlow 1 program with a session of its own", notAModel},
	{[]string{"tf", ".", "train", ".", "MonitoredTrainingSession"}, "a TensorFlow 1 program with a session of its own", notAModel},
	{[]string{"tf", ".", "placeholder"}, "a TensorFlow 1 program with a graph of its own", notAModel},
	{[]string{"tf", ".", "GradientTape"}, "a program with a training loop of its own", notAModel},
}

const notAModel = "the trainer has the loop here: write custom_model(), loss, optimizer and feed as in the guide to moving from ElasticDL"

// checkForeign refuses a program that is no model file for what it is, and not for the first of its statements that
// cannot be run.
func checkForeign(lines []logicalLine, all []*statement) *Error {
	if len(modelClasses(all)) > 0 {
		return nil
	}
	for _, s := range all {
		for _, name := range s.assigned() {
			if s.kind != mainStatement && (name == "custom_model" || s.kind == otherStatement && assigns(s.lines[0], "model")) {
				return nil
			}
		}
	}
	for _, f := range foreign {
		for _, line := range lines {
			for i := range line {
				if follows(line[i:], f.tokens) {
					return &Error{Line: line[i].line, Column: line[i].col, Msg: fmt.Sprintf("`%s`: this is %s, not a model file; %s", joined(f.tokens), f.what, f.remedy)}
				}
			}
		}
	}
	return nil
}

func follows(line logicalLine, tokens []string) bool {
	if len(line) < len(tokens) {
		return false
	}
	for i, t := range tokens {
		if !line[i].is(t) {
			return false
		}
	}
	return true
}

func joined(tokens []string) string {
	out := ""
	for _, t := range tokens {
		out += t
		if t == "import" {
			out += " "
		}
	}
	return out
}
