package validate

import (
	"bytes"
	"regexp"
	"strings"

	"nexuscore.dev/nexus/internal/patch"
)

// longestRemark bounds the bytes at the end of a line that are read as one.
const longestRemark = 500

// elisionWord is what models call the lines that they leave out.
const elisionWord = `(?:rest|existing|remaining|other|previous|unchanged|omitted|same|original|above|as before|snip|code|implementation|methods?|functions?|imports?)`

// The words with which models leave code out. A strong phrase is never a
// useful comment; a weak one is refused only where code went away.
var (
	strongElision = regexp.MustCompile(`(?i)` + strings.Join([]string{
		`^\W*(?:\.\.\.|…)\W*.{0,40}\b` + elisionWord + `\b`,
		`\b` + elisionWord + `\b.{0,20}(?:\.\.\.|…)\W*$`,
		`^\W*(?:the )?(?:rest|remainder) of (?:the |this |your |my )?(?:\w+ )?(?:file|code|class|function|method|module|implementation|component|script|styles?|rules?|content|program|tests?)\b.{0,40}$`,
		`\b(?:existing|remaining|other|previous|original) (?:code|methods|functions|implementation|imports|content|styles|rules)\b.{0,30}\b(?:here|unchanged|remains?|stays?|same|untouched|omitted|as is|goes)\b`,
		`\b(?:remains?|stays?|left|kept) (?:the same|unchanged|untouched|as (?:is|it (?:was|is)|before))\W*$`,
		`^\W*(?:the )?` + elisionWord + `(?: \w+){0,4} (?:is|are)? ?unchanged\W*$`,
		`\b(?:omitted|elided|truncated|shortened|skipped) for (?:brevity|clarity|space)\b`,
		`\bno changes? (?:here|needed|below|above|required)\b`,
		`\b(?:your|actual|real) (?:code|implementation|logic) (?:goes )?here\b`,
		`^\W*(?:same|unchanged) as (?:before|above|the original|in the original)\W*$`,
		`<(?:rest|existing|unchanged|snip|omitted)[^>]*>|\[(?:rest|existing|unchanged|snip|omitted)[^\]]*\]`,
		`以下(?:同様|略|省略)|(?:は|を)?省略(?:し|。|$)|(?:残り|既存|元)の(?:コード|処理|実装|部分|関数|メソッド).{0,10}(?:そのまま|同じ|変更なし|省略|ここ)`,
		`変更(?:なし|ありません)|(?:その他|他)は(?:そのまま|同じ)|其余(?:代码|部分|不变)|(?:保持|其他).{0,6}不变|(?:现有|原有|其他)代码|代码(?:省略|同上)|此处省略`,
		`(?:기존|나머지|이전) (?:코드|함수|메서드|부분)|(?:변경|수정) ?없음|생략`,
		`(?:rest|übriger?|restlicher?|bestehender?) (?:des codes|code|der datei|der klasse)|(?:bleibt|bleiben|rest) (?:unverändert|gleich|wie)`,
		`reste du (?:code|fichier)|code existant|(?:reste|restent) inchangée?s?|sans changement`,
		`resto del? (?:código|codigo|codice|archivo|file|ficheiro)|(?:código|codigo|codice) (?:existente|esistente)|sin cambios|sem alterações|invariat[oa]`,
		`остальн(?:ой|ая|ые) (?:код|часть|методы|функции)|без изменений|существующий код`,
	}, "|"))
	weakElision = regexp.MustCompile(`(?i)\b(?:keep|leave|preserve|retain)\b.{0,30}\b(?:existing|rest|other|remaining|original|same|unchanged|as is|previous)\b` +
		`|\b(?:existing|remaining|other|previous|original|same)\b.{0,20}\b(?:code|methods?|functions?|styles?|rules?|fields?|imports?|logic|classes|statements?|properties|props|cases|handlers?|routes?|tests?)\b` +
		`|\b(?:unchanged|as before|etc\.?|and so on|(?:is|are) the same|(?:rest|remainder) of)\b|^\W*(?:\.\.\.|…)\W*$|同様|そのまま|同上|残り|不变|나머지`)
	commentMark = regexp.MustCompile(`^\s*(?:#|//|/\*|\*|<!--|--|;|%|\{/\*|"""|'''|rem\b)`)
	trailing    = regexp.MustCompile(`(?:\s#|\s//|/\*|<!--)\s*(.*)$`)
	onlyDots    = regexp.MustCompile(`^\s*(?:\.\.\.|…)\s*$`)
)

// noElision refuses files in which a comment stands for code. Only lines that
// the base does not have count.
func (c *check) noElision() *refusal {
	for _, f := range c.files {
		if f.Op == patch.OpDelete || isText(f.Path) && extOf(f.Path) != ".html" {
			continue
		}
		if n := f.elided(); n > 0 {
			return refuse(GateElision, "elision",
				"%s:%d leaves code out (%q); give the complete content, or an edit of the changed lines only",
				f.Path, n, clip(lineAt(f.lines, n)))
		}
	}
	return nil
}

// elided is the number of the first new line that stands for other lines.
func (f *file) elided() int {
	known := map[string]int{}
	for _, l := range f.olds {
		known[string(bytes.TrimSpace(l))]++
	}
	for _, s := range f.spans {
		loses := f.loses(s)
		for i := s.NewFrom; i < s.NewTo; i++ {
			text, ok := remark(f.lines[i], isPython(f.Path))
			if !ok || known[string(bytes.TrimSpace(f.lines[i]))] > 0 {
				continue
			}
			if hinted(text) && (strongElision.MatchString(text) || (loses && weakElision.MatchString(text))) {
				return i + 1
			}
		}
	}
	return 0
}

// elisionHints are parts of every phrase in Latin script; a text without one
// need not be matched.
var elisionHints = []string{
	"...", "…", "rest", "remain", "existing", "other", "previous", "original", "unchanged", "omitted", "elided", "truncated",
	"shortened", "skipped", "no change", "your ", "actual ", "real ", "same", "snip", "keep", "leave", "preserve", "retain",
	"etc", "and so on", "before", "bleib", "übrig", "bestehend", "existant", "inchang", "sans ", "sin ", "sem ", "invariat",
	"existente", "esistente",
}

func hinted(text string) bool {
	low := strings.ToLower(text)
	for _, h := range elisionHints {
		if strings.Contains(low, h) {
			return true
		}
	}
	for _, r := range low {
		if r >= 0x370 {
			return true
		}
	}
	return false
}

// loses says whether more lines of code went than came in one place.
func (f *file) loses(s patch.Span) bool {
	return code(f.olds[s.OldFrom:s.OldTo]) > code(f.lines[s.NewFrom:s.NewTo])
}

func code(lines [][]byte) int {
	n := 0
	for _, l := range lines {
		if !blank(l) && !commentMark.Match(l) {
			n++
		}
	}
	return n
}

// remark takes the comment of a line. Outside Python a line of dots alone is
// one too: there it is no code.
func remark(line []byte, python bool) (string, bool) {
	if len(line) > longestRemark {
		line = line[len(line)-longestRemark:]
	}
	if commentMark.Match(line) {
		return string(bytes.TrimSpace(line)), true
	}
	if !python && onlyDots.Match(line) {
		return string(line), true
	}
	if m := trailing.FindSubmatch(line); m != nil {
		return string(m[1]), true
	}
	return "", false
}
