// Package failure names what went wrong and decides, purely, what that means:
// Classify maps an error to a Category, Dispose maps a category and the number
// of earlier failures to what happens next.
package failure
