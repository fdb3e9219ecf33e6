package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxRow bounds the bytes of one row. The rows of these traces have some hundred.
const maxRow = 1 << 20

// table reads a CSV file by the names of its columns.
type table struct {
	path   string
	file   *os.File
	bytes  *counted
	csv    *csv.Reader
	column map[string]int
	row    []string
}

// openTable opens a CSV file and finds the columns that are needed. Others may be there.
func openTable(path string, needed ...string) (*table, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	t := &table{path: path, file: f, bytes: &counted{from: f, most: maxRow}, column: map[string]int{}}
	t.csv = csv.NewReader(t.bytes)
	t.csv.ReuseRecord, t.csv.TrimLeadingSpace = true, true
	header, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("is empty; its first line should name the columns")
	}
	if err != nil {
		defer f.Close()
		return nil, t.syntax(err)
	}
	for i, name := range header {
		t.column[strings.TrimPrefix(strings.TrimSpace(name), "\ufeff")] = i
	}
	for _, name := range needed {
		if _, there := t.column[name]; !there {
			defer f.Close()
			return nil, fmt.Errorf("%s:1:1: there is no column %q among %s", path, name, strings.Join(names(t.column), ", "))
		}
	}
	return t, nil
}

func names(columns map[string]int) []string {
	all := make([]string, 0, len(columns))
	for name := range columns {
		all = append(all, strconv.Quote(short(name)))
	}
	slices.Sort(all)
	return all
}

func short(text string) string {
	if len(text) > 40 {
		return text[:37] + "…"
	}
	return text
}

// next reads a row; io.EOF at the end.
func (t *table) next() error {
	t.bytes.since = 0
	row, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return t.syntax(err)
	}
	t.row = row
	return nil
}

// syntax reports where the file is no CSV.
func (t *table) syntax(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("%s:%d:%d: %w", t.path, parse.Line, max(parse.Column, 1), parse.Err)
	}
	line, column := 1, 1
	if t.row != nil {
		line, column = t.csv.FieldPos(0)
	}
	return fmt.Errorf("%s:%d:%d: %w", t.path, line, column, err)
}

// wrong reports what is wrong with a field.
func (t *table) wrong(name, format string, args ...any) error {
	line, column := t.csv.FieldPos(t.column[name])
	return fmt.Errorf("%s:%d:%d: %s %s", t.path, line, column, name, fmt.Sprintf(format, args...))
}

// at reports where a row is that something is wrong with.
func (t *table) at(err error) error {
	if err == nil {
		return nil
	}
	line, column := t.csv.FieldPos(0)
	return fmt.Errorf("%s:%d:%d: %w", t.path, line, column, err)
}

// text is a field; what Python writes for nothing is nothing.
func (t *table) text(name string) string {
	text := strings.TrimSpace(t.row[t.column[name]])
	if text == "nan" || text == "NaN" || text == "None" {
		return ""
	}
	return text
}

// maxAmount bounds every number: memory in MiB stays below 2⁶³ bytes.
const maxAmount = 1 << 40

// amount is a number that is not negative, in whole units of 1/scale.
func (t *table) amount(name string, scale int64) (int64, error) {
	text := t.text(name)
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0123456789") != "" || n < 0 || strings.HasPrefix(whole, "-") || strings.HasPrefix(whole, "+") {
		return 0, t.wrong(name, "is %q where a number that is not negative is wanted", short(text))
	}
	if n > maxAmount/scale {
		return 0, t.wrong(name, "is %s; more than %d cannot be simulated", short(text), maxAmount/scale)
	}
	n *= scale
	for unit := scale / 10; unit > 0 && fraction != ""; unit /= 10 {
		n += int64(fraction[0]-'0') * unit
		fraction = fraction[1:]
	}
	return n, nil
}

// count is a whole number; a fraction of zeros, as Python writes, is none.
func (t *table) count(name string) (int64, error) {
	n, err := t.amount(name, 1000)
	if err == nil && n%1000 != 0 {
		err = t.wrong(name, "is %q where a whole number is wanted", short(t.text(name)))
	}
	return n / 1000, err
}

// timestamp is how Philly and Helios write times, without a zone.
const timestamp = "2006-01-02 15:04:05"

// date is a time in seconds; known is false where there is none.
func (t *table) date(name string) (seconds int64, known bool, err error) {
	text := t.text(name)
	if text == "" {
		return 0, false, nil
	}
	at, err := time.Parse(timestamp, text)
	if err != nil {
		return 0, false, t.wrong(name, "is %q where a time like %q is wanted", short(text), timestamp)
	}
	return at.Unix(), true, nil
}

// counted bounds how much is read for one row, however it is quoted.
type counted struct {
	from  io.Reader
	since int
	most  int
}

func (c *counted) Read(p []byte) (int, error) {
	if c.since > c.most {
		return 0, fmt.Errorf("a row is longer than %d bytes", c.most)
	}
	n, err := c.from.Read(p)
	c.since += n
	return n, err
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
