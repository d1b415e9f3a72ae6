//go:build !nexusfault

package fault

// Point marks a moment at which a test may end the process. It is empty in
// every build without the nexusfault tag.
func Point(string) {}
