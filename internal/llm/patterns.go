package llm

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// pattern is one kind of secret. Texts without any of the hints (lower case)
// are not searched. The mask takes the place of the group named "s", else of
// the whole match.
type pattern struct {
	name  string
	hints []string
	re    *regexp.Regexp
	// skip, where set, says that a value is no secret after all.
	skip func(key, value, after string) bool
	// loose marks a guess from the surroundings: worth a mask, but no proof.
	loose bool
}

func token(name, expr string, hints ...string) pattern {
	return pattern{name: name, hints: hints, re: regexp.MustCompile(expr)}
}

// patterns is the table, the more telling ones first.
var patterns = append([]pattern{
	// The text of a key holds no five hyphens, so that the search for its end
	// does not go beyond the next key.
	token("private key", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:-{0,4}[^-])*?-{5,}END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})*)`, "private key"),
	token("nats seed", `\bS[UAONCX][A-Z2-7]{56}\b`, "s"),
	token("anthropic key", `\bsk-ant-[A-Za-z0-9_-]{16,}`, "sk-ant-"),
	{
		name: "openai key", hints: []string{"sk-"},
		re:   regexp.MustCompile(`\bsk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}`),
		skip: noDigit, // a class name of a style sheet looks the same otherwise
	},
	{
		name: "aws secret key", hints: []string{"aws"},
		re: regexp.MustCompile(`(?i)aws.{0,20}secret.{0,20}["'=:\s](?P<s>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`), skip: noDigit,
	},
	token("aws key id", `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`, "akia", "asia", "abia", "acca"),
	token("github token", `\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	token("gitlab token", `\bgl(?:pat|dt|rt|cbt|ptt|ft|ffct|imt|agent|oas|soat)-[A-Za-z0-9_-]{16,}`,
		"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glffct-", "glimt-", "glagent-", "gloas-", "glsoat-"),
	token("slack token", `\b(?:xox[abeoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{8,}`, "xox", "xapp-"),
	token("slack webhook", `\bhooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}`, "hooks.slack.com"),
	{
		name: "stripe key", hints: []string{"sk_", "rk_", "whsec_"},
		re: regexp.MustCompile(`\b(?:sk|rk|whsec)_(?:live_|test_|prod_)?[A-Za-z0-9]{16,}`), skip: noDigit,
	},
	token("google key", `\bAIza[A-Za-z0-9_-]{35}`, "aiza"),
	token("google oauth token", `\bya29\.[A-Za-z0-9_-]{20,}`, "ya29."),
	token("json web token", `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, "eyj"),
	token("npm token", `\bnpm_[A-Za-z0-9]{30,}`, "npm_"),
	token("pypi token", `\bpypi-AgE[A-Za-z0-9_-]{40,}`, "pypi-age"),
	token("sendgrid key", `\bSG\.(?:[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|[A-Za-z0-9_.=-]{66})`, "sg."),
	token("twilio key", `\bSK[0-9a-fA-F]{32}\b`, "sk"),
	token("telegram token", `\b\d{8,10}:AA[A-Za-z0-9_-]{32,34}`, ":aa"),
	token("discord token", `\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}`, "."),
	token("hugging face token", `\b(?:hf_[A-Za-z0-9]{30,}|api_org_[A-Za-z]{34})`, "hf_", "api_org_"),
	token("groq key", `\bgsk_[A-Za-z0-9]{30,}`, "gsk_"),
	token("digitalocean token", `\bdo[opr]_v1_[a-f0-9]{64}`, "_v1_"),
	token("shopify token", `\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`, "shpat_", "shpca_", "shppa_", "shpss_"),
	token("vault token", `\bhv[sbr]\.[A-Za-z0-9_-]{24,}`, "hvs.", "hvb.", "hvr."),
	token("age key", `\bAGE-SECRET-KEY-1[A-Z0-9]{50,}`, "age-secret-key-1"),
	token("databricks token", `\bdapi[a-f0-9]{32}\b`, "dapi"),
	token("azure key", `(?i)\b(?:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{40,}={0,2})`, "accountkey=", "sharedaccesskey="),
	{
		name:  "assigned key",
		hints: []string{"key", "secret", "token", "passw", "pwd", "credential"},
		re: regexp.MustCompile(`(?i)(?P<k>key|secret|token|password|passwd|pwd|credentials?)` +
			`["'\]]{0,2}\s{0,4}(?::?=|:|=>)\s{0,4}["'](?P<s>[A-Za-z0-9+/_=.~-]{20,200})["']`),
		skip: noKey,
	},
	{
		name: "authorization header", hints: []string{"bearer", "basic"}, loose: true,
		re: regexp.MustCompile(`(?i)\b(?:bearer|basic)[ \t]+(?P<s>[A-Za-z0-9._~+/-]{16,}={0,2})`),
	},
	{
		name: "password in address", hints: []string{"://"}, loose: true,
		re: regexp.MustCompile(`\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@'"\[]*:(?P<s>[^\s/@'"\[]{3,})@`),
	},
	{
		name: "assigned secret", loose: true,
		hints: []string{"passw", "pwd", "secret", "token", "api_key", "apikey", "api-key", "access_key", "private_key", "credential"},
		re: regexp.MustCompile(`(?i)(?P<k>(?:password|passwd|passwort|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)[a-z0-9_-]*)` +
			`(?:["']?\s*[:=]\s*(?P<q>["'])(?P<s>[^"'\s\[\]{}$<>][^"'\n]{4,200})["']|=(?P<s2>[A-Za-z0-9+/_.~!@#%^&*-]{6,200}={0,2}))`),
		skip: noSecret,
	},
}, servicePatterns()...)

// services are keys that tell their provider by a part that does not change,
// which comes first, in lower case.
var services = [][2]string{
	{"ops_eyj", `ops_eyJ[A-Za-z0-9+/]{60,}`},
	{"a3-", `A3-[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}`},
	{"p8e-", `p8e-[A-Za-z0-9]{32}`},
	{"pat", `pat[A-Za-z0-9]{14}\.[a-f0-9]{64}`},
	{"ltai", `LTAI[A-Za-z0-9]{20}`},
	{"akcp", `AKCp[A-Za-z0-9]{69}`},
	{"cmvmd", `cmVmd[A-Za-z0-9]{59}`},
	{".acc", `(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}`},
	{"absk", `ABSK[A-Za-z0-9+/]{100,}`},
	{"bedrock-api-key-", `bedrock-api-key-[A-Za-z0-9+/=.]{20,}`},
	{"q~", `[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}`},
	{"4b1d", `4b1d[A-Za-z0-9]{38}`},
	{"clojars_", `CLOJARS_[A-Za-z0-9]{60}`},
	{"v1.0-", `v1\.0-[a-f0-9]{24}-[a-f0-9]{146}`},
	{"dp.", `dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9.]{40,}`},
	{"duffel_", `duffel_(?:test|live)_[A-Za-z0-9_=-]{43}`},
	{"dt0", `dt0[cs]\d\d\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}`},
	{"ezak", `EZAK[A-Za-z0-9]{54}`},
	{"eztk", `EZTK[A-Za-z0-9]{54}`},
	{"|", `\d{15,16}\|[A-Za-z0-9_-]{27,40}`},
	{"eaa", `EAA[A-Z][A-Za-z0-9]{100,}`},
	{"flw", `FLW(?:SEC|PUB)K_TEST-[a-hA-H0-9]{12,32}`},
	{"fo1_", `fo1_[\w-]{43}`},
	{"fm1", `fm1[ar]_[A-Za-z0-9+/]{100,}`},
	{"fm2_", `fm2_[A-Za-z0-9+/]{100,}`},
	{"fio-u-", `fio-u-[A-Za-z0-9_=-]{64}`},
	{"eyjrijoi", `eyJrIjoi[A-Za-z0-9]{70,}`},
	{"glc_", `glc_[A-Za-z0-9+/]{32,}`},
	{"glsa_", `glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}`},
	{"at.", `[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}`},
	{".atlasv1.", `[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}`},
	{"hrku-", `HRKU-[A-Za-z0-9_-]{36,}`},
	{"ico-", `ico-[A-Za-z0-9]{32}`},
	{"s-s4t2", `s-s4t2(?:ud|af)-[a-f0-9]{64}`},
	{"lin_api_", `lin_api_[A-Za-z0-9]{40}`},
	{"_mmk", `[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk`},
	{".webhook.office.com", `[a-z0-9]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{80,}`},
	{"ntn_", `ntn_[0-9]{11}[A-Za-z0-9]{35}`},
	{"api-", `API-[A-Z0-9]{26}`},
	{"pplx-", `pplx-[A-Za-z0-9]{48}`},
	{"pmak-", `PMAK-[a-f0-9]{24}-[a-f0-9]{34}`},
	{"pnu_", `pnu_[A-Za-z0-9]{36}`},
	{"pul-", `pul-[a-f0-9]{40}`},
	{"rdme_", `rdme_[a-z0-9]{70}`},
	{"rubygems_", `rubygems_[a-f0-9]{48}`},
	{"xkeysib-", `xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}`},
	{"sntry", `sntry[su]_[A-Za-z0-9+/=_]{40,}`},
	{"sm_", `sm_[aps]at_[A-Za-z0-9]{16}`},
	{"shippo_", `shippo_(?:live|test)_[a-fA-F0-9]{40}`},
	{"sgp_", `sgp_[A-Za-z0-9_]{40,}`},
	{"_gitlab_session", `_gitlab_session=[0-9a-z]{32}`},
	{"zxlk", `ZXlK[A-Za-z0-9+/]{60,}`},
}

func servicePatterns() []pattern {
	out := make([]pattern, 0, len(services))
	for _, s := range services {
		out = append(out, pattern{name: "service key", hints: s[:1], re: regexp.MustCompile(`\b` + s[1]), skip: noDigit})
	}
	return out
}

// noKey tells names, paths and examples from the random text that a key is:
// somewhere between its separators a key has letters and digits together, and
// not just two or three as a version has.
func noKey(_, value, _ string) bool {
	mixed := slices.ContainsFunc(strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("_-./~=+", r) }), func(part string) bool {
		return len(part) >= 6 && strings.ContainsAny(part, "0123456789") && strings.Trim(part, "0123456789") != ""
	})
	low := strings.ToLower(value)
	return !mixed || entropy(value) < leastEntropy || slices.ContainsFunc(examples, func(e string) bool { return strings.Contains(low, e) })
}

// leastEntropy is that of a key, in bits a character: random hexadecimal of 32
// characters has 3.4 or more nearly always, words and patterns have less.
const leastEntropy = 3.4

var examples = []string{"example", "test", "dummy", "fake", "sample", "placeholder", "changeme", "your", "xxxx", "1234567890", "abcdef"}

// entropy is Shannon's, of the characters of s.
func entropy(s string) float64 {
	count := map[rune]int{}
	for _, c := range s {
		count[c]++
	}
	sum := 0.0
	for _, n := range count {
		p := float64(n) / float64(len(s))
		sum -= p * math.Log2(p)
	}
	return sum
}

// Credential is a secret that a text holds.
type Credential struct {
	// Kind is its name in the table, such as "github token".
	Kind string
	// Value is the secret itself: never say it aloud.
	Value string
}

// Credentials lists what in text has the form of a well-known credential.
// Guesses from the surroundings alone (password = …), which Redact masks too,
// are not among them.
func Credentials(text string) []Credential {
	var out []Credential
	lower := strings.ToLower(text)
	for i := range patterns {
		p := &patterns[i]
		if p.loose || !p.hinted(lower) {
			continue
		}
		for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
			from, to := p.value(m)
			if p.skip == nil || !p.skip(p.group(text, m, "k"), text[from:to], text[to:]) {
				out = append(out, Credential{p.name, text[from:to]})
			}
		}
	}
	return out
}

// apply masks every match of p in text; lower is the text it came from, in
// lower case.
func (p *pattern) apply(text, lower string) string {
	if !p.hinted(lower) {
		return text
	}
	var out strings.Builder
	last := 0
	for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
		from, to := p.value(m)
		if p.skip != nil && p.skip(p.group(text, m, "k"), text[from:to], text[to:]) {
			continue
		}
		out.WriteString(text[last:from])
		out.WriteString(mask(p.name))
		last = to
	}
	if last == 0 {
		return text
	}
	out.WriteString(text[last:])
	return out.String()
}

func (p *pattern) hinted(lower string) bool {
	for _, h := range p.hints {
		if strings.Contains(lower, h) {
			return true
		}
	}
	return false
}

// value is the span of a match that is masked.
func (p *pattern) value(m []int) (from, to int) {
	for _, name := range []string{"s", "s2"} {
		if i := p.re.SubexpIndex(name); i >= 0 && m[2*i] >= 0 {
			return m[2*i], m[2*i+1]
		}
	}
	return m[0], m[1]
}

func (p *pattern) group(text string, m []int, name string) string {
	i := p.re.SubexpIndex(name)
	if i < 0 || m[2*i] < 0 {
		return ""
	}
	return text[m[2*i]:m[2*i+1]]
}

// noSecret tells source code from a leaked value: an expression, a reference
// to another name, or a value that is neither long nor mixed.
func noSecret(key, value, after string) bool {
	v := strings.ToLower(value)
	switch {
	case strings.HasPrefix(after, "(") || strings.HasPrefix(after, "["):
		return true
	case strings.Contains(v, strings.ToLower(strings.Trim(key, "_.-"))), strings.HasPrefix(v, "self."), strings.HasPrefix(v, "os."):
		return true
	case strings.ContainsAny(value, "{}()<>$"):
		return true
	case strings.Contains(strings.ToLower(key), "token") && strings.Trim(value, "0123456789_.") == "":
		return true // a number of tokens
	case len(value) >= 24:
		return strings.ContainsAny(value, " ")
	default:
		return !strings.ContainsAny(value, "0123456789!@#%^&*")
	}
}

func noDigit(_, value, _ string) bool { return !strings.ContainsAny(value, "0123456789") }
