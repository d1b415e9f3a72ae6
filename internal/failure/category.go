package failure

// Category is what a failure means for the run. The zero value is no
// category; Classify never returns it for an error.
type Category string

// The categories, in the order in which they win when several match.
const (
	// RateLimit: a provider refuses work for now (429, 529, spent quota).
	RateLimit Category = "rate_limit"
	// Timeout: an answer did not come in time (408, 504, deadlines).
	Timeout Category = "timeout"
	// Connection: the other side could not be reached (5xx, DNS, resets).
	Connection Category = "connection"
	// InvalidOutput: an answer that should fit a schema does not, or a
	// stream that ended before its stop reason.
	InvalidOutput Category = "invalid_output"
	// Sandbox: code or tests could not be executed.
	Sandbox Category = "sandbox"
	// Security: the sandbox or a gate was attacked. Known by type only.
	Security Category = "security"
	// PatchApply: a patch does not fit the tree.
	PatchApply Category = "patch_apply"
	// Unexpected: everything else, a stop included. Never tried again.
	Unexpected Category = "unexpected"
)

// Categories lists every category in order of priority.
func Categories() []Category {
	all := make([]Category, len(table))
	for i := range table {
		all[i] = table[i].category
	}
	return all
}

// Valid reports whether c is one of Categories.
func (c Category) Valid() bool { return c.row() != nil }

// TypeName is the name of the error type that stands for c in reports and
// for other languages, such as ModelRateLimitError. An unknown category has
// the name of Unexpected.
func (c Category) TypeName() string { return c.known().typeName }

func (c Category) row() *row {
	for i := range table {
		if table[i].category == c {
			return &table[i]
		}
	}
	return nil
}

// known is row, with Unexpected in place of what the table does not have.
func (c Category) known() *row {
	if r := c.row(); r != nil {
		return r
	}
	return Unexpected.row()
}

// Origin names the part of the product that raised an error. The empty
// Origin is unknown.
type Origin string

// The origins.
const (
	OriginModel     Origin = "model"
	OriginSandbox   Origin = "sandbox"
	OriginTest      Origin = "test"
	OriginPatch     Origin = "patch"
	OriginWorkspace Origin = "workspace"
	OriginBus       Origin = "bus"
)

// Origins lists every origin that has a name.
func Origins() []Origin {
	return []Origin{OriginModel, OriginSandbox, OriginTest, OriginPatch, OriginWorkspace, OriginBus}
}

// decides answers the category that an origin alone settles. What a test, the
// sandbox or the patch stage raises is never judged by its words.
func (o Origin) decides() (Category, bool) {
	switch o {
	case OriginTest, OriginSandbox:
		return Sandbox, true
	case OriginPatch:
		return PatchApply, true
	default:
		return "", false
	}
}

// allows reports whether an error of this origin can be of category c: only a
// model's answer can be invalid output.
func (o Origin) allows(c Category) bool {
	return c != InvalidOutput || o == "" || o == OriginModel
}

// OfStatus answers the category of an HTTP status, and false below 400.
func OfStatus(status int) (Category, bool) {
	switch {
	case status == 429 || status == 529:
		return RateLimit, true
	case status == 408 || status == 504:
		return Timeout, true
	case status >= 500 && status <= 599:
		return Connection, true
	case status >= 400:
		return Unexpected, true
	default:
		return "", false
	}
}
