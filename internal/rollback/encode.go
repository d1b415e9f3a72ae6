package rollback

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

const manifestVersion = 1

// name is a string of any bytes that survives JSON: a plain string where it
// is UTF-8, else {"b64":"…"}.
type name string

func (n name) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	return json.Marshal(rawName{[]byte(n)})
}

type rawName struct {
	B64 []byte `json:"b64"`
}

func (n *name) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		var raw rawName
		if err := json.Unmarshal(data, &raw); err != nil {
			return err
		}
		*n = name(raw.B64)
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*n = name(s)
	return nil
}

type wireEntry struct {
	Path   name   `json:"p"`
	Type   Type   `json:"t"`
	Mode   uint32 `json:"m,omitempty"`
	Size   int64  `json:"s,omitempty"`
	SHA256 string `json:"h,omitempty"`
	Target name   `json:"l,omitempty"`
}

type wireManifest struct {
	Version      int         `json:"v"`
	Entries      []wireEntry `json:"entries"`
	Ignore       []name      `json:"ignore,omitempty"`
	Environments []name      `json:"environments,omitempty"`
	Special      []name      `json:"special,omitempty"`
	HardLinked   []name      `json:"hard_linked,omitempty"`
}

// Encode writes the manifest as compact JSON. Equal manifests give equal bytes.
func (m Manifest) Encode() ([]byte, error) {
	w := wireManifest{
		Version:      manifestVersion,
		Entries:      make([]wireEntry, len(m.Entries)),
		Ignore:       convert[name](m.Ignore),
		Environments: convert[name](m.Environments),
		Special:      convert[name](m.Special),
		HardLinked:   convert[name](m.HardLinked),
	}
	for i, e := range m.Entries {
		w.Entries[i] = wireEntry{name(e.Path), e.Type, e.Mode, e.Size, e.SHA256, name(e.Target)}
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, &Error{Kind: KindManifest, Err: err}
	}
	return data, nil
}

// Decode reads what Encode wrote. It refuses a newer version and everything
// that no scan could have produced: an unclean, duplicate or unsorted path, an
// entry whose folder is missing, a malformed hash.
func Decode(data []byte) (Manifest, error) {
	var w wireManifest
	if err := json.Unmarshal(data, &w); err != nil {
		return Manifest{}, &Error{Kind: KindManifest, Err: err}
	}
	if w.Version != manifestVersion {
		return Manifest{}, &Error{Kind: KindManifest, Detail: fmt.Sprintf("version %d, this program reads %d", w.Version, manifestVersion)}
	}
	m := Manifest{
		Entries:      make([]Entry, len(w.Entries)),
		Ignore:       convert[string](w.Ignore),
		Environments: convert[string](w.Environments),
		Special:      convert[string](w.Special),
		HardLinked:   convert[string](w.HardLinked),
	}
	for i, e := range w.Entries {
		m.Entries[i] = Entry{string(e.Path), e.Type, e.Mode, e.Size, e.SHA256, string(e.Target)}
	}
	if err := m.check(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

func convert[T, S ~string](in []S) []T {
	if len(in) == 0 {
		return nil
	}
	out := make([]T, len(in))
	for i, s := range in {
		out[i] = T(s)
	}
	return out
}

func (m Manifest) check() error {
	folders := map[string]bool{".": true}
	last := ""
	for _, e := range m.Entries {
		bad := e.problem()
		switch {
		case bad != "":
		case e.Path <= last:
			bad = "paths are not sorted"
		case !folders[path.Dir(e.Path)]:
			bad = "its folder is not listed"
		}
		if bad != "" {
			return &Error{Kind: KindManifest, Paths: []string{e.Path}, Detail: bad}
		}
		folders[e.Path] = e.Type == TypeDir
		last = e.Path
	}
	return nil
}

// problem says what is wrong with an entry, empty when nothing is.
func (e Entry) problem() string {
	if !cleanBytes(e.Path) {
		return "the path is not clean"
	}
	if e.Mode > 0o777 || e.Size < 0 {
		return "mode or size out of range"
	}
	file, dir, link := e.Type == TypeFile, e.Type == TypeDir, e.Type == TypeLink
	switch {
	case !file && !dir && !link:
		return fmt.Sprintf("unknown type %q", e.Type)
	case file != isSHA(e.SHA256), !file && (e.SHA256 != "" || e.Size != 0):
		return "content does not fit the type"
	case link != (e.Target != ""), link && e.Mode != 0, strings.ContainsRune(e.Target, 0):
		return "target does not fit the type"
	}
	return ""
}

// cleanBytes is fs.ValidPath for names of any bytes, and refuses "." and NUL.
func cleanBytes(p string) bool {
	if p == "." || strings.ContainsRune(p, 0) {
		return false
	}
	ascii := strings.Map(func(r rune) rune {
		if r == utf8.RuneError {
			return 'x'
		}
		return r
	}, p)
	return fs.ValidPath(ascii)
}

func isSHA(s string) bool {
	if len(s) != 64 || s != strings.ToLower(s) {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}
