package sandbox

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes the output of a hostile program safe to show on a terminal,
// to log, to put into JSON and into a prompt: terminal escapes (CSI, OSC, DCS,
// single ones, 8-bit ones) and control characters are dropped, a carriage
// return starts a line, invalid UTF-8 becomes U+FFFD, and characters that
// change the direction or visibility of others are dropped. Tab and newline stay.
func Printable(p []byte) string {
	var b strings.Builder
	b.Grow(len(p))
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		switch {
		case r == '\x1b':
			n = escape(p)
		case r == '\u009b':
			n += csi(p[n:])
		case r == '\u009d' || r == '\u0090' || r == '\u0098' || r == '\u009e' || r == '\u009f':
			n += text(p[n:])
		case r == '\r':
			if !bytes.HasPrefix(p[n:], []byte("\n")) {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t' || !hidden(r):
			b.WriteRune(r)
		}
		p = p[n:]
	}
	return b.String()
}

// hidden reports characters that a reader cannot see: controls, and format
// characters except those that ordinary scripts and emoji need to join.
func hidden(r rune) bool {
	if r == '\u200c' || r == '\u200d' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// escape returns the length of the sequence that starts with ESC at p[0].
func escape(p []byte) int {
	if len(p) < 2 {
		return 1
	}
	switch c := p[1]; {
	case c == '[':
		return 2 + csi(p[2:])
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return 2 + text(p[2:])
	case c >= 0x20 && c <= 0x2f:
		n := 2
		for n < len(p) && p[n] >= 0x20 && p[n] <= 0x2f {
			n++
		}
		return min(n+1, len(p))
	case c >= 0x30 && c <= 0x7e:
		return 2
	default:
		return 1
	}
}

// csi returns the length of a control sequence's parameters and final byte.
func csi(p []byte) int {
	n := 0
	for n < len(p) && p[n] >= 0x20 && p[n] <= 0x3f {
		n++
	}
	if n < len(p) && p[n] >= 0x40 && p[n] <= 0x7e {
		n++
	}
	return n
}

// text returns the length of an operating-system or device string up to and
// with its terminator. Without one on the same line it swallows nothing, so
// that a stray introducer cannot hide the rest of the output.
func text(p []byte) int {
	for n := 0; n < len(p) && n < 4096; n++ {
		switch {
		case p[n] == '\a':
			return n + 1
		case p[n] == '\x1b' && n+1 < len(p) && p[n+1] == '\\':
			return n + 2
		case p[n] == 0xc2 && n+1 < len(p) && p[n+1] == 0x9c:
			return n + 2
		case p[n] == '\n' || p[n] == '\x1b':
			return 0
		}
	}
	return 0
}
