package llm

import (
	"regexp"
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
var patterns = []pattern{
	token("private key", `-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})*)`, "private key-----"),
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
	token("gitlab token", `\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{16,}`, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
	token("slack token", `\bxox[abeoprs]-[A-Za-z0-9-]{10,}`, "xox"),
	token("slack webhook", `https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}`, "hooks.slack.com"),
	{
		name: "stripe key", hints: []string{"sk_", "rk_", "whsec_"},
		re: regexp.MustCompile(`\b(?:sk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}`), skip: noDigit,
	},
	token("google key", `\bAIza[A-Za-z0-9_-]{35}`, "aiza"),
	token("google oauth token", `\bya29\.[A-Za-z0-9_-]{20,}`, "ya29."),
	token("json web token", `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, "eyj"),
	token("npm token", `\bnpm_[A-Za-z0-9]{30,}`, "npm_"),
	token("pypi token", `\bpypi-AgE[A-Za-z0-9_-]{40,}`, "pypi-age"),
	token("sendgrid key", `\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, "sg."),
	token("twilio key", `\bSK[0-9a-f]{32}\b`, "sk"),
	token("telegram token", `\b\d{8,10}:AA[A-Za-z0-9_-]{32,34}`, ":aa"),
	token("discord token", `\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}`, "."),
	token("hugging face token", `\bhf_[A-Za-z0-9]{30,}`, "hf_"),
	token("groq key", `\bgsk_[A-Za-z0-9]{30,}`, "gsk_"),
	token("digitalocean token", `\bdo[opr]_v1_[a-f0-9]{64}`, "_v1_"),
	token("shopify token", `\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`, "shpat_", "shpca_", "shppa_", "shpss_"),
	token("vault token", `\bhv[sbr]\.[A-Za-z0-9_-]{24,}`, "hvs.", "hvb.", "hvr."),
	token("age key", `\bAGE-SECRET-KEY-1[A-Z0-9]{50,}`, "age-secret-key-1"),
	token("databricks token", `\bdapi[a-f0-9]{32}\b`, "dapi"),
	token("azure key", `(?i)\b(?:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{40,}={0,2})`, "accountkey=", "sharedaccesskey="),
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
