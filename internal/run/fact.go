package run

import "time"

// By says who states a fact.
type By string

// Who may state a fact besides the workers, which go by their names.
const (
	ByOperator By = "operator"
	BySweeper  By = "sweeper"
	ByClock    By = "clock"
)

// Fact is what happened: a worker's answer or failure, a person's order, or
// a timer that fired. Exactly one of Answer, Failure, Order and Timer is set.
type Fact struct {
	By By `json:"by"`
	// At is when the conductor recorded the fact.
	At time.Time `json:"at"`
	// Ask is the number of the ask that is answered, else 0.
	Ask     int      `json:"ask,omitempty"`
	Answer  *Answer  `json:"answer,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
	Order   *Order   `json:"order,omitempty"`
	Timer   string   `json:"timer,omitempty"`
}

// Failure is a worker's error in the log.
type Failure struct {
	// Category is one of package failure's.
	Category string `json:"category"`
	Op       string `json:"op,omitempty"`
	Message  string `json:"message"`
	// RetryAfter is how long the failing side asked to wait, in seconds.
	RetryAfter float64 `json:"retry_after,omitempty"`
	// Exhausted is true when a quota is used up; Quota is how long that
	// lasts, in seconds, 0 when unknown.
	Exhausted bool    `json:"exhausted,omitempty"`
	Quota     float64 `json:"quota,omitempty"`
	// Status is the HTTP status that a model's server answered, 0 for none.
	Status int `json:"status,omitempty"`
	// BadInput is true when the task itself is at fault.
	BadInput bool `json:"bad_input,omitempty"`
	// Calls is how many model calls were made before it failed.
	Calls int `json:"calls,omitempty"`
}

// OrderKind is what a person or the command line may tell a run.
type OrderKind string

// The orders.
const (
	OrderCancel OrderKind = "cancel"
	OrderPark   OrderKind = "park"
	OrderResume OrderKind = "resume"
)

// Order is a person's word to a run.
type Order struct {
	Kind   OrderKind `json:"kind"`
	Reason string    `json:"reason,omitempty"`
	// Driver is the process that drives the run from now on; set by resume.
	Driver *Driver `json:"driver,omitempty"`
}

// Answer is what a worker found out. Exactly the answer of that worker is
// set.
type Answer struct {
	Snapshot *SnapshotAnswer `json:"snapshot,omitempty"`
	Test     *TestAnswer     `json:"test,omitempty"`
	Debug    *DebugAnswer    `json:"debug,omitempty"`
	Validate *ValidateAnswer `json:"validate,omitempty"`
	Apply    *ApplyAnswer    `json:"apply,omitempty"`
	Review   *ReviewAnswer   `json:"review,omitempty"`
	Deliver  *DeliverAnswer  `json:"deliver,omitempty"`
	Rollback *RollbackAnswer `json:"rollback,omitempty"`
	Report   *ReportAnswer   `json:"report,omitempty"`
}

// SnapshotInput asks for a durable copy of the project.
type SnapshotInput struct {
	Dir string `json:"dir"`
}

// SnapshotAnswer is the project as it was.
type SnapshotAnswer struct {
	Tree Tree `json:"tree"`
}

// TestInput asks for verdicts. Without Baseline the tree Base itself is
// executed; otherwise every candidate is, and judged against it.
type TestInput struct {
	// Dir is the project's own path, for display and toolchain look-up only.
	Dir  string `json:"dir"`
	Test string `json:"test,omitempty"`
	// Base is the tree that the tests and the runner's configuration are
	// taken from: the project as it was.
	Base Tree `json:"base"`
	// Baseline is the evidence of Base, Plan the baseline's.
	Baseline   *Ref        `json:"baseline,omitempty"`
	Plan       *Ref        `json:"plan,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	// Seconds is the run's whole time limit.
	Seconds float64 `json:"seconds"`
}

// TestAnswer holds a verdict for each candidate, or one for the baseline.
type TestAnswer struct {
	Results []TestResult `json:"results"`
	// Protected names the list of test and configuration files that no
	// candidate may touch, as a JSON array in an artifact: a project may have
	// thousands. It and Plan are set by the baseline.
	Protected *Ref `json:"protected,omitempty"`
	// Plan says how the tests are run, as an artifact.
	Plan *Ref `json:"plan,omitempty"`
}

// TestResult is the verdict on the candidate of that rank.
type TestResult struct {
	Rank int `json:"rank"`
	// Candidate is the candidate's hash, empty for the baseline.
	Candidate string  `json:"candidate,omitempty"`
	Verdict   Verdict `json:"verdict"`
}

// DebugInput asks a source for candidates.
type DebugInput struct {
	Attempt int    `json:"attempt"`
	Source  Source `json:"source"`
	Dir     string `json:"dir"`
	Test    string `json:"test,omitempty"`
	Plan    *Ref   `json:"plan,omitempty"`
	// Base is the tree that the candidates change.
	Base Tree `json:"base"`
	// Evidence is the newest failing verdict, Baseline that of the project.
	Evidence  Verdict  `json:"evidence"`
	Baseline  Verdict  `json:"baseline"`
	Targets   []string `json:"targets,omitempty"`
	Protected *Ref     `json:"protected,omitempty"`
	// Rejected are the gates' refusals since a candidate last passed them,
	// newest last, beside the evidence.
	Rejected []Rejection `json:"rejected,omitempty"`
	// Feedback is the guardian's newest.
	Feedback string `json:"feedback,omitempty"`
	// Hint is what a person tells the sources.
	Hint string `json:"hint,omitempty"`
	// Given is the difference that a person approved, Patch a person's own:
	// what the source person proposes.
	Given *Ref   `json:"given,omitempty"`
	Patch string `json:"patch,omitempty"`
	// Tried are hashes of candidates that must not be proposed again.
	Tried []string `json:"tried,omitempty"`
	// Limit is the most proposals.
	Limit int `json:"limit"`
	// Calls is how many model calls are left; nil sets no limit.
	Calls *int `json:"calls,omitempty"`
	// Seconds is what is left of the run's time when it was asked.
	Seconds float64 `json:"seconds"`
}

// DebugAnswer holds the raw answers, best first; none says that the source
// has nothing to offer, Reason why.
type DebugAnswer struct {
	Proposals []Proposal `json:"proposals"`
	Reason    string     `json:"reason,omitempty"`
	// Calls, PromptTokens and AnswerTokens count what a model was asked.
	Calls        int `json:"calls,omitempty"`
	PromptTokens int `json:"prompt_tokens,omitempty"`
	AnswerTokens int `json:"answer_tokens,omitempty"`
	// Request is the request as an artifact, secrets masked.
	Request *Ref `json:"request,omitempty"`
}

// ValidateInput asks for the gates' word on proposals.
type ValidateInput struct {
	Plan *Ref `json:"plan,omitempty"`
	Base Tree `json:"base"`
	// Origin is the project as it was, set when Base is a failed candidate:
	// an answer that does not fit Base may be meant for it.
	Origin    *Tree      `json:"origin,omitempty"`
	Proposals []Proposal `json:"proposals"`
	Targets   []string   `json:"targets,omitempty"`
	Protected *Ref       `json:"protected,omitempty"`
	Tried     []string   `json:"tried,omitempty"`
}

// ValidateAnswer holds what passed and what did not, by rank.
type ValidateAnswer struct {
	Accepted []Candidate `json:"accepted"`
	Rejected []Rejection `json:"rejected"`
}

// ApplyInput asks for the candidates' trees.
type ApplyInput struct {
	Dir string `json:"dir"`
	// Origin is the project as it was, Base the tree that the candidates
	// change.
	Origin     Tree        `json:"origin"`
	Base       Tree        `json:"base"`
	Candidates []Candidate `json:"candidates"`
	Protected  *Ref        `json:"protected,omitempty"`
	// InPlace writes the first candidate to Dir as well.
	InPlace bool `json:"in_place,omitempty"`
}

// ApplyAnswer holds the candidates with their trees; Changes, Hash and Diff
// now say what differs from Origin.
type ApplyAnswer struct {
	Candidates []Candidate `json:"candidates"`
	// Refused are the candidates that may not be written: a path of theirs
	// leaves the project, has several names, or is protected.
	Refused []Rejection `json:"refused,omitempty"`
	// Drift lists paths that somebody else changed; nothing was written.
	Drift []string `json:"drift,omitempty"`
}

// ReviewInput asks guardian or policy about the candidate that passed.
type ReviewInput struct {
	Origin    Tree      `json:"origin"`
	Candidate Candidate `json:"candidate"`
	Verdict   Verdict   `json:"verdict"`
	Baseline  Verdict   `json:"baseline"`
	Targets   []string  `json:"targets,omitempty"`
	Protected *Ref      `json:"protected,omitempty"`
	// Policy is the task's own rules file.
	Policy string `json:"policy,omitempty"`
}

// ReviewWord is a reviewer's decision.
type ReviewWord string

// The decisions. Anything but WordApprove is not an approval.
const (
	WordApprove ReviewWord = "approve"
	WordReject  ReviewWord = "reject"
	WordHuman   ReviewWord = "human"
)

// ReviewAnswer is a reviewer's decision on exactly one candidate.
type ReviewAnswer struct {
	Word ReviewWord `json:"word"`
	// Candidate and Tree are the hashes of what was reviewed.
	Candidate string   `json:"candidate"`
	Tree      string   `json:"tree"`
	Reasons   []string `json:"reasons,omitempty"`
	// Notes say what was found and stands in no way.
	Notes []string `json:"notes,omitempty"`
	// Rules is the version of the rules that judged.
	Rules string `json:"rules,omitempty"`
}

// DeliverInput asks to bring the approved tree to the user.
type DeliverInput struct {
	Dir    string `json:"dir"`
	Origin Tree   `json:"origin"`
	// Candidate is nil when there is nothing to do.
	Candidate *Candidate  `json:"candidate,omitempty"`
	Mode      DeliverMode `json:"mode"`
	InPlace   bool        `json:"in_place,omitempty"`
}

// DeliverAnswer is what deliver verified on the disk.
type DeliverAnswer struct {
	Delivered DeliverMode `json:"delivered"`
	// Candidate is the hash of what was delivered, empty for a no-op.
	Candidate string `json:"candidate,omitempty"`
	Before    string `json:"before"`
	After     string `json:"after"`
	// Patch is the path of the patch file.
	Patch string `json:"patch,omitempty"`
	// Drift lists paths of the candidate that somebody else changed, Moved
	// other paths that are not as the tests saw them, each cut to MaxPaths.
	// With either nothing was delivered.
	Drift []string `json:"drift,omitempty"`
	Moved []string `json:"moved,omitempty"`
}

// refused reports whether the folder was another one than the candidate was
// made for.
func (d DeliverAnswer) refused() bool { return len(d.Drift)+len(d.Moved) > 0 }

// RollbackInput is what the rollback consumer needs.
type RollbackInput struct {
	Dir     string `json:"dir"`
	Home    string `json:"home"`
	Origin  *Tree  `json:"origin,omitempty"`
	InPlace bool   `json:"in_place,omitempty"`
}

// RollbackAnswer is the proof of a restore, read back from the disk. Its lists
// are cut to MaxPaths; Counts holds their true lengths.
type RollbackAnswer struct {
	// Before is the tree hash when the rollback began, empty when the folder
	// could not be read then; After is that of the end.
	Before   string   `json:"before"`
	After    string   `json:"after"`
	Restored []string `json:"restored,omitempty"`
	// Conflicts lists paths that the run wrote and somebody else changed
	// meanwhile; they were kept.
	Conflicts []string `json:"conflicts,omitempty"`
	// Foreign lists paths that differ from the snapshot though the run never
	// wrote them; they were not touched.
	Foreign []string       `json:"foreign,omitempty"`
	Counts  RollbackCounts `json:"counts"`
}

// RollbackCounts holds how many paths each list of a rollback had.
type RollbackCounts struct {
	Restored  int `json:"restored,omitempty"`
	Conflicts int `json:"conflicts,omitempty"`
	Foreign   int `json:"foreign,omitempty"`
}

// ReportInput asks for the review item and its report.
type ReportInput struct {
	Dir string `json:"dir"`
	// InProject asks for review_report.md inside the project.
	InProject bool `json:"in_project,omitempty"`
}

// ReportAnswer names the report.
type ReportAnswer struct {
	Report Ref `json:"report"`
	// Path is where the report lies on the run's home.
	Path string `json:"path"`
}
