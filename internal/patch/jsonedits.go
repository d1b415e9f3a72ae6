package patch

import (
	"bytes"
	"encoding/json"
	"path"
	"sort"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The names under which models put the same thing.
var (
	keysPath    = []string{"path", "file", "file_path", "filepath", "filename", "target", "name"}
	keysBody    = []string{"content", "code", "fixed_code", "contents", "body", "new_content", "source"}
	keysSearch  = []string{"search", "old_string", "old_str", "old", "find", "original", "before", "old_text"}
	keysReplace = []string{"replace", "new_string", "new_str", "new", "replacement", "patched", "after", "new_text"}
	keysDiff    = []string{"diff", "patch", "unified_diff"}
	keysList    = []string{"files", "edits", "changes", "operations", "patches"}
	keysOp      = []string{"op", "operation", "action", "type"}
	keysFrom    = []string{"from", "old_path"}
	keysTo      = []string{"to", "new_path"}
)

// readJSON reads whole files and structured edits from a JSON answer: the
// whole text, or a fenced block of it.
func readJSON(a *answer) (Draft, bool, error) {
	text, fenced := a.jsonText()
	if text == nil {
		return Draft{}, false, nil
	}
	var v any
	if err := unmarshalLenient(text, &v); err != nil {
		if fenced || !looksLikeFields(text) {
			return Draft{}, false, nil
		}
		return Draft{}, true, refuse(GateDecode, ReasonMalformed, "", "the answer is not complete JSON: %v", err)
	}
	if !a.answersIn(v) {
		return Draft{}, false, nil
	}
	j := &jsonReader{a: a}
	if err := j.value(v); err != nil {
		return Draft{}, true, err
	}
	if !j.claimed && !fenced {
		return Draft{}, true, noCode("the JSON answer has none of the fields of an edit")
	}
	if !j.claimed {
		return Draft{}, false, nil
	}
	if len(j.files) == 0 {
		return Draft{}, true, noCode("the JSON answer holds no code")
	}
	if at := notText(text); at != "" {
		return Draft{}, true, refuse(GateDecode, ReasonMalformed, "", "the JSON answer holds %s; write such a character as itself, in UTF-8", at)
	}
	return Draft{Format: j.format(), Files: j.files}, true, nil
}

// jsonText finds the JSON of an answer: all of it, or its only block that is.
func (a *answer) jsonText() (text []byte, fenced bool) {
	t := bytes.TrimSpace(a.text)
	if len(t) > 0 && (t[0] == '{' || t[0] == '[') {
		return t, false
	}
	for i, f := range a.fences {
		_, name := a.names.info(f.info)
		if name != "" || a.above(i) != "" {
			continue
		}
		b := bytes.TrimSpace(joinText(f.body))
		if f.inline || len(b) == 0 || (b[0] != '{' && b[0] != '[') {
			continue
		}
		if text != nil {
			return nil, false
		}
		text = b
	}
	return text, true
}

// answersIn says whether a JSON value is an answer and not the new content of
// a JSON file, which may well have a field "name" or "source".
func (a *answer) answersIn(v any) bool {
	only, ok := a.names.only()
	if !ok || path.Ext(only) != ".json" {
		return true
	}
	m, isObject := v.(map[string]any)
	if !isObject {
		return false
	}
	if _, ok := text(m, []string{"fixed_code", "content"}); ok {
		return true
	}
	_, search := text(m, keysSearch)
	_, replace := text(m, keysReplace)
	if search && replace {
		return true
	}
	for _, k := range []string{"files", "edits"} {
		if list, isList := m[k].([]any); isList && len(list) > 0 {
			if _, ok := list[0].(map[string]any); ok {
				return true
			}
		}
	}
	return false
}

// looksLikeFields says whether a text that is no JSON was meant as an answer
// in JSON: an object that starts with one of the fields.
func looksLikeFields(text []byte) bool {
	if text[0] != '{' {
		return false
	}
	for _, keys := range [][]string{keysPath, keysBody, keysSearch, keysReplace, keysDiff, keysList} {
		for _, k := range keys {
			if bytes.HasPrefix(bytes.TrimSpace(text[1:]), []byte(`"`+k+`"`)) {
				return true
			}
		}
	}
	return false
}

// jsonReader collects files from a decoded JSON value.
type jsonReader struct {
	a     *answer
	files []File
	// claimed says that a field of an answer was seen.
	claimed bool
}

func (j *jsonReader) format() string {
	for _, f := range j.files {
		if !f.Whole {
			return FormatEdits
		}
	}
	return FormatFile
}

func (j *jsonReader) value(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := j.value(e); err != nil {
				return err
			}
		}
	case map[string]any:
		return j.object(v)
	}
	return nil
}

func (j *jsonReader) object(m map[string]any) error {
	for _, k := range keysList {
		switch list := m[k].(type) {
		case []any:
			if err := j.value(inherit(list, m)); err != nil {
				return err
			}
		case map[string]any:
			if err := j.table(list); err != nil {
				return err
			}
		}
	}
	if op, ok := text(m, keysOp); ok {
		if done, err := j.operation(op, m); done || err != nil {
			return err
		}
	}
	if search, ok := text(m, keysSearch); ok {
		return j.edit(m, search)
	}
	if body, ok := text(m, keysBody); ok {
		j.claimed = true
		if _, named := text(m, keysPath); body == "" && !named {
			return nil
		}
		return j.body(m, body)
	}
	if diff, ok := text(m, keysDiff); ok {
		return j.nested(m, diff)
	}
	return nil
}

// inherit gives the entries of a list the path of the object round it.
func inherit(list []any, m map[string]any) []any {
	name, ok := text(m, keysPath)
	if !ok {
		return list
	}
	for _, e := range list {
		if o, isObject := e.(map[string]any); isObject {
			if _, has := text(o, keysPath); !has {
				o["path"] = name
			}
		}
	}
	return list
}

// table reads {"path": "content", …}.
func (j *jsonReader) table(m map[string]any) error {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		body, ok := m[k].(string)
		if !ok {
			return refuse(GateDecode, ReasonMalformed, k, "the content of %s is not a string", k)
		}
		j.claimed = true
		if err := j.body(map[string]any{"path": k}, body); err != nil {
			return err
		}
	}
	return nil
}

// operation reads entries that say what they do. done is false for those whose
// other fields tell the rest.
func (j *jsonReader) operation(op string, m map[string]any) (done bool, err error) {
	switch op {
	case "delete", "remove":
		name, err := j.path(m)
		j.claimed = true
		j.files = append(j.files, File{Path: j.a.names.existing(name, false), Op: OpDelete})
		return true, err
	case "rename", "move":
		from, okFrom := text(m, keysFrom)
		if !okFrom {
			from, okFrom = text(m, keysPath)
		}
		to, okTo := text(m, keysTo)
		j.claimed = true
		if !okFrom || !okTo {
			return true, refuse(GateDecode, ReasonMalformed, "", "a rename needs the fields from and to")
		}
		j.files = append(j.files, File{
			Path: j.a.names.existing(from, false), Op: OpModify, MoveTo: j.a.names.resolve(to, false),
		})
		return true, nil
	}
	return false, nil
}

func (j *jsonReader) edit(m map[string]any, search string) error {
	j.claimed = true
	replace, ok := text(m, keysReplace)
	if !ok {
		return refuse(GateDecode, ReasonMalformed, "", "an edit has a search text but no replacement")
	}
	if hasNUL(search) || hasNUL(replace) {
		return refuse(GateDecode, ReasonNUL, "", "an edit holds a NUL character")
	}
	hunks := []Hunk{{Literal: true, Search: []byte(search), Replace: []byte(replace), Sequential: true}}
	name, err := j.path(m)
	if err != nil {
		held, ok := j.a.holder(hunks)
		if !ok {
			return err
		}
		name = held
	}
	j.files = append(j.files, File{Path: j.a.names.existing(name, false), Op: OpModify, Hunks: hunks})
	return nil
}

// body takes a content field for the whole file. A field that holds a fence or
// a diff of its own is decoded like a text.
func (j *jsonReader) body(m map[string]any, body string) error {
	if hasNUL(body) {
		return refuse(GateDecode, ReasonNUL, "", "a file holds a NUL character")
	}
	// A file may be full of fences: only an answer is bounded in them.
	if inner, err := newAnswer([]byte(body), j.a.opts); err == nil && wrapped(inner) {
		return j.nested(m, body)
	}
	name, err := j.path(m)
	if err != nil {
		return err
	}
	j.files = append(j.files, File{Path: j.a.names.resolve(name, false), Op: OpModify, Whole: true, Body: []byte(body)})
	return nil
}

// wrapped says whether the first thing in a field is a fence, or a diff.
func wrapped(a *answer) bool {
	lines := trimBlankEnds(a.lines)
	if len(lines) == 0 {
		return false
	}
	if _, ok := parseMark(lines[0]); ok {
		return true
	}
	return diffStart(a) == 0 || searchOpen.Match(lines[0]) ||
		string(bytes.TrimSpace(lines[0])) == "*** Begin Patch"
}

// nested decodes a text inside a field, with the field's path as its target.
func (j *jsonReader) nested(m map[string]any, inner string) error {
	j.claimed = true
	o := j.a.opts
	o.Format = FormatAuto
	if name, ok := text(m, keysPath); ok {
		o.Targets = []string{j.a.names.existing(name, false)}
	}
	d, err := Decode([]byte(inner), o)
	if err != nil {
		return err
	}
	for _, n := range d.Tolerances {
		j.a.note(n)
	}
	j.files = append(j.files, d.Files...)
	return nil
}

func (j *jsonReader) path(m map[string]any) (string, error) {
	if name, ok := text(m, keysPath); ok && name != "" {
		return name, nil
	}
	if only, ok := j.a.names.only(); ok {
		return only, nil
	}
	return "", refuse(GateDecode, ReasonNoPath, "",
		"an entry does not name its file; add the field path. Files: %s", j.a.names.allowed())
}

// text is the first of the fields that is a string.
func text(m map[string]any, keys []string) (string, bool) {
	for _, k := range keys {
		if s, ok := m[k].(string); ok {
			return s, true
		}
	}
	return "", false
}

// notText names what of a JSON text its decoder replaces by U+FFFD without a
// word: bytes that are not UTF-8, and half of a surrogate pair.
func notText(text []byte) string {
	if !utf8.Valid(text) {
		return "bytes that are not UTF-8"
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		r := unit(text, i)
		if !utf16.IsSurrogate(r) {
			continue
		}
		low := rune(0)
		if i+5 < len(text) && text[i+5] == '\\' {
			low = unit(text, i+6)
		}
		if utf16.DecodeRune(r, low) == utf8.RuneError {
			return "half of a surrogate pair (" + string(text[i-1:i+5]) + ")"
		}
		i += 10
	}
	return ""
}

// unit is the UTF-16 unit whose escape has its u at i, else 0.
func unit(text []byte, i int) rune {
	if i+5 > len(text) || text[i] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[i+1:i+5]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

func hasNUL(s string) bool { return bytes.IndexByte([]byte(s), 0) >= 0 }

func unmarshalLenient(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err == nil {
		return nil
	}
	return json.Unmarshal(relax(b), v)
}
