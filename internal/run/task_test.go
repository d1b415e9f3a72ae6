package run_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
)

func TestTasksAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, runtest.Task().Validate())
	one := -1
	for says, change := range map[string]func(*run.Task){
		"no tenant":                       func(t *run.Task) { t.Tenant = "" },
		"no home":                         func(t *run.Task) { t.Home = "" },
		"clean absolute path":             func(t *run.Task) { t.Dir = "project" },
		"not \"/a/../b\"":                 func(t *run.Task) { t.Dir = "/a/../b" },
		"root of the file system":         func(t *run.Task) { t.Dir = "/" },
		"no source":                       func(t *run.Task) { t.Sources = nil },
		"unknown source \"luck\"":         func(t *run.Task) { t.Sources = []run.Source{"luck"} },
		"unknown delivery \"\"":           func(t *run.Task) { t.Deliver = "" },
		"target \"../x\" leaves":          func(t *run.Task) { t.Targets = []string{"a", "../x"} },
		"target \"\" leaves":              func(t *run.Task) { t.Targets = []string{""} },
		"debug attempts must be 1 to 50":  func(t *run.Task) { t.Limits.DebugAttempts = 0 },
		"not 51":                          func(t *run.Task) { t.Limits.DebugAttempts = 51 },
		"syntax limit must be":            func(t *run.Task) { t.Limits.ASTFails = 0 },
		"review rounds must be 0":         func(t *run.Task) { t.Limits.ReviewRounds = -1 },
		"model calls must not":            func(t *run.Task) { t.Limits.ModelCalls = &one },
		"time limit must be above 0":      func(t *run.Task) { t.Limits.Seconds = 0 },
		"not NaN s":                       func(t *run.Task) { t.Limits.Seconds = math.NaN() },
		"at most 7 days":                  func(t *run.Task) { t.Limits.Seconds = 7*24*3600 + 1 },
		"events must be 50 to 900":        func(t *run.Task) { t.Limits.Events = 49 },
		"not 901":                         func(t *run.Task) { t.Limits.Events = 901 },
		"delay scale must be above 0":     func(t *run.Task) { t.Limits.DelayScale = 0 },
		"delay scale must be above 0 and": func(t *run.Task) { t.Limits.DelayScale = math.Inf(1) },
	} {
		task := runtest.Task()
		change(&task)
		require.ErrorContains(t, task.Validate(), says)
	}
}
