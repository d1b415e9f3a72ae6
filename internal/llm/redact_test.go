package llm_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/llm"
)

// secrets are made up in the formats of their providers, in pieces, so that
// no scanner takes this file for a leak.
func secrets() map[string]string {
	r := strings.Repeat
	return map[string]string{
		"private key":        "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIE" + r("a1B2", 20) + "\n-----END RSA PRIVATE " + "KEY-----",
		"cut private key":    "-----BEGIN PRIVATE " + "KEY-----\nMIIE" + r("a1B2", 20) + "\n",
		"nats seed":          "SU" + r("A7", 27) + "BC",
		"anthropic key":      "sk-" + "ant-" + r("api03", 8),
		"openai key":         "sk-" + r("aB3d", 8),
		"openai project key": "sk-" + "proj-" + r("aB3d_", 8),
		"aws key id":         "AK" + "IA" + r("Z", 16),
		"github token":       "gh" + "p_" + r("aB3d", 9),
		"github fine token":  "github_" + "pat_" + r("aB3d_", 9),
		"gitlab token":       "gl" + "pat-" + r("aB3d", 5),
		"slack token":        "xo" + "xb-" + r("12345-", 4) + "abc",
		"slack webhook":      "https://hooks.slack" + ".com/services/" + r("T0B1/", 6),
		"stripe key":         "sk_" + "live_" + r("aB3d", 6),
		"google key":         "AI" + "za" + r("aB3d5", 7),
		"google oauth token": "ya" + "29." + r("aB3d", 9),
		"json web token":     "ey" + "J" + r("hbGci", 4) + ".ey" + "J" + r("zdWIi", 4) + "." + r("aB3d", 8),
		"npm token":          "np" + "m_" + r("aB3d", 9),
		"pypi token":         "py" + "pi-AgE" + r("aB3d", 12),
		"sendgrid key":       "S" + "G." + r("aB3d", 5) + "." + r("aB3d", 10),
		"twilio key":         "S" + "K" + r("0123456789abcdef", 2),
		"telegram token":     "123456789" + ":AA" + r("aB3d", 8) + "x",
		"hugging face token": "h" + "f_" + r("aB3d", 9),
		"groq key":           "gs" + "k_" + r("aB3d", 12),
		"digitalocean token": "do" + "p_v1_" + r("ab12", 16),
		"shopify token":      "sh" + "pat_" + r("ab12", 8),
		"vault token":        "hv" + "s." + r("aB3d", 8),
		"age key":            "AGE-SECRET-" + "KEY-1" + r("QPZ3", 14),
		"databricks token":   "da" + "pi" + r("ab12", 8),
		"azure key":          r("aB3d", 21) + "==",
		"discord token":      "M" + r("aB3d", 6) + ".aB3d_x." + r("aB3d", 8),
		"pgp private key":    "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\n" + r("a1B2", 20) + "\n-----END PGP PRIVATE " + "KEY BLOCK-----",
		"slack app token":    "xa" + "pp-1-" + r("A1B2", 4),
		"gitlab agent token": "gl" + "agent-" + r("aB3d", 12),
		"grafana token":      "gl" + "sa_" + r("aB3d", 8) + "_" + r("ab12", 2),
		"sentry token":       "snt" + "ryu_" + r("ab12", 16),
		"linear key":         "lin" + "_api_" + r("aB3d", 10),
		"postman key":        "PM" + "AK-" + r("ab12", 6) + "-" + r("ab12", 8) + "ab",
		"rubygems key":       "ruby" + "gems_" + r("ab12", 12),
		"perplexity key":     "pp" + "lx-" + r("aB3d", 12),
		"notion token":       "nt" + "n_12345678901" + r("aB3de", 7),
		"airtable token":     "pa" + "t" + r("aB3d5c7", 2) + "." + r("ab12", 16),
		"terraform token":    r("aB3d5c7", 2) + ".atlas" + "v1." + r("aB3d", 16),
		"azure secret":       "aB3" + "8Q~" + r("aB3d", 8),
		"license key":        "aB3d5c_" + r("aB3d5c7", 4) + "x_m" + "mk",
		"doppler token":      "dp" + ".pt." + r("aB3d", 11),
		"hugging face org":   "api" + "_org_" + r("abcd", 8) + "ab",
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for name, s := range secrets() {
		text := "before " + s + " after"
		if name == "azure key" {
			text = "before AccountKey=" + s + " after"
		}
		got := llm.Redact(text)
		require.NotContains(t, got, strings.TrimSpace(s), name)
		require.Contains(t, got, llm.MaskPrefix, name)
		require.True(t, strings.HasPrefix(got, "before ") && strings.HasSuffix(got, "after"), "%s: %s", name, got)
	}
}

// TestCredentials: what has the form of a credential is named with its value;
// a guess is not.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for name, s := range secrets() {
		text := "x " + s + " y"
		if name == "azure key" {
			text = "AccountKey=" + s
		}
		got := llm.Credentials(text)
		require.NotEmpty(t, got, name)
		require.Contains(t, text, got[0].Value, name)
		require.NotEmpty(t, got[0].Kind, name)
	}
	require.NotEmpty(t, llm.Credentials("aws_secret = '"+strings.Repeat("aB3/", 10)+"'"))
	const random = "q7Rk2ZpX9vLm4TnB8wHs" + "D6fJ"
	for _, text := range []string{
		"adafruit_api_key = '" + random + "'", `{"clientSecret": "` + random + `"}`, `headers["x-api-key"] = "` + random + `"`,
		"DB_PASSWORD := \"" + random + "\"", "'token' => '" + random + "'", "AuthToken: \"" + random + "\"",
		"key = '1eca3b1f-31a2-4fb8-a8c3-" + "138b441b50a7'",
	} {
		require.Len(t, llm.Credentials(text), 1, text)
	}
	for _, text := range []string{
		"key = '0011_update_proxy_permissions_2019'", "api_key = 'your-api-key-goes-here-123'", "secret = 'correct-horse-battery-staple'",
		"token = '" + strings.Repeat("a1", 12) + "'", "token_url = 'https://host/v1/oauth2/token/new'", "name = '" + random + "'",
		"keyboard = '" + random + "'", "api_key == '" + random + "'", "key = 'django.contrib.auth.backends.v2'", "secret = 'aB3d5c7x'",
	} {
		require.Empty(t, llm.Credentials(text), text)
	}
	for _, guess := range []string{
		"password = 'hunter2'", "postgres://user:s3cr3t@db:5432/x", "Authorization: Basic dXNlcjpwYXNzd29yZA==", "plain text",
		"from sk_standardscalertransformer import x", "class sk-chasing-dot-spinner-wrapper-inner {}",
	} {
		require.Empty(t, llm.Credentials(guess), guess)
	}
}

func TestAssignments(t *testing.T) {
	t.Parallel()
	leaks := map[string]string{
		"E   AuthError: secret=" + strings.Repeat("q", 40) + " x": strings.Repeat("q", 40),
		"password=notreal1":                                   "notreal1",
		`PASSWORD: "correct horse 9 battery"`:                 "correct horse 9 battery",
		`{"api_key": "abc123def"}`:                            "abc123def",
		`db_password = 'hunter2'`:                             "hunter2",
		"AWS_SECRET_ACCESS_KEY=" + strings.Repeat("aB3/", 10): strings.Repeat("aB3/", 10),
		"Authorization: Bearer " + strings.Repeat("q", 30):    strings.Repeat("q", 30),
		"postgres://user:s3cr3t@db:5432/x":                    "s3cr3t",
		"redis://:s3cr3t@cache":                               "s3cr3t",
	}
	for text, secret := range leaks {
		got := llm.Redact(text)
		require.NotContains(t, got, secret, text)
		require.Contains(t, got, llm.MaskPrefix, text)
	}
	require.Contains(t, llm.Redact("postgres://user:s3cr3t@db:5432/x"), "@db:5432/x")
}

// TestCodeStays: masking ordinary source would make every answer miss.
func TestCodeStays(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"password = get_password()", "password=password", "self.token = token", "token = tokens[0]", "secret: str = field()",
		"def login(user, password, token=None):", "api_key = os.environ['API_KEY']", "if token == expected_token:",
		"for token in tokens: parse(token)", "tokenize(source, token_type=IDENT)", "max_tokens=100000", "token_limit=1_000_000", "password: \"${PASSWORD}\"",
		"class sk-chasing-dot-spinner-wrapper-inner {}", "http://example.com:8080/a@b", "git@github.com:a/b.git",
		"assert parse('a=b') == {'a': 'b'}", "sha256:" + strings.Repeat("ab12", 16), "SKILL_LEVEL = 3", "AKIA is a prefix",
		"user:pass is not a url", "basic auth is used", "bearer of bad news", "", "接続トークン=なし",
	} {
		require.Equal(t, code, llm.Redact(code))
	}
}

func TestExactSecrets(t *testing.T) {
	t.Parallel()
	value := `p&"w/ö x+1`
	r := llm.NewRedactor(value, "short", "", value)
	for _, spelled := range []string{value, url.QueryEscape(value), url.PathEscape(value), `p\u0026\"w/ö x+1`} {
		require.Equal(t, "a "+llm.MaskPrefix+"known secret] b", r.Redact("a "+spelled+" b"))
	}
	require.Equal(t, "short", r.Redact("short"))
	long := llm.NewRedactor("secret-value", "secret-value-longer")
	require.Equal(t, llm.MaskPrefix+"known secret]", long.Redact("secret-value-longer"), "the longest one first")
}

func TestRedactedError(t *testing.T) {
	t.Parallel()
	r := llm.NewRedactor("exact-secret")
	plain := errors.New("nothing here")
	require.Equal(t, plain, r.Error(plain))
	inner := failure.New(failure.Timeout, "llm: ask", errors.New("exact-secret was late"))
	err := r.Error(fmt.Errorf("outer: %w", inner))
	require.Equal(t, failure.Timeout, failure.Classify(err))
	for e := err; e != nil; e = errors.Unwrap(e) {
		require.NotContains(t, fmt.Sprintf("%v %+v", e, e), "exact-secret")
	}
	require.Equal(t, "outer: llm: ask: "+llm.MaskPrefix+"known secret] was late", err.Error())
}

func FuzzRedact(f *testing.F) {
	for _, s := range secrets() {
		f.Add("x "+s+" y", "exact-secret")
	}
	f.Add("password=\"a b c d 1\" token=\xffabc123 exact-secret", "exact-secret")
	f.Fuzz(func(t *testing.T, text, secret string) {
		r := llm.NewRedactor(secret)
		once := r.Redact(text)
		if len(secret) >= 6 && !strings.Contains(llm.MaskPrefix+"known secret]", secret) {
			require.NotContains(t, once, secret)
		}
		require.Equal(t, utf8.ValidString(text), utf8.ValidString(once) && utf8.ValidString(text))
		require.Equal(t, llm.Redact(text), llm.Redact(llm.Redact(text)), "masked text stays as it is")
	})
}

func BenchmarkRedact(b *testing.B) {
	text := strings.Repeat("def f(token, x):\n    return parse(token)[x] + self.secret_sauce\n", 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		llm.Redact(text)
	}
}
