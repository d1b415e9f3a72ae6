//go:build drill

package repair_test

import "testing"

// TestDrillEveryBug plants all of testdata/bugs, of which a plain test run
// takes a part.
func TestDrillEveryBug(t *testing.T) {
	t.Parallel()
	firstProposals(t, 1)
}
