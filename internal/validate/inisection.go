package validate

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// runnerIni matches, without the white space round it, the name of each
// section of setup.cfg that speaks to the test runner.
var runnerIni = regexp.MustCompile(`(?i)^(?:tool:pytest|pytest|nosetests|unittest|aliases|options\.entry_points|coverage:.*|tox:.*|testenv.*)$`)

// iniRunner names a section of the runner that differs. The readers of the
// file disagree on what a heading is, so both ways of reading must agree.
func iniRunner(old, after []byte) (string, bool) {
	for _, heading := range []func(string) (string, bool){iniconfigHeading, configparserHeading} {
		before, now := iniSections(string(old), heading), iniSections(string(after), heading)
		names := slices.Sorted(maps.Keys(before))
		for _, name := range slices.AppendSeq(names, maps.Keys(now)) {
			if before[name] != now[name] {
				return name, true
			}
		}
	}
	return "", false
}

// iniconfigHeading reads as pytest does: a heading begins its line, and what
// follows # or ; is a comment.
func iniconfigHeading(line string) (string, bool) {
	if !strings.HasPrefix(line, "[") {
		return "", false
	}
	if i := strings.IndexAny(line, "#;"); i >= 0 {
		line = line[:i]
	}
	name, ok := strings.CutSuffix(strings.TrimSpace(line), "]")
	return strings.TrimPrefix(name, "["), ok
}

// configparserHeading reads as Python's configparser does at its most
// generous: a heading may be indented, and anything may follow it.
func configparserHeading(line string) (string, bool) {
	name, ok := strings.CutPrefix(strings.TrimSpace(line), "[")
	end := strings.LastIndexByte(name, ']')
	if !ok || end < 1 {
		return "", false
	}
	return name[:end], true
}

// iniSections is the text of the runner's sections by name, without blank
// lines and comments. Names that differ by case or white space are kept apart.
func iniSections(src string, heading func(string) (string, bool)) map[string]string {
	out := map[string]string{}
	inside := ""
	for _, line := range pythonLines(strings.TrimPrefix(src, "\ufeff")) {
		line = strings.TrimRight(line, " \t")
		bare := strings.TrimSpace(line)
		name, ok := heading(line)
		switch {
		case bare == "" || bare[0] == '#' || bare[0] == ';':
		case ok && runnerIni.MatchString(strings.TrimSpace(name)):
			inside = name
			out[inside] += "\n"
		case ok:
			inside = ""
		case inside != "":
			out[inside] += line + "\n"
		}
	}
	return out
}

// pythonLines cuts a text where Python's str.splitlines does.
func pythonLines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			return true
		}
		return false
	})
}
