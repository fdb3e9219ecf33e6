//go:build linux

package controlplane

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
)

func TestNodeGroups(t *testing.T) {
	t.Run("the notation of a node group says all there is about it", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			name := rapid.StringMatching(`[a-z][a-z0-9/.-]{0,10}[a-z0-9]`)
			value := rapid.StringMatching(`[0-9]{1,4}(m|Gi)?`)
			group := NodeGroup{
				Name:   rapid.StringMatching(`[a-z][a-z0-9-]{0,10}[a-z0-9]`).Draw(t, "name"),
				Count:  rapid.IntRange(0, 1000).Draw(t, "count"),
				CPU:    rapid.StringMatching(`[1-9][0-9]{0,3}`).Draw(t, "cpu"),
				Memory: value.Draw(t, "memory"),
			}
			group.AllocatableCPU = group.CPU
			if m := rapid.MapOf(name, value).Draw(t, "resources"); len(m) > 0 {
				group.Resources = m
			}
			if m := rapid.MapOf(rapid.StringMatching(`([a-z]{1,5}/)?[a-z0-9]([a-z0-9.-]{0,8}[a-z0-9])?`), value).Draw(t, "labels"); len(m) > 0 {
				group.Labels = m
			}
			group.Taints = rapid.SliceOf(rapid.StringMatching(`[a-z][a-z0-9./-]{0,10}[a-z0-9]=[a-z0-9]{0,5}:(NoSchedule|PreferNoSchedule|NoExecute)`).Filter(func(text string) bool {
				_, err := parseTaint(text)
				return err == nil
			})).Draw(t, "taints")
			if len(group.Taints) == 0 {
				group.Taints = nil
			}
			parsed, err := ParseNodeGroup(group.String())
			if err != nil || !reflect.DeepEqual(parsed, group) {
				t.Fatalf("%q gives %+v, %v; want %+v", group.String(), parsed, err, group)
			}
		})
	})
	for text, wantText := range map[string]string{
		"count=x":                 `count "x" is not a number`,
		"cpu":                     `"cpu" is not key=value`,
		"colour=blue":             `unknown key "colour"`,
		"label:=x":                `unknown key "label:"`,
		"cpu=many":                `cpu "many" is not a quantity`,
		"cpu=4,allocatable-cpu=5": "allocatable cpu 5 is more than the node's 4",
		"name=No_Name":            "name: ",
		"count=-1":                "count -1 is negative",
		"memory=-1Gi":             `memory "-1Gi" is not a quantity`,
		"label:a b=x":             "label a b=x: ",
		"label:rack=-x":           "label rack=-x: ",
		"count=3,label:rack=a+b":  "label rack has 2 values, which cannot be given to equal parts of 3 nodes",
		"taint:gpu=yes":           `taint "gpu=yes" is not KEY=VALUE:EFFECT`,
		"taint:gpu=yes:Sometimes": `taint "gpu=yes:Sometimes" is not KEY=VALUE:EFFECT`,
		"taint:/gpu=:NoSchedule":  `taint "/gpu=:NoSchedule" is not KEY=VALUE:EFFECT`,
	} {
		t.Run("node group "+text+" is refused with the reason", func(t *testing.T) {
			if _, err := ParseNodeGroup(text); err == nil || !strings.Contains(err.Error(), wantText) {
				t.Errorf("%v; want %q", err, wantText)
			}
		})
	}
	t.Run("values of a label belong to equal parts of the nodes", func(t *testing.T) {
		group, err := ParseNodeGroup("name=gpu,count=8,label:block=b1+b2,label:rack=r1+r2+r3+r4,label:pool=gpu")
		if err != nil {
			t.Fatal(err)
		}
		specs, err := nodeSpecs([]NodeGroup{group})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"b1 r1", "b1 r1", "b1 r2", "b1 r2", "b2 r3", "b2 r3", "b2 r4", "b2 r4"} {
			if labels := specs[i].Labels; labels["block"]+" "+labels["rack"] != want || labels["pool"] != "gpu" {
				t.Errorf("node %s has %v, not %s", specs[i].Name, labels, want)
			}
		}
	})
	t.Run("all CPUs of a group are allocatable when only they are given", func(t *testing.T) {
		group, err := ParseNodeGroup("cpu=8")
		if err != nil || group.allocatableCPU() != "8" {
			t.Errorf("%+v, %v", group, err)
		}
	})
}

func FuzzParseNodeGroup(f *testing.F) {
	f.Add("name=t4,count=1,cpu=8,memory=30Gi,allocatable-cpu=7.9,resource:nvidia.com/gpu=4,label:accelerator=t4")
	f.Add("cpu=,=,label:==")
	f.Fuzz(func(t *testing.T, text string) {
		group, err := ParseNodeGroup(text)
		if err != nil {
			return
		}
		again, err := ParseNodeGroup(group.String())
		if err != nil || again.String() != group.String() {
			t.Errorf("%q gives %q, which gives %q, %v", text, group, again, err)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Run("the default is the tutorial's cluster", func(t *testing.T) {
		config := DefaultConfig()
		if err := config.Validate(); err != nil {
			t.Error(err)
		}
		if names := config.NodeNames(); !reflect.DeepEqual(names, []string{"node-1", "node-2", "node-3"}) {
			t.Errorf("nodes %q", names)
		}
		specs, err := nodeSpecs(config.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		for i, spec := range specs {
			if spec.Name != config.NodeNames()[i] || spec.Capacity.Cpu().String() != "4" || spec.Allocatable.Cpu().String() != "3920m" || spec.Allocatable.Memory().String() != "15Gi" {
				t.Errorf("%+v", spec)
			}
		}
	})
	t.Run("everything that is wrong is named", func(t *testing.T) {
		config := Config{Port: -1, Mounts: "magic", PodSecurity: "strict", Nodes: []NodeGroup{DefaultNodes(), DefaultNodes()}, Images: map[string]string{"": "x"}}
		err := config.Validate()
		for _, wantText := range []string{"port -1", `mounts "magic"`, `pod security "strict"`, `nodes "node": there is more than one`, `image ""`} {
			if err == nil || !strings.Contains(err.Error(), wantText) {
				t.Errorf("%q does not mention %q", err, wantText)
			}
		}
	})
	t.Run("a declaration is what it was after it was kept", func(t *testing.T) {
		layout := Layout{Dir: t.TempDir()}
		if _, ok, err := LoadConfig(layout); ok || err != nil {
			t.Errorf("an empty directory has a declaration: %v, %v", ok, err)
		}
		want := DefaultConfig()
		want.Images = map[string]string{AnyImage: HostImage}
		if err := saveJSON(layout.configFile(), want); err != nil {
			t.Fatal(err)
		}
		if have, ok, err := LoadConfig(layout); !ok || err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%+v, %v, %v; want %+v", have, ok, err, want)
		}
	})
	t.Run("a damaged declaration is refused with its file", func(t *testing.T) {
		layout := Layout{Dir: t.TempDir()}
		if err := os.WriteFile(layout.configFile(), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := LoadConfig(layout); err == nil || !strings.Contains(err.Error(), layout.configFile()) {
			t.Error(err)
		}
	})
}

func TestImages(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	document := filepath.Join(t.TempDir(), "document")
	if err := os.WriteFile(document, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("an image is a name and an executable", func(t *testing.T) {
		name, path, err := ParseImage("elastic-trainer=" + program)
		if name != "elastic-trainer" || path != program || err != nil {
			t.Error(name, path, err)
		}
	})
	t.Run("any image may be the host", func(t *testing.T) {
		name, path, err := ParseImage("*=host")
		if name != AnyImage || path != HostImage || err != nil {
			t.Error(name, path, err)
		}
	})
	for what, text := range map[string]string{
		"a file that cannot be executed": "x=" + document,
		"a directory":                    "x=/",
		"a file that is not there":       "x=" + program + "-not",
		"a name alone":                   "x",
		"a path alone":                   "=" + program,
	} {
		t.Run(what+" is refused", func(t *testing.T) {
			if _, _, err := ParseImage(text); err == nil {
				t.Errorf("%q is accepted", text)
			}
		})
	}
}

func TestComponents(t *testing.T) {
	t.Run("add-ons run where they are asked for, and are stopped before what they talk to", func(t *testing.T) {
		if components := (Config{Addons: []string{addon.Kueue}}).Components(); !slices.Equal(components, append(Components(), addon.Kueue)) {
			t.Errorf("%q", components)
		}
	})
	t.Run("where only the scheduler shall act, nothing else runs that changes objects", func(t *testing.T) {
		want := []string{Etcd, APIServer, Scheduler}
		if components := (Config{SchedulerOnly: true}).Components(); !slices.Equal(components, want) {
			t.Errorf("%q, want %q", components, want)
		}
	})
}
