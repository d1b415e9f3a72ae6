package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-isatty"
)

// terminalWidth is the number of columns where w is a terminal, else 0: what
// a program reads is never wrapped.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return 0
	}
	return columns(f)
}

// fold wraps the text that begins in column indent of a terminal between its
// words; further lines begin there too. A word is never broken, not at a hyphen
// either: half of a path or of an id is of no use to anybody, and the terminal
// itself wraps what is longer than a line.
func fold(text string, indent, width int) string {
	limit := width - indent
	if width == 0 || limit < narrowest {
		return text
	}
	var out strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			out.WriteString("\n" + strings.Repeat(" ", indent))
		}
		foldLine(&out, line, indent, limit)
	}
	return out.String()
}

func foldLine(out *strings.Builder, line string, indent, limit int) {
	at, blanks := 0, 0
	for i, word := range strings.Split(strings.TrimRight(line, " "), " ") {
		if i > 0 {
			blanks++
		}
		wide := ansi.StringWidth(word)
		switch {
		case wide == 0:
			continue
		case at > 0 && at+blanks+wide > limit:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at, blanks = 0, 0
		}
		out.WriteString(strings.Repeat(" ", blanks) + word)
		at, blanks = at+blanks+wide, 0
	}
}

// narrowest is the fewest columns in which text is wrapped.
const narrowest = 20

// fit cuts a line so that it stays one; the last column stays free, for some
// terminals wrap there.
func fit(text string, width int) string {
	return ansi.Truncate(text, max(width-1, 1), "…")
}

// middle shortens a text to that many columns and keeps both of its ends.
func middle(text string, columns int) string {
	wide := ansi.StringWidth(text)
	if wide <= columns {
		return text
	}
	head := max(columns-1, 1) / 2
	end := max(columns-1-head, 0)
	tail := ansi.TruncateLeft(text, wide-end, "")
	if ansi.StringWidth(tail) > end { // a wide character lies across the cut
		tail = ansi.TruncateLeft(text, wide-end+1, "")
	}
	return ansi.Truncate(text, head, "") + "…" + tail
}

// folder heads the column of paths, which are shortened on a terminal.
const folder = "FOLDER"

// table prints rows in columns. On a terminal the last column is wrapped, and
// stands below its row where it would have too little room. A folder keeps to a
// share of the line and is shortened in its middle.
func table(e *env, head []string, rows [][]string) error {
	last := len(head) - 1
	if at := slices.Index(head[:last], folder); at >= 0 && e.width > 0 {
		for _, row := range rows {
			row[at] = middle(row[at], max(narrowest, e.width/4))
		}
	}
	rows = append([][]string{head}, rows...)
	var cells strings.Builder
	w := tabwriter.NewWriter(&cells, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row[:last], "\t")+"\t")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	lines := strings.Split(cells.String(), "\n")
	for i, row := range rows {
		line, tail := lines[i], row[last]
		at := ansi.StringWidth(line)
		if below := at+ansi.StringWidth(tail) > e.width && e.width-at < roomy; e.width > 0 && below {
			line, at = strings.TrimRight(line, " ")+"\n          ", 10
		}
		if head[last] == folder && e.width > 0 {
			tail = middle(tail, max(narrowest, e.width-at))
		}
		if _, err := fmt.Fprintln(e.out, strings.TrimRight(line+fold(tail, at, e.width), " ")); err != nil {
			return err
		}
	}
	return nil
}

// roomy is the fewest columns in which a column is wrapped beside others.
const roomy = 28
