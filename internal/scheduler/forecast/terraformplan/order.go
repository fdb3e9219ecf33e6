package terraformplan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// module is a module's configuration: which resources refer to which.
type module struct {
	Resources []struct {
		Address     string          `json:"address"`
		Expressions json.RawMessage `json:"expressions"`
		DependsOn   []string        `json:"depends_on"`
		Count       json.RawMessage `json:"count_expression"`
		ForEach     json.RawMessage `json:"for_each_expression"`
	} `json:"resources"`
	Outputs map[string]struct {
		Expression json.RawMessage `json:"expression"`
		DependsOn  []string        `json:"depends_on"`
	} `json:"outputs"`
	ModuleCalls map[string]struct {
		Expressions json.RawMessage `json:"expressions"`
		DependsOn   []string        `json:"depends_on"`
		Module      module          `json:"module"`
	} `json:"module_calls"`
}

// order sorts changes so that each comes after those that it depends on, and else by address: two plans of one
// configuration have one order. Terraform creates what does not depend on each other at the same time.
func order(changes []resourceChange, root module) {
	references := map[string][]string{}
	collect(root, "", references)
	byConfig := map[string][]string{}
	for _, change := range changes {
		byConfig[configAddress(change.Address)] = append(byConfig[configAddress(change.Address)], change.Address)
	}
	depth := map[string]int{}
	var depthOf func(address string, path map[string]bool) int
	depthOf = func(address string, path map[string]bool) int {
		if known, done := depth[address]; done {
			return known
		}
		if path[address] { // a cycle, which Terraform would not have planned
			return 0
		}
		path[address] = true
		deepest := 0
		for _, to := range references[address] {
			below := depthOf(to, path)
			if len(byConfig[to]) > 0 {
				below++
			}
			deepest = max(deepest, below)
		}
		delete(path, address)
		depth[address] = deepest
		return deepest
	}
	slices.SortStableFunc(changes, func(a, b resourceChange) int {
		return cmp.Or(cmp.Compare(depthOf(configAddress(a.Address), map[string]bool{}), depthOf(configAddress(b.Address), map[string]bool{})), cmp.Compare(a.Address, b.Address))
	})
}

// collect notes the references of each resource, output and module of a configuration, by addresses without indexes.
func collect(m module, prefix string, into map[string][]string) {
	inherit := []string{}
	if prefix != "" {
		inherit = append(inherit, strings.TrimSuffix(prefix, "."))
	}
	for _, resource := range m.Resources {
		to := slices.Clone(inherit)
		for _, expression := range []json.RawMessage{resource.Expressions, resource.Count, resource.ForEach} {
			to = append(to, referencesIn(expression, prefix)...)
		}
		for _, on := range resource.DependsOn {
			to = append(to, target(on, prefix)...)
		}
		into[prefix+resource.Address] = to
	}
	for name, output := range m.Outputs {
		to := referencesIn(output.Expression, prefix)
		for _, on := range output.DependsOn {
			to = append(to, target(on, prefix)...)
		}
		into[prefix+"output."+name] = to
	}
	for _, name := range slices.Sorted(maps.Keys(m.ModuleCalls)) {
		call := m.ModuleCalls[name]
		address := prefix + "module." + name
		to := append(slices.Clone(inherit), referencesIn(call.Expressions, prefix)...)
		for _, on := range call.DependsOn {
			to = append(to, target(on, prefix)...)
		}
		into[address] = to
		// A dependency on a module is one on all of its resources; see target.
		for _, resource := range call.Module.Resources {
			into[address+".*"] = append(into[address+".*"], address+"."+resource.Address)
		}
		for inner := range call.Module.ModuleCalls {
			into[address+".*"] = append(into[address+".*"], address+".module."+inner+".*")
		}
		collect(call.Module, address+".", into)
	}
}

// referencesIn are the references in an expression, at any depth.
func referencesIn(expression json.RawMessage, prefix string) []string {
	var value any
	if len(expression) == 0 || json.Unmarshal(expression, &value) != nil {
		return nil
	}
	var found []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if list, ok := inner.([]any); ok && key == "references" {
					for _, reference := range list {
						if text, ok := reference.(string); ok {
							found = append(found, target(text, prefix)...)
						}
					}
					continue
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(value)
	return found
}

// target is the target of a reference: a resource, an output of a module, or all of a module.
func target(reference, prefix string) []string {
	words := strings.Split(configAddress(reference), ".")
	switch {
	case words[0] == "module" && len(words) > 2:
		return []string{prefix + "module." + words[1] + ".output." + words[2]}
	case words[0] == "module" && len(words) == 2:
		return []string{prefix + "module." + words[1] + ".*"}
	case words[0] == "data" && len(words) > 2:
		return []string{prefix + strings.Join(words[:3], ".")}
	case words[0] == "var" || words[0] == "local" || words[0] == "each" || words[0] == "count" || words[0] == "path" || words[0] == "terraform" || len(words) < 2:
		return nil // the call passes values to a module, and resources in the module refer to the call as a whole
	default:
		return []string{prefix + words[0] + "." + words[1]}
	}
}

// configAddress is an address without indexes.
func configAddress(address string) string {
	var plain strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(address); i++ {
		switch c := address[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && depth > 0:
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0:
			plain.WriteByte(c)
		}
	}
	return plain.String()
}
