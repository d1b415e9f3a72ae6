package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/failure"
)

// MaskPrefix begins every mask. A candidate that holds it repeats masked text
// and must not be written.
const MaskPrefix = "[REDACTED "

// minSecret is the shortest known secret that is masked; a shorter one would
// mask ordinary words.
const minSecret = 6

// Redactor masks secrets in text: whatever matches a pattern of the table, and
// the exact values that it was given, also in their escaped spellings. It is
// safe for concurrent use.
type Redactor struct {
	exact *strings.Replacer
	// known are the exact values in all their spellings, the longest first.
	known []string
}

// NewRedactor knows the given secrets beside the table. Values of fewer than
// six bytes are ignored.
func NewRedactor(secrets ...string) *Redactor {
	var known []string
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		known = append(known, s, url.QueryEscape(s), url.PathEscape(s))
		if quoted, err := json.Marshal(s); err == nil {
			known = append(known, string(quoted[1:len(quoted)-1]))
		}
	}
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	known = slices.Compact(known)
	var pairs []string
	for _, s := range known {
		pairs = append(pairs, s, mask("known secret"))
	}
	return &Redactor{strings.NewReplacer(pairs...), known}
}

// Knows reports whether text holds one of the exact values, in any spelling.
func (r *Redactor) Knows(text string) bool {
	return slices.ContainsFunc(r.known, func(s string) bool { return strings.Contains(text, s) })
}

func mask(name string) string { return MaskPrefix + name + "]" }

// Redact returns text with every secret masked. Masked text stays as it is.
func (r *Redactor) Redact(text string) string {
	text = r.exact.Replace(text)
	lower := strings.ToLower(text)
	for i := range patterns {
		text = patterns[i].apply(text, lower)
	}
	return text
}

// Redact masks what matches the table, and the given secrets.
func Redact(text string, secrets ...string) string { return NewRedactor(secrets...).Redact(text) }

// Error returns err itself when its text holds no secret, else an error with
// the masked text. What it means (a *failure.Error) is kept; the chain
// behind it, which holds the secret, is cut.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	masked := r.Redact(text)
	if masked == text {
		return err
	}
	why := failure.Convert(err, "")
	clean := *why
	clean.Op, clean.Err = "", errors.New(masked)
	return &clean
}

// request masks everything that a request says.
func (r *Redactor) request(req Request) Request {
	req.System, req.Prompt = r.Redact(req.System), r.Redact(req.Prompt)
	req.Messages = slices.Clone(req.Messages)
	for i := range req.Messages {
		req.Messages[i].Text = r.Redact(req.Messages[i].Text)
	}
	return req
}

// Redacting masks secrets in every request before next sees it, and in every
// error before the caller does. Answers pass unchanged: they become files.
func Redacting(next Model, r *Redactor) Model {
	return Func(func(ctx context.Context, req Request) (Answer, error) {
		a, err := next.Ask(ctx, r.request(req))
		return a, r.Error(err)
	})
}
