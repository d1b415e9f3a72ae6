package patch

import (
	"regexp"
)

// statement matches a line that only code has. One such line makes a text
// without any other mark a claim to be code; what else it holds is for the
// gates to judge.
var statement = regexp.MustCompile(`^\s*(?:` + statementForms + `)\s*$`)

const statementForms = `(?:async\s+)?def\s+\w+\s*\(.*` + // Python
	`|class\s+\w+\s*(?:\(.*\))?\s*[:{].*` +
	`|import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*[\w.]+(?:\s+as\s+\w+)?)*;?` +
	`|import\s+.*\s+from\s+["'].*` +
	`|import\s+(?:\w+\s+)?["'(].*` +
	`|from\s+[\w.]+\s+import\s+[\w*(].*` +
	`|(?:if|elif|while|for|with|except|match|case)\b.*:` +
	`|(?:else|try|finally)\s*[:{]` +
	`|@[\w.]+(?:\(.*\))?` +
	`|return\s+[\w"'(\[{.-][^ ]*(?:\s*[-+*/%<>=&|(\[].*)?;?` +
	`|[A-Za-z_][\w.]*(?:\[[^\]]*\])*\s*(?:[-+*/%&|^]|//|\*\*|<<|>>|:)?=[^=].*` + // assignments
	`|[A-Za-z_][\w.]*\(.*\)\s*;?` + // calls
	`|package\s+\w+` + // Go
	`|func\s+(?:\([^)]*\)\s*)?\w+\s*[(\[].*` +
	`|(?:type|const|var|let)\s+\w+.*[={(].*` +
	`|type\s+\w+\s+(?:struct|interface)\b.*` +
	`|(?:export|public|private|protected|static|async)\s+.*[({;]` + // C family
	`|function\b.*\(.*` +
	`|#include\s*[<"].*` + "|#!/.*" +
	`|.*[;{]` + `|[})\]]+[;,)]*` +
	`|</?\w[^>]*>.*` + // markup
	`|<\?(?:php|xml)\b.*` +
	`|(?i:select|insert|update|delete|create|alter|drop)\s.*;`

// readBare takes a text without any mark for the only target's new content
// when at least one of its lines is a statement.
func readBare(a *answer) (Draft, bool, error) {
	claims, lines := false, a.opened()
	for _, l := range lines {
		if statement.Match(l) {
			claims = true
			break
		}
	}
	if !claims {
		return Draft{}, false, nil
	}
	only, ok := a.names.only()
	if !ok {
		return Draft{}, true, refuse(GateDecode, ReasonNoPath, "",
			"the answer does not say which file it is; put each file in a fence with its path above. Files: %s",
			a.names.allowed())
	}
	a.note("bare code without a fence was taken for " + only)
	return Draft{Format: FormatFile, Files: []File{{
		Path: only, Op: OpModify, Whole: true, Body: joinText(trimBlankEnds(lines)),
	}}}, true, nil
}

// opened is the text up to its only fence mark, when that can't open a block:
// the answer begins inside a block that the prompt has opened.
func (a *answer) opened() [][]byte {
	if len(a.fences) != 1 || a.fences[0].closed || a.fences[0].info != "" {
		return a.lines
	}
	return a.lines[:a.fences[0].start]
}

// begunInside says whether an answer starts with code and has nothing but the
// mark that ends it.
func (a *answer) begunInside() bool {
	lines := trimBlankEnds(a.opened())
	return len(lines) > 0 && len(lines) < len(a.lines) && statement.Match(lines[0])
}

// trimBlankEnds drops blank lines before and after an answer.
func trimBlankEnds(lines [][]byte) [][]byte {
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}
