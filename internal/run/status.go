package run

// AttemptStatus is the result of one debug attempt.
type AttemptStatus string

// The statuses of an attempt; the word pytest stands for any runner.
const (
	StatusNoFixedCode  AttemptStatus = "no_fixed_code"
	StatusASTFail      AttemptStatus = "ast_fail"
	StatusGateFail     AttemptStatus = "gate_fail"
	StatusPytestPass   AttemptStatus = "pytest_pass"
	StatusPytestFail   AttemptStatus = "pytest_fail"
	StatusSandboxError AttemptStatus = "sandbox_error"
)

// Rejection is a gate's refusal of one proposal.
type Rejection struct {
	Rank int `json:"rank"`
	// Gate is the gate's machine-readable name, Reason what it found.
	Gate   string `json:"gate"`
	Reason string `json:"reason"`
	// Feedback is the sentence for the source's next attempt.
	Feedback string        `json:"feedback"`
	Status   AttemptStatus `json:"status"`
	// Hash identifies the refused candidate where it could be decoded.
	Hash string `json:"hash,omitempty"`
}
