package validate

import (
	"bytes"
	"regexp"

	"nexuscore.dev/nexus/internal/patch"
)

// secretForm is the shape of one kind of credential.
type secretForm struct {
	name string
	re   *regexp.Regexp
}

// secretForms lists well-known credentials by their fixed prefixes, so that
// ordinary code does not match.
var secretForms = []secretForm{
	{"AWS access key", regexp.MustCompile(`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`)},
	{"AWS secret key", regexp.MustCompile(`(?i)aws.{0,20}secret.{0,20}["'=:\s][A-Za-z0-9/+]{40}\b`)},
	{"GitHub token", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,}\b`)},
	{"GitHub fine-grained token", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{60,}\b`)},
	{"GitLab token", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}\b`)},
	{"Slack token", regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{10,}\b`)},
	{"Slack webhook", regexp.MustCompile(`hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20,}`)},
	{"Google API key", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{"Google OAuth secret", regexp.MustCompile(`\bGOCSPX-[A-Za-z0-9_-]{28}\b`)},
	{"private key", regexp.MustCompile(`-----BEGIN (?:RSA |EC |DSA |OPENSSH |PGP |ENCRYPTED )?PRIVATE KEY(?: BLOCK)?-----`)},
	{"Anthropic key", regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]{24,}`)},
	{"OpenAI key", regexp.MustCompile(`\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}\b`)},
	{"Stripe key", regexp.MustCompile(`\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,}\b`)},
	{"npm token", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{"PyPI token", regexp.MustCompile(`\bpypi-AgEI[A-Za-z0-9_-]{40,}`)},
	{"Hugging Face token", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}\b`)},
	{"SendGrid key", regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{40,}`)},
	{"Twilio key", regexp.MustCompile(`\bSK[0-9a-f]{32}\b`)},
	{"Telegram bot token", regexp.MustCompile(`\b\d{8,10}:AA[A-Za-z0-9_-]{32,}\b`)},
	{"Discord token", regexp.MustCompile(`\b[MNO][A-Za-z0-9_-]{23,}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}\b`)},
	{"DigitalOcean token", regexp.MustCompile(`\bdo[opr]_v1_[a-f0-9]{64}\b`)},
	{"Azure storage key", regexp.MustCompile(`AccountKey=[A-Za-z0-9+/]{86}==`)},
	{"JSON web token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}`)},
	{"Databricks token", regexp.MustCompile(`\bdapi[a-f0-9]{32}\b`)},
	{"Shopify token", regexp.MustCompile(`\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b`)},
	{"NATS seed", regexp.MustCompile(`\bS[NCOUAX][A-Z2-7]{56}\b`)},
}

// noSecrets refuses credentials that the base does not have in the same file.
func (c *check) noSecrets() *refusal {
	for _, f := range c.files {
		if f.Op == patch.OpDelete {
			continue
		}
		for _, s := range f.spans {
			text := bytes.Join(f.lines[s.NewFrom:s.NewTo], []byte("\n"))
			if kind := c.secretIn(text, f.Old); kind != "" {
				return refuse(GateSecrets, "secret", "the change of %s holds what looks like a %s; read it from the environment", f.Path, kind)
			}
		}
	}
	return nil
}

// secretIn names the first kind of credential in text that base lacks.
func (c *check) secretIn(text, base []byte) string {
	for _, value := range c.cfg.Secrets {
		if value != "" && bytes.Contains(text, []byte(value)) {
			return "known secret"
		}
	}
	for _, form := range secretForms {
		for _, m := range form.re.FindAll(text, -1) {
			if !bytes.Contains(base, m) {
				return form.name
			}
		}
	}
	return ""
}
