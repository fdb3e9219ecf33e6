package skypilot

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// text is a single value as it is written; false for null, and for anything else after a refusal.
func (p *parser) text(path string, n *yaml.Node) (string, bool) {
	if n = p.resolve(n); n == nil || null(n) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode {
		p.refuse(n, "%s is %s; a single value is expected", path, kind(n))
		return "", false
	}
	return n.Value, true
}

// whole is a whole number.
func (p *parser) whole(path string, n *yaml.Node) (int, bool) {
	text, ok := p.text(path, n)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(text)
	if err != nil {
		p.refuse(n, "%s is %q; a whole number is expected", path, text)
	}
	return i, err == nil
}

// truth is true or false, in any of YAML 1.1's words.
func (p *parser) truth(path string, n *yaml.Node) (value, ok bool) {
	text, ok := p.text(path, n)
	if !ok {
		return false, false
	}
	value, ok = boolean(text)
	if !ok {
		p.refuse(n, "%s is %q; true or false is expected", path, text)
	}
	return value, ok
}

// list are the elements of a list; a single value is a list of one.
func (p *parser) list(n *yaml.Node) []*yaml.Node {
	if n = p.resolve(n); n == nil || null(n) {
		return nil
	}
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

func boolean(text string) (value, ok bool) {
	lower := strings.ToLower(text)
	if text == "" || text != lower && text != strings.ToUpper(text) && text != strings.ToUpper(lower[:1])+lower[1:] {
		return false, false
	}
	value = slices.Contains([]string{"true", "yes", "on"}, lower)
	return value, value || slices.Contains([]string{"false", "no", "off"}, lower)
}

// numeric is what YAML 1.1, which Python's library reads, takes for a number, a time of day or a date
// (yaml.org/type/int, float and timestamp).
var numeric = regexp.MustCompile(`^([-+]?(0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(:[0-5]?[0-9])*(\.[0-9_]*)?([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|\.(inf|Inf|INF))|\.(nan|NaN|NAN)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?)$`)

// plainNumber is a number that comes out as it is written.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.0|\.[0-9]{0,3}[1-9])?$`)

// words is a value as SkyPilot hands it to a process: Python's str() of what its YAML makes of it, so that true is
// True. What would come out otherwise than it is written (0x10, 010, 1.50, 12:30) is refused with the advice to put
// it in quotes, because nobody means that.
func (p *parser) words(path string, n *yaml.Node) (string, bool) {
	text, ok := p.text(path, n)
	if !ok {
		return "", false
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Style != 0 { // in quotes, a block, or with a tag of its own
		return text, true
	}
	if b, is := boolean(text); is {
		return map[bool]string{true: "True", false: "False"}[b], true
	}
	if numeric.MatchString(text) && !plainNumber.MatchString(text) {
		p.refuse(n, "%s is %s, which SkyPilot reads as a number or a time and may write otherwise; put it in quotes", path, text)
		return "", false
	}
	return text, true
}
