package patch

import (
	"bytes"
	"regexp"
)

// reasoningTags enclose what a model thinks before it answers.
var reasoningTags = []string{"think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis"}

// finalMessage begins the last message of a transcript of several channels: at
// the start of a line, or behind the end of the message before.
var finalMessage = regexp.MustCompile(`(?m)(?:^|<\|start\|>assistant[ \t]*|<\|end\|>[ \t]*)<\|channel\|>final<\|message\|>`)

// stripReasoning drops everything that a model thought aloud. What stands in a
// fence is content, and so is a tag that does not begin its line.
func stripReasoning(text []byte) []byte {
	text = lastMessage(text)
	for _, tag := range reasoningTags {
		if shut := []byte("</" + tag + ">"); bytes.Contains(text, []byte("<"+tag+">")) || bytes.Contains(text, shut) {
			text = stripTag(text, []byte("<"+tag+">"), shut)
		}
	}
	return text
}

// lastMessage cuts a transcript down to its last message. One that begins with
// a channel may have left a fence open in its thoughts.
func lastMessage(text []byte) []byte {
	start := bytes.TrimSpace(text)
	if bytes.HasPrefix(start, []byte("<|channel|>")) || bytes.HasPrefix(start, []byte("<|start|>")) {
		if m := finalMessage.FindIndex(text); m != nil {
			return text[m[1]:]
		}
		return text
	}
	var f fencing
	for at := 0; at < len(text); {
		line := lineFrom(text, at)
		at += len(line)
		if f.holds(line) {
			continue
		}
		if m := finalMessage.FindIndex(line); m != nil {
			return text[at-len(line)+m[1]:]
		}
	}
	return text
}

// stripTag drops what stands between the tags, and all before a closing tag on
// a line of its own: the opening one was part of the prompt.
func stripTag(text, open, shut []byte) []byte {
	out := make([]byte, 0, len(text))
	var f fencing
	begun := false
	for at := 0; at < len(text); {
		line := lineFrom(text, at)
		fenced := f.holds(line)
		t := line
		if !begun {
			t = bytes.TrimLeft(line, " \t")
		}
		switch {
		case !fenced && bytes.HasPrefix(t, open):
			end := bytes.Index(text[at:], shut)
			if end < 0 {
				return out
			}
			at += end + len(shut)
		case !fenced && bytes.HasPrefix(t, shut) && blank(t[len(shut):]):
			out, begun = out[:0], false
			at += len(line)
		default:
			out = append(out, line...)
			begun = begun || !blank(line)
			at += len(line)
		}
	}
	return out
}

func lineFrom(text []byte, at int) []byte {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return text[at : at+i+1]
	}
	return text[at:]
}

// fencing follows the fences of a text from line to line.
type fencing struct {
	// mark is the open fence's, empty outside of all.
	mark []byte
}

// holds takes the next line and says whether it belongs to a fence.
func (f *fencing) holds(line []byte) bool {
	t := bytes.TrimSpace(line)
	mark := t[:len(t)-len(bytes.TrimLeft(t, "`"))]
	if len(mark) == 0 {
		mark = t[:len(t)-len(bytes.TrimLeft(t, "~"))]
	}
	switch {
	case len(f.mark) == 0 && len(mark) < 3, len(f.mark) == 0 && bytes.IndexByte(t[len(mark):], '`') >= 0:
		return false
	case len(f.mark) == 0:
		f.mark = mark
	case len(mark) >= len(f.mark) && len(mark) == len(t) && mark[0] == f.mark[0]:
		f.mark = nil
	}
	return true
}
