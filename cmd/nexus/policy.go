package main

import (
	"context"
	"fmt"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/validate"
	"nexuscore.dev/nexus/internal/validate/policy"
)

type policyCmd struct {
	Show  policyShowCmd  `cmd:"" help:"Print the rules that hold, as a rules file."`
	Check policyCheckCmd `cmd:"" help:"Check a rules file."`
}

// Help says what a rules file is.
func (policyCmd) Help() string {
	return `Rules say what may be delivered without a person: findings of severity major or critical send a run to a person, info
and minor are noted. A rules file (JSON or YAML, schemas/policy.json) adds to the default rules. One that lies outside the
healed folder may also replace a rule by its id, turn it off (severity: off), or leave the defaults out (extends: none).

Examples:
  nexus policy show > team.yaml         the default rules, to start from
  nexus policy check team.yaml
  nexus heal app --policy team.yaml     or: export NEXUS_POLICY=team.yaml`
}

type policyShowCmd struct {
	File string `arg:"" predictor:"file" optional:"" help:"A rules file; default: the default rules alone."`
}

// Run prints the rules.
func (c *policyShowCmd) Run(e *env) error {
	set, _, err := node.Policy(c.File)
	if err != nil {
		return err
	}
	text, err := set.YAML()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "# %s\n%s", set.Version(), text)
	return err
}

type policyCheckCmd struct {
	File string `arg:"" predictor:"file" help:"The rules file."`
}

// Run says whether the file can be used.
func (c *policyCheckCmd) Run(e *env) error {
	set, _, err := node.Policy(c.File)
	if err != nil {
		return err
	}
	blocking := 0
	for _, r := range set.Rules() {
		if r.Severity.Blocks() {
			blocking++
		}
	}
	_, err = fmt.Fprintf(e.out, "%s is fine: %d rules hold with it, %d of them send a change to a person (%s)\n",
		c.File, len(set.Rules()), blocking, set.Version())
	return err
}

// rule holds an accepted answer against the rules, as the worker policy does
// after the tests, and turns it into a rejection where a person is needed.
func rule(ctx context.Context, set *policy.Set, m rollback.Manifest, base *agents.Base, v *validate.Verdict) error {
	var changes []policy.Change
	for _, ch := range v.Candidate.Changes {
		c := policy.Change{Path: ch.Path, NewMode: ch.Mode}
		if old, ok := base.Read(ch.Path); ok {
			e, _ := m.Lookup(ch.Path)
			c.Old, c.OldMode = append([]byte{}, old...), e.Mode
		}
		if ch.New != "" {
			c.New = append([]byte{}, v.Contents[ch.New]...)
		}
		changes = append(changes, c)
	}
	found, err := set.Judge(ctx, changes)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.Refuse(validate.GatePolicy, "not_judged", err.Error())
		return nil
	}
	for _, f := range policy.Blocking(found) {
		v.Refuse(validate.GatePolicy, f.Rule, f.String())
		return nil
	}
	return nil
}
