package patch

import "fmt"

// relax turns the JSON that models write into JSON: raw control characters
// inside strings become escapes, comments and trailing commas outside of them
// go. It never completes or drops a value.
func relax(b []byte) []byte {
	out := make([]byte, 0, len(b)+16)
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			var n int
			out, n = relaxString(out, b[i:])
			i += n
		case c == '#' || (c == '/' && i+1 < len(b) && b[i+1] == '/'):
			for i < len(b) && b[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(b) && b[i+1] == '*':
			i = skipComment(b, i)
		case c == '}' || c == ']':
			out = append(dropComma(out), c)
			i++
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// relaxString copies one string and returns the number of bytes read.
func relaxString(out, b []byte) ([]byte, int) {
	out = append(out, '"')
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\' && i+1 < len(b):
			out = append(out, c, b[i+1])
			i++
		case c == '"':
			return append(out, c), i + 1
		case c < 0x20:
			out = append(out, fmt.Sprintf(`\u%04x`, c)...)
		default:
			out = append(out, c)
		}
	}
	return out, len(b)
}

func skipComment(b []byte, i int) int {
	for i += 2; i+1 < len(b); i++ {
		if b[i] == '*' && b[i+1] == '/' {
			return i + 2
		}
	}
	return len(b)
}

// dropComma removes a comma before a closing bracket.
func dropComma(out []byte) []byte {
	i := len(out)
	for i > 0 && (out[i-1] == ' ' || out[i-1] == '\n' || out[i-1] == '\t' || out[i-1] == '\r') {
		i--
	}
	if i > 0 && out[i-1] == ',' {
		return append(out[:i-1], out[i:]...)
	}
	return out
}
