package run

import (
	"fmt"
	"slices"
	"strings"
)

// decideWeakBase judges a project whose tests are known by an exit status.
func decideWeakBase(e Evidence) (VerdictKind, string) {
	switch {
	case e.Signal != "":
		return VerdictFailed, "a signal ended the test command: " + e.Signal + said(e.Tail)
	case e.Exit == 0:
		return VerdictPassed, ""
	case e.Exit == 126 || e.Exit == 127:
		return VerdictInfrastructure, fmt.Sprintf("the test command exited %d: command not found or not executable", e.Exit) + said(e.Tail)
	default:
		return VerdictFailed, fmt.Sprintf("the test command exited %d", e.Exit) + said(e.Tail)
	}
}

// decideWeak compares two exit statuses.
func decideWeak(base, got Evidence) (VerdictKind, string) {
	baseRed := base.Exit != 0 || base.Signal != "" || base.Timeout || base.Limit != ""
	switch {
	case got.Signal != "":
		return VerdictFailed, "a signal ended the test command: " + got.Signal + said(got.Tail)
	case got.Exit != 0:
		return VerdictFailed, fmt.Sprintf("the test command exited %d", got.Exit) + said(got.Tail)
	case !baseRed:
		return VerdictFailed, "the test command succeeded on the base already, so its success proves nothing"
	default:
		return VerdictPassed, "by exit status alone"
	}
}

// How much said quotes: the last line alone often only counts what failed.
const (
	saidLines = 3
	saidBytes = 240
)

// said quotes the last words of a command that says nothing about its tests.
func said(tail string) string {
	var words []string
	lines, room := strings.Split(tail, "\n"), saidBytes
	for i := len(lines) - 1; i >= 0 && len(words) < saidLines; i-- {
		l := strings.TrimSpace(lines[i])
		if l == "" {
			continue
		}
		if room -= len(l); room < 0 && len(words) > 0 {
			break
		}
		words = append(words, cutText(l, saidBytes))
	}
	if len(words) == 0 {
		return ""
	}
	slices.Reverse(words)
	return ": " + strings.Join(words, " | ")
}
