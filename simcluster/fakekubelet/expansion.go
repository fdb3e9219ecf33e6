package fakekubelet

import "strings"

// expand replaces $(NAME) in text by lookup's value, as Kubernetes does in
// commands, arguments and environment values: $$ is a literal $, and a
// reference that lookup does not know, or that has no end, stays as it is.
func expand(text string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i == len(text)-1 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:i])
		text = text[i:]
		switch text[1] {
		case '$':
			out.WriteByte('$')
			text = text[2:]
		case '(':
			end := strings.IndexByte(text, ')')
			if end < 0 {
				// Only the opening is passed over: what follows may hold whole
				// references, but none of them can end, for there is no ")".
				out.WriteString("$(")
				text = text[2:]
				continue
			}
			if value, ok := lookup(text[2:end]); ok {
				out.WriteString(value)
			} else {
				out.WriteString(text[:end+1])
			}
			text = text[end+1:]
		default:
			out.WriteString(text[:2])
			text = text[2:]
		}
	}
}

// expandAll expands each of texts.
func expandAll(texts []string, lookup func(name string) (string, bool)) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = expand(text, lookup)
	}
	return out
}
