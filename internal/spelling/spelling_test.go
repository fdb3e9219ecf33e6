package spelling

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNear(t *testing.T) {
	for name, c := range map[string]struct {
		word       string
		candidates []string
		n          int
		want       []string
	}{
		"a letter left out":                     {"acelerators", []string{"cpus", "accelerators", "labels"}, 1, []string{"accelerators"}},
		"fewest edits first":                    {"T5", []string{"A100", "L4", "T4"}, 2, []string{"T4", "L4"}},
		"equals in the order given":             {"x", []string{"b", "a"}, 2, []string{"b", "a"}},
		"no more than there are":                {"x", []string{"a"}, 3, []string{"a"}},
		"nothing is near where nothing is":      {"x", nil, 1, []string{}},
		"an empty word is nearest the shortest": {"", []string{"abc", "a"}, 1, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Near(c.word, c.candidates, c.n); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestMeant(t *testing.T) {
	candidates := []string{"accelerators", "cpus", "image_id", "pool"}
	for name, c := range map[string]struct{ word, want string }{
		"a letter left out":                          {"acelerators", "accelerators"},
		"a beginning, though other words are nearer": {"acc", "accelerators"},
		"two letters of a short word swapped":        {"cpsu", "cpus"},
		"a short word with a letter too few":         {"cpu", "cpus"},
		"a word that is like none":                   {"foo", ""},
		"no word":                                    {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Meant(c.word, candidates); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNeighboursThatAreSwappedAreOneEdit(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"rnu", "run", 1}, {"trian", "train", 1}, {"ab", "ba", 1}, {"ca", "abc", 2}, {"run", "run", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q are %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestEditsIsADistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,6}`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if (edits(a, b) == 0) != (a == b) || edits(a, b) != edits(b, a) || edits(a, c) > edits(a, b)+edits(b, c) {
			t.Errorf("edits: %q %q %d, %q %q %d, %q %q %d", a, b, edits(a, b), b, c, edits(b, c), a, c, edits(a, c))
		}
	})
}
