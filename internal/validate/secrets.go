package validate

import (
	"bytes"
	"strings"

	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/patch"
)

// noSecrets refuses credentials that the base does not have in the same file,
// and masks: a model that was shown one must not write it in the secret's
// place.
func (c *check) noSecrets() *refusal {
	for _, f := range c.files {
		if f.Op == patch.OpDelete {
			continue
		}
		for _, s := range f.spans {
			text := string(bytes.Join(f.lines[s.NewFrom:s.NewTo], []byte("\n")))
			old := bytes.Join(f.olds[s.OldFrom:s.OldTo], []byte("\n"))
			if strings.Count(text, llm.MaskPrefix) > bytes.Count(old, []byte(llm.MaskPrefix)) {
				return refuse(GateSecrets, "masked",
					"the change of %s writes %q, which stands for a secret that you were not shown; leave that line as it is, with an edit of the other lines only",
					f.Path, strings.TrimSpace(llm.MaskPrefix)+" …]")
			}
			if kind := c.secretIn(text, string(old), f.Old); kind != "" {
				return refuse(GateSecrets, "secret", "the change of %s holds what looks like a %s; read it from the environment", f.Path, kind)
			}
		}
	}
	return nil
}

// secretIn names the first kind of credential in text that base lacks. A known
// secret may stay where the lines that text replaces had one.
func (c *check) secretIn(text, old string, base []byte) string {
	if c.known.Knows(text) {
		for _, secret := range c.cfg.Secrets {
			if one := llm.NewRedactor(secret); one.Knows(text) && !one.Knows(old) {
				return "known secret"
			}
		}
	}
	for _, found := range llm.Credentials(text) {
		if !bytes.Contains(base, []byte(found.Value)) {
			return found.Kind
		}
	}
	return ""
}
