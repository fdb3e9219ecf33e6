package table_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

type row struct {
	line  int64
	cells []string
}

// rowsOf reads a whole file through its index.
func rowsOf(text string) ([]row, table.Index, error) {
	index, err := table.ReadIndex(strings.NewReader(text), "file")
	if err != nil {
		return nil, index, err
	}
	var rows []row
	for chunk := range index.Chunks {
		if err := index.Read(strings.NewReader(text), chunk, "file", func(line int64, cells []string) error {
			rows = append(rows, row{line, slices.Clone(cells)})
			return nil
		}); err != nil {
			return nil, index, err
		}
	}
	return rows, index, nil
}

func TestReading(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		columns []string
		rows    []row
	}{
		"plain rows":                           {"a,b\n1,2\n3,4\n", []string{"a", "b"}, []row{{2, []string{"1", "2"}}, {3, []string{"3", "4"}}}},
		"no line break at the end":             {"a,b\n1,2", []string{"a", "b"}, []row{{2, []string{"1", "2"}}}},
		"line breaks of Windows":               {"a,b\r\n1,2\r\n", []string{"a", "b"}, []row{{2, []string{"1", "2"}}}},
		"a byte order mark":                    {"\ufeffa,b\n1,2\n", []string{"a", "b"}, []row{{2, []string{"1", "2"}}}},
		"blanks around the columns' names":     {"a, b \n1,2\n", []string{"a", "b"}, []row{{2, []string{"1", "2"}}}},
		"quoted commas, quotes and lines":      {"a,b\n\"x,\"\"y\"\"\",\"1\n2\"\n3,4\n", []string{"a", "b"}, []row{{2, []string{`x,"y"`, "1\n2"}}, {4, []string{"3", "4"}}}},
		"a quoted line break in the header":    {"\"a\nb\",c\n1,2\n", []string{"a\nb", "c"}, []row{{3, []string{"1", "2"}}}},
		"empty lines, which are no rows":       {"\n\na\n\n1\n\r\n2\n\n", []string{"a"}, []row{{5, []string{"1"}}, {7, []string{"2"}}}},
		"a quoted empty line, which is a cell": {"a\n\"\n\"\n", []string{"a"}, []row{{2, []string{"\n"}}}},
		"a header and nothing else":            {"a,b\n", []string{"a", "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rows, index, err := rowsOf(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(index.Columns, c.columns) || fmt.Sprint(rows) != fmt.Sprint(c.rows) || index.Rows() != int64(len(c.rows)) {
				t.Errorf("columns %q, rows %v; want %q and %v", index.Columns, rows, c.columns, c.rows)
			}
		})
	}
	t.Run("a range of a large file is read without the text before it", func(t *testing.T) {
		var text strings.Builder
		text.WriteString("n,text\n")
		for i := range 20000 {
			fmt.Fprintf(&text, "%d,\"line\n%d\"\n", i, i)
		}
		index, err := table.ReadIndex(strings.NewReader(text.String()), "file")
		if err != nil || index.Rows() != 20000 || len(index.Chunks) < 4 {
			t.Fatalf("%d rows in %d chunks, %v", index.Rows(), len(index.Chunks), err)
		}
		for _, want := range []int64{0, 1, 9999, 19999} {
			chunk := index.Find(want)
			at := index.Chunks[chunk].First
			only := onlyFrom{strings.NewReader(text.String()), index.Chunks[chunk].Offset}
			if err := index.Read(only, chunk, "file", func(line int64, cells []string) error {
				if cells[0] != fmt.Sprint(at) || line != 2*at+2 {
					return fmt.Errorf("row %d at line %d holds %q", at, line, cells)
				}
				at++
				return nil
			}); err != nil || at <= want {
				t.Errorf("row %d: %v", want, err)
			}
		}
	})
}

// onlyFrom refuses to read what lies before an offset.
type onlyFrom struct {
	io.ReaderAt
	offset int64
}

func (r onlyFrom) ReadAt(b []byte, at int64) (int, error) {
	if at < r.offset {
		return 0, fmt.Errorf("read at %d, before %d", at, r.offset)
	}
	return r.ReaderAt.ReadAt(b, at)
}

func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		wantText string
	}{
		"an empty file":                      {"", "no header row"},
		"a file of empty lines":              {"\n\n", "no header row"},
		"a row with a cell too few":          {"a,b\n1,2\n3\n", "line 3: the row has 1 cells, and the header 2"},
		"a row with a cell too many":         {"a,b\n1,2,3\n", "line 2: the row has 3 cells, and the header 2"},
		"a quote that is not closed":         {"a,b\n1,2\n\"3,4\n5,6\n", "line 3: a quote in this row is not closed"},
		"a quote in the middle of a cell":    {"a,b\n1,2\n3,x\"y\"\n", "line 3: at byte 4"},
		"quotes that are closed by accident": {"a,b\n1,x\"\n2,\"y\n", "line 2: at byte 4"},
		"a column without a name":            {"a,,b\n", "column 2"},
		"two columns of one name":            {"a,b,a\n", `column 3 is called "a"`},
		"a gzip file":                        {"\x1f\x8b\x08\x00", "decompress it"},
		"a row without an end":               {"a\n\"" + strings.Repeat("x\n", 9<<20), "is a quote not closed?"},
	} {
		t.Run("refused with file and line: "+name, func(t *testing.T) {
			_, _, err := rowsOf(c.text)
			if !errors.Is(err, table.ErrMalformed) || !strings.Contains(err.Error(), c.wantText) || !strings.Contains(err.Error(), `"file"`) {
				t.Errorf("%v; want %q", err, c.wantText)
			}
		})
	}
	t.Run("text that is shorter than it was is refused", func(t *testing.T) {
		index, err := table.ReadIndex(strings.NewReader("a\n1\n2\n"), "file")
		if err != nil {
			t.Fatal(err)
		}
		err = index.Read(strings.NewReader("a\n1\n"), 0, "file", func(int64, []string) error { return nil })
		if !errors.Is(err, table.ErrChanged) {
			t.Error(err)
		}
	})
}

func TestWhatCSVWritersWriteIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 4).Draw(t, "columns")
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		w.UseCRLF = rapid.Bool().Draw(t, "CRLF")
		header := make([]string, columns)
		for i := range header {
			header[i] = fmt.Sprintf("c%d", i)
		}
		rows := [][]string{header}
		for range rapid.IntRange(0, 30).Draw(t, "rows") {
			var cells []string
			for range columns {
				// A lone empty cell is an empty line, which is no row; and "\r\n" in a cell is read as "\n".
				cells = append(cells, "x"+rapid.StringOf(rapid.SampledFrom([]rune{'a', '"', ',', '\n', ' ', 'é'})).Draw(t, "cell"))
			}
			rows = append(rows, cells)
		}
		if err := w.WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		got, index, err := rowsOf(text.String())
		if err != nil {
			t.Fatal(err)
		}
		if index.Rows() != int64(len(rows)-1) || len(got) != len(rows)-1 {
			t.Fatalf("%d rows by the index, %d read; want %d", index.Rows(), len(got), len(rows)-1)
		}
		for i, r := range got {
			if !slices.Equal(r.cells, rows[i+1]) {
				t.Fatalf("row %d: %q, want %q", i, r.cells, rows[i+1])
			}
		}
	})
}

// decode reads the records of a file as a model with features reads them.
func decode(text string, features []graph.Feature, o table.Options) ([]graph.Example, error) {
	index, err := table.ReadIndex(strings.NewReader(text), "file")
	if err != nil {
		return nil, err
	}
	schema, err := table.NewSchema(index.Columns, features, o)
	if err != nil {
		return nil, err
	}
	encoder, decoder := schema.NewEncoder(), example.NewDecoder(features)
	var all []graph.Example
	for chunk := range index.Chunks {
		err = errors.Join(err, index.Read(strings.NewReader(text), chunk, "file", func(_ int64, cells []string) error {
			record, err := encoder.Append(nil, cells)
			if err != nil {
				return err
			}
			values := make(graph.Example, len(features))
			all = append(all, values)
			return decoder.Decode(record, values)
		}))
	}
	return all, err
}

func TestTypes(t *testing.T) {
	features := []graph.Feature{
		{Name: "age", DType: graph.Int32, Shape: []int{1}},
		{Name: "pixel", DType: graph.Uint8, Shape: []int{2}},
		{Name: "x", DType: graph.Float32, Shape: []int{1}},
		{Name: "y", DType: graph.Float32, Shape: []int{1, 3}},
		{Name: "label", DType: graph.Int64, Shape: []int{1}},
	}
	o := table.Options{Columns: map[string][]string{"label": {"species"}}, Words: map[string][]string{"species": {"setosa", "versicolor"}}}
	header := "species,y_0,y_1,y_2,unused,age,x,pixel_0,pixel_1\n"
	t.Run("features are found by their columns' names, in any order", func(t *testing.T) {
		got, err := decode(header+"versicolor,1,2.5,-3e2,words,-7, 0.1 ,0,255\nsetosa,0,0,0,,1,1,1,1\n", features, o)
		if err != nil {
			t.Fatal(err)
		}
		want := graph.Example{{Ints: []int64{-7}}, {Bytes: []byte{0, 255}}, {Floats: []float32{0.1}}, {Floats: []float32{1, 2.5, -300}}, {Ints: []int64{1}}}
		if len(got) != 2 || fmt.Sprint(got[0]) != fmt.Sprint(want) || got[1][4].Ints[0] != 0 {
			t.Errorf("%v, want %v", got, want)
		}
	})
	for name, c := range map[string]struct{ row, wantText string }{
		"an empty number":                   {"setosa,,0,0,,1,1,1,1", `column "y_0": "" is empty`},
		"text where a number should be":     {"setosa,0,0,0,,1,many,1,1", `column "x": "many" is no finite decimal number`},
		"a number that is none":             {"setosa,0,0,0,,1,NaN,1,1", `"NaN" is no finite`},
		"a number that is too large":        {"setosa,0,0,0,,1,1e39,1,1", `"1e39" is no finite`},
		"a fraction of a whole number":      {"setosa,0,0,0,,1.5,1,1,1", `column "age": "1.5" is no whole number of 32 bits`},
		"a whole number of too many bits":   {"setosa,0,0,0,,4294967296,1,1,1", "32 bits"},
		"a pixel beyond a byte":             {"setosa,0,0,0,,1,1,256,1", `column "pixel_0": "256" is not in 0 to 255`},
		"a word that is not in the list":    {"virginica,0,0,0,,1,1,1,1", `column "species": "virginica" is none of its 2 words`},
		"a cell that is a novel is cut off": {"setosa,0,0,0,,1," + strings.Repeat("z", 99) + ",1,1", strings.Repeat("z", 40) + "…"},
	} {
		t.Run("refused with the column: "+name, func(t *testing.T) {
			if _, err := decode(header+c.row+"\n", features, o); !errors.Is(err, table.ErrType) || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("%v; want %q", err, c.wantText)
			}
		})
	}
	for name, c := range map[string]struct {
		header   string
		o        table.Options
		wantText string
	}{
		"a feature without a column":          {"x,y_0,y_1,y_2,pixel_0,pixel_1,species\n", o, `feature "age" (int32[1]) needs a column "age", and the header has`},
		"an element without a column":         {"age,x,y_0,y_2,pixel_0,pixel_1,species\n", o, `needs a column "y_1"`},
		"a feature with a column too few":     {"a,b\n", table.Options{Columns: map[string][]string{"age": {"a", "b"}}}, `"age" (int32[1]) has 1 elements, and 2 columns`},
		"words of a column that is not there": {"a\n", table.Options{Words: map[string][]string{"b": {"x"}}}, `column "b"`},
		"a word that is given twice":          {"a\n", table.Options{Words: map[string][]string{"a": {"x", "x"}}}, `"x" is given twice`},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			if _, err := decode(c.header, features, c.o); err == nil || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("%v; want %q", err, c.wantText)
			}
		})
	}
}

func TestInferredTypes(t *testing.T) {
	infer := func(t *testing.T, text string, o table.Options) *table.Schema {
		t.Helper()
		index, err := table.ReadIndex(strings.NewReader(text), "file")
		if err != nil {
			t.Fatal(err)
		}
		schema, err := table.Infer(strings.NewReader(text), index, "file", o)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	t.Run("one cell of all rows decides", func(t *testing.T) {
		features, ok := infer(t, "a,b,c\n1,2,x\n2,2.5,y\n", table.Options{Words: map[string][]string{"c": {"x", "y"}}}).Features()
		if want := "[{a int64 [1]} {b float32 [1]} {c int64 [1]}]"; !ok || fmt.Sprint(features) != want {
			t.Errorf("%v, want %s", features, want)
		}
	})
	t.Run("a word below whole numbers makes the column text", func(t *testing.T) {
		for _, text := range []string{"a\n1\nx\n", "a\n1.5\nx\n", "a\nx\n1\n"} {
			if features, ok := infer(t, text, table.Options{}).Features(); ok {
				t.Errorf("%q has the features %v, want text", text, features)
			}
		}
	})
	t.Run("columns that are given for a feature become one, of the type that has room for all", func(t *testing.T) {
		schema := infer(t, "l,w,species\n1,2.5,a\n3,4,b\n", table.Options{
			Columns: map[string][]string{"size": {"w", "l"}}, Words: map[string][]string{"species": {"b", "a"}},
		})
		features, ok := schema.Features()
		if want := "[{size float32 [2]} {species int64 [1]}]"; !ok || fmt.Sprint(features) != want {
			t.Fatalf("%v, want %s", features, want)
		}
		record, err := schema.NewEncoder().Append(nil, []string{"1", "2.5", "a"})
		values := make(graph.Example, 2)
		if err = errors.Join(err, example.NewDecoder(features).Decode(record, values)); err != nil || fmt.Sprint(values) != "[{[2.5 1] [] [] []} {[] [1] [] []}]" {
			t.Errorf("%v, %v", values, err)
		}
	})
	t.Run("text stays text in the records", func(t *testing.T) {
		schema := infer(t, "a,b\n1,x\n2,\n", table.Options{})
		if _, ok := schema.Features(); ok {
			t.Error("text is a feature")
		}
		record, err := schema.NewEncoder().Append(nil, []string{"3", "word"})
		if err != nil {
			t.Fatal(err)
		}
		found, err := example.Look(record)
		if err != nil || fmt.Sprint(found) != "[{a int64_list 1} {b bytes_list 1}]" {
			t.Errorf("%v, %v", found, err)
		}
	})
}

func FuzzIndex(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "a\r\n\"x\n\"\"y\"\r\n\r\nz", "\ufeffa\n\"", "a\n\r\r\n\r", "a,b\n\"x\"y,\"\n\",\"\"\"\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, index, err := rowsOf(text)
		want := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
		all, wantErr := want.ReadAll()
		if err != nil {
			// What encoding/csv reads is refused only for its header.
			if wantErr == nil && len(all) > 0 && !strings.Contains(err.Error(), "column") && !strings.Contains(err.Error(), "gzip") {
				t.Fatalf("%v; encoding/csv reads %q", err, all)
			}
			return
		}
		if wantErr != nil {
			t.Fatalf("read %v, and encoding/csv says %v", rows, wantErr)
		}
		if len(rows) != len(all)-1 || index.Rows() != int64(len(rows)) {
			t.Fatalf("%d rows, %d by the index; encoding/csv reads %d", len(rows), index.Rows(), len(all)-1)
		}
		for i, r := range rows {
			if !slices.Equal(r.cells, all[i+1]) {
				t.Fatalf("row %d: %q, want %q", i, r.cells, all[i+1])
			}
		}
	})
}

func FuzzRecords(f *testing.F) {
	f.Add("a,b,c_0,c_1\n1,0.5,2,3\n-1,1e3,0,255\n")
	f.Add("a,b,c_0,c_1\n1,NaN,2,\"3\"\n")
	features := []graph.Feature{
		{Name: "a", DType: graph.Int32, Shape: []int{1}}, {Name: "b", DType: graph.Float32}, {Name: "c", DType: graph.Uint8, Shape: []int{2}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := decode(text, features, table.Options{})
		if err != nil {
			return
		}
		for _, values := range all {
			if x := values[1].Floats[0]; x != x || len(values[0].Ints) != 1 || len(values[2].Bytes) != 2 {
				t.Fatalf("%q is read as %v", text, values)
			}
		}
		// Without a model the same columns are numbers too.
		index, err := table.ReadIndex(strings.NewReader(text), "file")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Infer(strings.NewReader(text), index, "file", table.Options{}); err != nil {
			t.Fatal(err)
		}
	})
}
