// Package doccheck reads the repository's own documents as far as tests have to know them: which there are, and their
// links, headings and code. What stands in code is no link and no heading. Of Markdown it knows what these documents
// use: ATX headings, fenced blocks, spans, inline links. It checks nothing itself.
package doccheck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Document is one Markdown file.
type Document struct {
	Path string // from the root of the repository, with slashes
	Text string
}

// Read returns the documents of the repository below root: those of the root, the templates, the pages of docs/ that
// are written by hand (tools/docs.sh makes the others from the templates), and the READMEs of simcluster and of the
// examples.
func Read(root string) ([]Document, error) {
	var paths []string
	for _, pattern := range []string{
		"*.md", "templates/*.md.tmpl", "templates/guides/*.md", "docs/glossary.md", "docs/development/*.md", "simcluster/*.md",
	} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, names...)
	}
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "README.md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the examples' READMEs: %w", err)
	}
	documents := make([]Document, len(paths))
	for i, path := range paths {
		if documents[i], err = Open(root, path); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// Open reads one document.
func Open(root, path string) (Document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Document{}, err
	}
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return Document{}, err
	}
	return Document{Path: filepath.ToSlash(relative), Text: string(text)}, nil
}

// Rendered is the path at which people read the document, from which its links lead: a template's is below docs/.
func (d Document) Rendered() string {
	if rest, is := strings.CutPrefix(d.Path, "templates/"); is {
		return "docs/" + strings.TrimSuffix(rest, ".tmpl")
	}
	return d.Path
}

// Piece is a piece of a document: a block's or a span's code, or a link's target.
type Piece struct {
	Line     int // of its first line, from 1
	Language string
	Text     string
}

// Blocks are the fenced blocks of code, without the indentation of their fences.
func (d Document) Blocks() []Piece {
	blocks, _ := d.split()
	return blocks
}

var span = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")

// Spans are the pieces of code within the text; one that is broken across two lines has a blank there.
func (d Document) Spans() []Piece {
	_, prose := d.split()
	return pieces(prose, span, func(text string) string { return strings.Join(strings.Fields(text), " ") })
}

var link = regexp.MustCompile(`\]\(([^()\s]+)\)`)

// Links are the targets of the links and pictures.
func (d Document) Links() []Piece {
	_, prose := d.split()
	return pieces(span.ReplaceAllStringFunc(prose, blank), link, func(text string) string { return text })
}

var (
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^()]*\)`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)"`)
)

// Anchors are what links may name behind a #: the headings as GitHub and Terraform's registry write them, and HTML's.
func (d Document) Anchors() []string {
	_, prose := d.split()
	var anchors []string
	for _, m := range heading.FindAllStringSubmatch(prose, -1) {
		slug := slug(linked.ReplaceAllString(m[1], "$1"))
		name := slug
		for n := 1; slices.Contains(anchors, name); n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		anchors = append(anchors, name)
	}
	for _, m := range anchor.FindAllStringSubmatch(prose, -1) {
		anchors = append(anchors, m[1])
	}
	return anchors
}

// slug is GitHub's: small letters, blanks as hyphens, nothing else but letters, digits, hyphens and underscores.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

var fence = regexp.MustCompile("^( *)(```+|~~~+)(\\S*)")

// split parts code from prose, which has empty lines in the code's place.
func (d Document) split() (blocks []Piece, prose string) {
	var out strings.Builder
	var within []string // the fence that was opened, as matched
	for i, line := range strings.Split(d.Text, "\n") {
		found := fence.FindStringSubmatch(line)
		switch {
		case within == nil && found == nil:
			out.WriteString(line)
		case within == nil:
			within = found
			blocks = append(blocks, Piece{Line: i + 2, Language: found[3]})
		case found != nil && strings.HasPrefix(found[2], within[2]) && found[3] == "":
			within = nil
		default:
			blocks[len(blocks)-1].Text += strings.TrimPrefix(line, within[1]) + "\n"
		}
		out.WriteByte('\n')
	}
	return blocks, out.String()
}

// pieces are what a pattern's group matches.
func pieces(text string, pattern *regexp.Regexp, tidy func(string) string) []Piece {
	var found []Piece
	for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, Piece{Line: 1 + strings.Count(text[:m[0]], "\n"), Text: tidy(text[m[2]:m[3]])})
	}
	return found
}

// blank keeps a text's line breaks, so that lines keep their numbers.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}
