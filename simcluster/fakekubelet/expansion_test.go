package fakekubelet

import "testing"

func TestExpand(t *testing.T) {
	known := map[string]string{"VAR_A": "A", "VAR_B": "B", "EMPTY": "", "REF": "$(VAR_A)"}
	lookup := func(name string) (string, bool) { value, ok := known[name]; return value, ok }
	for name, c := range map[string]struct{ text, want string }{
		"text without references stays":                 {"plain", "plain"},
		"a reference is replaced":                       {"$(VAR_A)", "A"},
		"references side by side":                       {"$(VAR_A)$(VAR_B)", "AB"},
		"a reference within text":                       {"x-$(VAR_A)-y", "x-A-y"},
		"an empty value leaves nothing":                 {"[$(EMPTY)]", "[]"},
		"what is unknown stays":                         {"$(NOPE)", "$(NOPE)"},
		"a doubled dollar escapes":                      {"$$(VAR_A)", "$(VAR_A)"},
		"a tripled dollar is an escape and a reference": {"$$$(VAR_A)", "$A"},
		"shell variables are left to the shell":         {"$HOME and ${HOME}", "$HOME and ${HOME}"},
		"a dollar at the end stays":                     {"cost $", "cost $"},
		"an unfinished reference stays":                 {"$(VAR_A", "$(VAR_A"},
		"text after an unfinished reference is read":    {"$(x $$", "$(x $"},
		"values are not expanded again":                 {"$(REF)", "$(VAR_A)"},
		"an empty name is unknown":                      {"$()", "$()"},
		"the first closing parenthesis ends a name":     {"$(VAR_A$(VAR_B))", "$(VAR_A$(VAR_B))"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expand(c.text, lookup); got != c.want {
				t.Errorf("expand(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}
