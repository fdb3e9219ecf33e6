// Package table reads CSV files (RFC 4180): a header row with the names of the columns, and rows with the same number
// of cells. Cells may be quoted, and a quoted cell may contain line breaks.
//
// A row becomes a record of package example whose names are the model's features, so rows feed models in the same way
// as records of the codec tf_example. The feature determines the type of a cell; without a model, the types are
// inferred from all rows.
//
// The package provides random access by an index of every few hundred rows, and its errors name file, line and column.
// A cell that is empty or of another type is an error, never a zero.
package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

const (
	// chunkBytes is how much text is read and parsed together. It is small, so that a range costs little more than
	// itself.
	chunkBytes = 64 << 10
	// maxHeaderBytes bounds the header row.
	maxHeaderBytes = 1 << 20
	// maxRowBytes bounds a row. A quote that is never closed would make one of all the rest of the file.
	maxRowBytes = 16 << 20
)

// Errors to match with errors.Is; their messages name file, line and finding.
var (
	// ErrMalformed is a file that is not CSV, or a row that does not fit the header.
	ErrMalformed = errors.New("this is not CSV as RFC 4180 has it, with a header row")
	// ErrChanged is text that is not what was indexed.
	ErrChanged = errors.New("the file was changed while it was in use; data must stay as it is during a run")
	// ErrType is a cell whose text is not of its column's type.
	ErrType = errors.New("correct the cell, or take the row out")
)

// Chunk is an index entry: rows that are read together.
type Chunk struct {
	Offset int64 // of the first row
	Bytes  int64 // to the end of the last row, its line break included
	First  int64 // number in the file of the first row, the header not counted
	Rows   int64
	Line   int64 // of the first row, the file's first line being 1
}

// Index is a file's columns and the chunks of its rows, in file order.
type Index struct {
	Columns []string
	Chunks  []Chunk
}

// Rows is the number of rows in the file, without the header.
func (x Index) Rows() int64 {
	if len(x.Chunks) == 0 {
		return 0
	}
	last := x.Chunks[len(x.Chunks)-1]
	return last.First + last.Rows
}

// Find is the position in Chunks of the chunk that holds a row, which must be in [0, Rows()).
func (x Index) Find(row int64) int {
	return sort.Search(len(x.Chunks), func(i int) bool { return x.Chunks[i].First+x.Chunks[i].Rows > row })
}

// ReadIndex makes the index of a file by reading all of it once, looking at nothing but quotes and line breaks; it
// keeps 40 bytes for every 64 KiB. name is for messages.
func ReadIndex(r io.Reader, name string) (Index, error) {
	s := scanner{r: bufio.NewReaderSize(r, chunkBytes), name: name, line: 1}
	header, err := s.header()
	if err != nil {
		return Index{}, err
	}
	index := Index{Columns: header}
	var chunk Chunk
	for {
		row, err := s.next(nil)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Index{}, err
		}
		if chunk.Rows > 0 && row.end-chunk.Offset > chunkBytes {
			index.Chunks = append(index.Chunks, chunk)
			chunk = Chunk{First: chunk.First + chunk.Rows}
		}
		if chunk.Rows == 0 {
			chunk.Offset, chunk.Line = row.start, row.line
		}
		chunk.Bytes = row.end - chunk.Offset
		chunk.Rows++
	}
	if chunk.Rows > 0 {
		index.Chunks = append(index.Chunks, chunk)
	}
	return index, nil
}

// Read parses a chunk and calls visit with every row's line and cells, which are valid until it returns.
func (x Index) Read(r io.ReaderAt, chunk int, name string, visit func(line int64, cells []string) error) error {
	c := x.Chunks[chunk]
	text := make([]byte, c.Bytes)
	if n, err := r.ReadAt(text, c.Offset); n < len(text) {
		if errors.Is(err, io.EOF) {
			return failure(name, c.Line, ErrChanged, "%d of %d bytes from offset %d on are left", n, len(text), c.Offset)
		}
		return fmt.Errorf("data %q: reading %d bytes at offset %d: %w", name, len(text), c.Offset, err)
	}
	rows := csv.NewReader(bytes.NewReader(text))
	rows.ReuseRecord = true
	rows.FieldsPerRecord = len(x.Columns)
	for n := int64(0); ; n++ {
		cells, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF) && n == c.Rows:
			return nil
		case errors.Is(err, io.EOF):
			return failure(name, c.Line, ErrMalformed, "%d rows from here on by their quotes, and %d when they are parsed: a quote is missing", c.Rows, n)
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := rows.FieldPos(0)
			return failure(name, c.Line+int64(line)-1, ErrMalformed, "the row has %d cells, and the header %d", len(cells), len(x.Columns))
		case err != nil:
			var at *csv.ParseError
			if errors.As(err, &at) {
				return failure(name, c.Line+int64(at.Line)-1, ErrMalformed, "at byte %d of the line: %v", at.Column, at.Err)
			}
			return failure(name, c.Line, ErrMalformed, "%v", err)
		case n == c.Rows:
			return failure(name, c.Line, ErrMalformed, "%d rows from here on by their quotes, and more when they are parsed: a quote is missing", c.Rows)
		}
		line, _ := rows.FieldPos(0)
		if err := visit(c.Line+int64(line)-1, cells); err != nil {
			return err
		}
	}
}

// scanner finds where rows begin and end: at line breaks outside quotes. Empty lines are no rows, as in encoding/csv.
type scanner struct {
	r      *bufio.Reader
	name   string
	offset int64 // of the next byte
	line   int64 // of the next byte
}

type span struct{ start, end, line int64 }

// next finds the next row. Its text is appended to text where that is not nil.
func (s *scanner) next(text *[]byte) (span, error) {
	row := span{start: s.offset, line: s.line}
	quotes := 0
	for {
		part, err := s.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return span{}, fmt.Errorf("data %q: reading at offset %d: %w", s.name, s.offset, err)
		}
		if len(part) == 0 && s.offset == row.start {
			return span{}, io.EOF
		}
		whole := s.offset == row.start && !errors.Is(err, bufio.ErrBufferFull)
		s.offset += int64(len(part))
		quotes += bytes.Count(part, []byte{'"'})
		switch {
		case s.offset-row.start > maxRowBytes:
			return span{}, failure(s.name, row.line, ErrMalformed, "the row is longer than %d bytes; is a quote not closed?", maxRowBytes)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && quotes%2 != 0:
			return span{}, failure(s.name, row.line, ErrMalformed, "a quote in this row is not closed until the end of the file")
		case !errors.Is(err, io.EOF):
			s.line++
		}
		if text != nil {
			*text = append(*text, part...)
		}
		if whole && isLineBreak(part) {
			row = span{start: s.offset, line: s.line} // an empty line
			if text != nil {
				*text = (*text)[:0]
			}
			continue
		}
		if !errors.Is(err, bufio.ErrBufferFull) && quotes%2 == 0 {
			row.end = s.offset
			return row, nil
		}
	}
}

// isLineBreak is what encoding/csv takes for an empty line.
func isLineBreak(line []byte) bool {
	return string(line) == "\n" || string(line) == "\r\n" || string(line) == "\r"
}

// header reads the first row.
func (s *scanner) header() ([]string, error) {
	begin, err := s.r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("data %q: reading its header row: %w", s.name, err)
	}
	if bytes.HasPrefix(begin, []byte{0x1f, 0x8b}) {
		return nil, failure(s.name, 1, ErrMalformed, "the file is compressed with gzip; decompress it, because there is no way into the middle of it")
	}
	if mark := []byte("\ufeff"); bytes.HasPrefix(begin, mark) { // what spreadsheets put in front of UTF-8
		n, _ := s.r.Discard(len(mark))
		s.offset += int64(n)
	}
	var text []byte
	row, err := s.next(&text)
	switch {
	case errors.Is(err, io.EOF):
		return nil, failure(s.name, 1, ErrMalformed, "it has no header row")
	case err != nil:
		return nil, err
	case row.end-row.start > maxHeaderBytes:
		return nil, failure(s.name, row.line, ErrMalformed, "the header row has %d bytes, and at most %d are read", row.end-row.start, maxHeaderBytes)
	}
	columns, err := csv.NewReader(bytes.NewReader(text)).Read()
	if err != nil {
		return nil, failure(s.name, row.line, ErrMalformed, "the header row: %v", err)
	}
	seen := make(map[string]bool, len(columns))
	for i, name := range columns {
		name = strings.TrimSpace(name)
		if name == "" || seen[name] {
			return nil, failure(s.name, row.line, ErrMalformed, "column %d is called %q, which is empty or the name of another", i+1, name)
		}
		seen[name] = true
		columns[i] = name
	}
	return columns, nil
}

func failure(name string, line int64, kind error, format string, args ...any) error {
	return fmt.Errorf("data %q: line %d: %s: %w", name, line, fmt.Sprintf(format, args...), kind)
}
