package run

// Summary is a run as people and programs are shown it.
type Summary struct {
	Run string `json:"run"`
	// State is the terminal state; RUNNING or WAITING while there is none.
	State Terminal `json:"state"`
	// Exit is what the command line exits with; nil while there is no end.
	Exit   *int             `json:"exit,omitempty"`
	Reason string           `json:"reason"`
	Dir    string           `json:"dir"`
	Step   string           `json:"step"`
	Tries  []AttemptSummary `json:"attempts"`
	// Files are the paths that the delivered or proved candidate changes.
	Files []string `json:"files"`
	// Diff is the unified diff of that candidate; filled in by who has the
	// artifacts.
	Diff      string      `json:"diff"`
	Delivered DeliverMode `json:"delivered,omitempty"`
	Patch     string      `json:"patch,omitempty"`
	Report    string      `json:"report"`
	BaseTree  string      `json:"base_tree"`
	FinalTree string      `json:"final_tree"`
	// Proven is false while the final tree has not been read from the disk.
	Proven    bool     `json:"proven"`
	Conflicts []string `json:"conflicts,omitempty"`
	// Foreign are paths that somebody else changed during the run and the run
	// never wrote. Both lists are cut to MaxPaths; Kept has their lengths.
	Foreign []string       `json:"foreign,omitempty"`
	Kept    RollbackCounts `json:"kept"`
	// Level is the isolation of the newest test run.
	Level   string  `json:"level,omitempty"`
	Calls   int     `json:"model_calls"`
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
}

// AttemptSummary is one debug attempt.
type AttemptSummary struct {
	N           int           `json:"n"`
	Source      Source        `json:"source"`
	Status      AttemptStatus `json:"status"`
	Gate        string        `json:"gate"`
	Reason      string        `json:"reason"`
	FailedTests []string      `json:"failed_tests"`
	// Candidate is the hash of the candidate that counts for the attempt.
	Candidate string `json:"candidate,omitempty"`
	Diff      *Ref   `json:"diff_ref,omitempty"`
	Note      string `json:"note,omitempty"`
}

// The states of a run that has not ended: its step is being done, or it waits
// for somebody to go on with it. A summary takes a run for running unless its
// log says that it is parked; who drives it is not in the log.
const (
	Running Terminal = "RUNNING"
	Waiting Terminal = "WAITING"
)

// Status is Exit, 1 while the run has not ended.
func (s Summary) Status() int {
	if s.Exit == nil {
		return 1
	}
	return *s.Exit
}

// Summarise tells what a state amounts to.
func Summarise(s State) Summary {
	out := Summary{
		Run: s.ID, State: Running, Dir: s.Task.Dir, Step: s.Step(),
		Tries: []AttemptSummary{}, Files: []string{}, Calls: s.Calls, Tokens: s.PromptTokens + s.AnswerTokens,
		Seconds: s.At.Sub(s.OpenedAt).Seconds(),
	}
	if s.Parked {
		out.State = Waiting
	}
	if s.Ended != nil {
		out.State, out.Exit, out.Reason = s.Ended.State, new(s.Ended.State.Exit()), s.Ended.Reason
	}
	if s.Origin != nil {
		out.BaseTree = s.Origin.Hash
	}
	if s.Baseline != nil {
		out.Level = s.Baseline.Level
	}
	for i := range s.Attempts {
		out.Tries = append(out.Tries, s.Attempts[i].summary())
	}
	if c, v := s.Winner(); c != nil {
		out.Level = v.Level
		for _, ch := range c.Changes {
			out.Files = append(out.Files, ch.Path)
		}
	}
	if d := s.Deliver; d != nil && !d.refused() {
		out.Delivered, out.Patch = d.Delivered, d.Patch
	}
	if s.Report != nil {
		out.Report = s.Report.Path
	}
	if t := s.Settled; t != nil {
		out.State, out.Exit = t.State, new(t.State.Exit())
		out.FinalTree, out.Proven = t.After, t.Proven
		out.Conflicts, out.Foreign, out.Kept = t.Conflicts, t.Foreign, t.Counts
		if t.Reason != "" {
			out.Reason += "; " + t.Reason
		}
	}
	return out
}

func (a *Attempt) summary() AttemptSummary {
	out := AttemptSummary{N: a.N, Source: a.Source, Status: a.Status, Reason: a.Err, FailedTests: []string{}}
	if a.Validated != nil && len(a.Validated.Accepted) == 0 && len(a.Validated.Rejected) > 0 {
		r := a.Validated.Rejected[0]
		out.Gate, out.Reason, out.Candidate = r.Gate, r.Reason, r.Hash
	}
	if a.Applied != nil && len(a.Applied.Candidates) == 0 && len(a.Applied.Refused) > 0 {
		out.Gate = a.Applied.Refused[0].Gate
	}
	c := a.counts()
	if c == nil {
		return out
	}
	out.Candidate, out.Diff, out.Note = c.Hash, &c.Diff, c.Note
	if a.Tested == nil {
		return out
	}
	if v := a.verdictOf(c); v != nil {
		out.FailedTests = append(out.FailedTests, v.Failed...)
	}
	return out
}

// counts is the candidate that stands for the attempt: the green one, else
// the one that the next attempt builds on, else the first.
func (a *Attempt) counts() *Candidate {
	if c, _ := a.winner(); c != nil {
		return c
	}
	switch {
	case a.Applied != nil && len(a.Applied.Candidates) > 0:
		if a.Tested != nil {
			if c, _ := nextBase(a); c != nil {
				return c
			}
		}
		return &a.Applied.Candidates[0]
	case a.Validated != nil && len(a.Validated.Accepted) > 0:
		return &a.Validated.Accepted[0]
	}
	return nil
}

// Step names what the run is doing.
func (s State) Step() string {
	switch {
	case s.Closed:
		return "closed"
	case s.Settled != nil:
		return "closing"
	case s.Ended != nil && s.Ended.Rollback == nil:
		return "settling"
	case s.Ended != nil:
		return "rollback"
	case s.Parked:
		return "parked"
	case s.Stop != nil:
		return "stopping"
	case s.Failed != nil:
		return "waiting to ask " + s.Failed.Ask.Name() + " again"
	}
	for _, a := range s.Pending {
		return a.Name()
	}
	return "deciding"
}
