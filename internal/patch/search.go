package patch

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	searchOpen  = regexp.MustCompile(`^\s*(?:<{5,9}|-{5,9})\s*(?:SEARCH|ORIGINAL)\s*(?:>{0,1}.*)$`)
	searchSplit = regexp.MustCompile(`^\s*={5,9}\s*$`)
	searchClose = regexp.MustCompile(`^\s*(?:>{5,9}|\+{5,9})\s*(?:REPLACE|UPDATED)\s*$`)
)

// readSearch reads SEARCH/REPLACE blocks. The file of a block stands above it,
// with or without a fence in between; else it is that of the block before,
// else the only target.
func readSearch(a *answer) (Draft, bool, error) {
	d := Draft{Format: FormatSearch}
	current, floor := "", 0
	for i := 0; i < len(a.lines); i++ {
		if searchClose.Match(a.lines[i]) {
			a.note("a stray end marker was ignored")
		}
		if !searchOpen.Match(a.lines[i]) {
			continue
		}
		b, next, err := a.searchBlock(i)
		if err != nil {
			return d, true, err
		}
		if name := a.searchName(i, floor); name != "" {
			current = name
		}
		if current == "" {
			current, _ = a.names.only()
		}
		f := b.file(current)
		if f.Path == "" {
			f.Path, _ = a.holder(f.Hunks)
		}
		if f.Path == "" {
			return d, true, refuse(GateDecode, ReasonNoPath, "",
				"a SEARCH block does not say which file it is for; put the path on the line above. Files: %s",
				a.names.allowed())
		}
		d.Files = append(d.Files, f)
		i, floor = next-1, next
	}
	return d, len(d.Files) > 0, nil
}

// searchPair is the two sides of a block.
type searchPair struct{ search, replace [][]byte }

func (b searchPair) file(name string) File {
	if len(b.search) == 0 || allBlank(b.search) {
		return File{Path: name, Op: OpModify, Hunks: []Hunk{{
			Literal: true, Replace: joinText(b.replace), Sequential: true,
		}}}
	}
	h := diffHunk(b.search, b.replace)
	h.Sequential = true
	return File{Path: name, Op: OpModify, Hunks: []Hunk{h}}
}

// searchBlock reads the block that opens at line i and returns the line after
// it. A second divider is noise where nothing of the replacement follows it,
// and ends a block that has no other end; anywhere else it leaves open which
// text is which, and the block is refused.
func (a *answer) searchBlock(i int) (searchPair, int, error) {
	splits, end := a.searchMarks(i)
	switch {
	case len(splits) == 0:
		return searchPair{}, 0, refuse(GateDecode, ReasonMalformed, "", "a SEARCH/REPLACE block has no ======= line")
	case len(splits) == 1 && end < 0:
		return searchPair{}, 0, refuse(GateDecode, ReasonMalformed, "", "a SEARCH/REPLACE block has no >>>>>>> REPLACE line")
	case len(splits) == 1:
		return searchPair{a.lines[i+1 : splits[0]], a.lines[splits[0]+1 : end]}, end + 1, nil
	}
	next := splits[1] + 1
	noise := end >= 0 && allBlank(a.lines[next:end])
	if len(splits) > 2 || a.underlines(splits) || (!noise && (end >= 0 || !a.textEnds(next))) {
		return searchPair{}, 0, refuse(GateDecode, ReasonMalformed, "",
			"a SEARCH/REPLACE block holds more than one ======= line")
	}
	if noise {
		next = end + 1
	}
	a.note("a second ======= line of a SEARCH/REPLACE block was ignored")
	return searchPair{a.lines[i+1 : splits[0]], a.lines[splits[0]+1 : splits[1]]}, next, nil
}

// searchMarks finds the dividers of the block that opens at line i and its end
// mark, -1 when another block opens before it or there is none.
func (a *answer) searchMarks(i int) (splits []int, end int) {
	for k := i + 1; k < len(a.lines); k++ {
		switch l := a.lines[k]; {
		case searchOpen.Match(l):
			return splits, -1
		case searchSplit.Match(l):
			splits = append(splits, k)
		case searchClose.Match(l):
			return splits, k
		}
	}
	return splits, -1
}

// underlines says whether the second divider may be the underline of a title,
// which is content.
func (a *answer) underlines(splits []int) bool {
	title := bytes.TrimSpace(a.lines[splits[1]-1])
	return splits[1] > splits[0]+1 && len(title) == len(bytes.TrimSpace(a.lines[splits[1]]))
}

// textEnds says whether line k is the end of a paragraph, a fence or the text.
func (a *answer) textEnds(k int) bool {
	if k >= len(a.lines) || blank(a.lines[k]) {
		return true
	}
	_, fence := parseMark(a.lines[k])
	return fence
}

// searchName looks for the block's path above it: the info string of the fence
// and the nearest lines that are not blank.
func (a *answer) searchName(i, floor int) string {
	seen := 0
	for k := i - 1; k >= floor && seen < 2; k-- {
		l := a.lines[k]
		if blank(l) {
			continue
		}
		if m, ok := parseMark(l); ok {
			if _, name := a.names.info(m.info); name != "" {
				return a.names.existing(name, false)
			}
			continue
		}
		seen++
		if name, ok := a.names.label(string(l)); ok {
			return a.names.existing(name, false)
		}
		if s, _ := undecorate(string(l)); looksLikePath(s) {
			return a.names.existing(s, false)
		}
	}
	return ""
}

var tagBlock = regexp.MustCompile(`(?is)<file>(.*?)</file>[^\n]*\s*<original>(.*?)</original>[^\n]*\s*<patched>(.*?)</patched>`)

// readTags reads <file>, <original> and <patched> tags.
func readTags(a *answer) (Draft, bool, error) {
	d := Draft{Format: FormatSearch}
	for _, m := range tagBlock.FindAllSubmatch(a.text, -1) {
		name := strings.Trim(strings.TrimSpace(string(m[1])), "`\"'")
		if name == "" {
			return d, true, refuse(GateDecode, ReasonNoPath, "", "a <file> tag is empty. Files: %s", a.names.allowed())
		}
		f := searchPair{tagLines(m[2]), tagLines(m[3])}.file(a.names.existing(name, false))
		// An empty original stands for a place that the source does not know,
		// often in a file that it made up: it creates none.
		f.Hunks[0].Sequential = len(f.Hunks[0].Lines) > 0
		d.Files = append(d.Files, f)
	}
	if len(d.Files) == 0 && bytes.Contains(a.text, []byte("<patched>")) && bytes.Contains(a.text, []byte("<original>")) {
		return d, true, refuse(GateDecode, ReasonMalformed, "",
			"<file>, <original> and <patched> must follow each other, each with its closing tag")
	}
	return d, len(d.Files) > 0, nil
}

// tagLines cuts the text between tags; line ends next to the tags and a fence
// inside them are not part of it.
func tagLines(b []byte) [][]byte {
	lines := trimBlankEnds(splitText(b))
	if len(lines) >= 2 {
		_, open := parseMark(lines[0])
		m, shut := parseMark(lines[len(lines)-1])
		if open && shut && m.info == "" {
			lines = lines[1 : len(lines)-1]
		}
	}
	return lines
}
