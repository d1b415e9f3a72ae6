package main

import (
	"fmt"
	"io"
	"os"
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

// fold wraps the text that begins in column indent of a terminal; further
// lines begin there too. Only a word that is longer than a line is broken.
func fold(text string, indent, width int) string {
	limit := width - indent
	if width == 0 || limit < narrowest {
		return text
	}
	text = ansi.Wordwrap(text, limit, "")
	text = ansi.Wrap(text, limit, ":/_")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}

// narrowest is the fewest columns in which text is wrapped.
const narrowest = 20

// fit cuts a line so that it stays one; the last column stays free, for some
// terminals wrap there.
func fit(text string, width int) string {
	return ansi.Truncate(text, max(width-1, 1), "…")
}

// table prints rows in columns. On a terminal the last column is wrapped, and
// stands below its row where it would have too little room.
func table(e *env, head []string, rows [][]string) error {
	last := len(head) - 1
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
		if _, err := fmt.Fprintln(e.out, strings.TrimRight(line+fold(tail, at, e.width), " ")); err != nil {
			return err
		}
	}
	return nil
}

// roomy is the fewest columns in which a column is wrapped beside others.
const roomy = 28
