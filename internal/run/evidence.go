package run

// Outcome is what a runner reported for one test.
type Outcome string

// The outcomes. Only OutcomePassed is a pass.
const (
	OutcomePassed  Outcome = "passed"
	OutcomeFailed  Outcome = "failed"
	OutcomeError   Outcome = "error"
	OutcomeSkipped Outcome = "skipped"
	OutcomeXFailed Outcome = "xfailed"
	OutcomeXPassed Outcome = "xpassed"
)

// Evidence is what one execution of a test suite left behind. The test stage
// fills it from the runner's completion record and the sandbox's report;
// Judge alone turns it into a verdict.
type Evidence struct {
	// Runner is pytest, unittest, go, node, jest, vitest or command.
	Runner string `json:"runner"`
	// Level is the isolation that the execution really had.
	Level string `json:"level"`
	// Weak is true when the runner tells nothing but its exit status.
	Weak bool `json:"weak,omitempty"`
	// Tree is the hash of the tree that was executed.
	Tree string `json:"tree"`
	// Outcomes holds one entry for each test id that was reported.
	Outcomes map[string]Outcome `json:"outcomes"`
	// Collected lists the ids that the runner found before it ran any.
	Collected []string `json:"collected,omitempty"`
	// Declared lists the collected ids whose own marks in the test files skip
	// them or expect them to fail.
	Declared []string `json:"declared,omitempty"`
	// Completed is true when the completion record with this run's nonce
	// arrived on the private descriptor.
	Completed bool `json:"completed"`
	// Canary is true when the planted failing test was reported as failed.
	Canary bool `json:"canary"`
	// Exit is the exit status, -1 when the process was ended by a signal.
	Exit   int    `json:"exit"`
	Signal string `json:"signal,omitempty"`
	// Limit names the limit that ended the run: memory, processes, cpu,
	// output, filesize. Empty when none did.
	Limit string `json:"limit,omitempty"`
	// Timeout is true when the wall clock ended the run.
	Timeout bool `json:"timeout,omitempty"`
	// Infrastructure says why the suite could not be run at all.
	Infrastructure string `json:"infrastructure,omitempty"`
	// Tampered lists signs that the record was forged or the runner altered.
	Tampered []string `json:"tampered,omitempty"`
	// Signs lists what the code under test was seen doing that could deceive
	// its runner, such as looking into the runner's memory. A sign that the
	// base shows too is the project's own way.
	Signs []string `json:"signs,omitempty"`
	// Split holds the outcomes of a second execution whose assertions ran in
	// a process that never imported the code under test. It has the tests
	// that exchange nothing but plain data with that code, and may be empty;
	// OutcomeError says that something else than plain data decided.
	Split map[string]Outcome `json:"split,omitempty"`
	// Lacks says, one sentence each, what this runner cannot prove.
	Lacks []string `json:"lacks,omitempty"`
	// Flaky lists ids whose outcome differed between two baselines.
	Flaky   []string `json:"flaky,omitempty"`
	Seconds float64  `json:"seconds"`
	// Tail is the end of the output, at most 8 KiB, printable.
	Tail string `json:"tail,omitempty"`
}

// VerdictKind is the conclusion that Judge draws from evidence.
type VerdictKind string

// The kinds of verdict. Anything but VerdictPassed is not a pass.
const (
	VerdictPassed         VerdictKind = "passed"
	VerdictFailed         VerdictKind = "failed"
	VerdictUntrusted      VerdictKind = "untrusted"
	VerdictLimit          VerdictKind = "limit"
	VerdictTimeout        VerdictKind = "timeout"
	VerdictInfrastructure VerdictKind = "infrastructure"
)

// Verdict is a judged execution. Lists of ids are cut to MaxIDs and MaxText;
// Counts holds their true lengths.
type Verdict struct {
	Kind   VerdictKind `json:"kind"`
	Reason string      `json:"reason,omitempty"`
	// Tree is the hash of the tree that was executed.
	Tree   string `json:"tree"`
	Level  string `json:"level"`
	Runner string `json:"runner"`
	Weak   bool   `json:"weak,omitempty"`
	// Failed lists the ids that are red now.
	Failed []string `json:"failed,omitempty"`
	// Fixed lists the ids that were red on the base and are green now.
	Fixed []string `json:"fixed,omitempty"`
	// Broken lists the ids that were green on the base and are not now.
	Broken []string `json:"broken,omitempty"`
	// Missing lists the ids that the base collected and this run did not report.
	Missing []string `json:"missing,omitempty"`
	Flaky   []string `json:"flaky,omitempty"`
	Counts  Counts   `json:"counts"`
	// Evidence is the whole evidence as an artifact, Output the whole log.
	Evidence Ref     `json:"evidence"`
	Output   Ref     `json:"output"`
	Tail     string  `json:"tail,omitempty"`
	Seconds  float64 `json:"seconds"`
}

// Counts holds how many ids each list of a Verdict had before it was cut, and
// how many tests passed and were skipped.
type Counts struct {
	Passed  int `json:"passed"`
	Skipped int `json:"skipped,omitempty"`
	Failed  int `json:"failed,omitempty"`
	Fixed   int `json:"fixed,omitempty"`
	Broken  int `json:"broken,omitempty"`
	Missing int `json:"missing,omitempty"`
	// New counts the ids that are red now and were not on the base.
	New int `json:"new,omitempty"`
}
