package patch

import "bytes"

// reasoningTags enclose what a model thinks before it answers.
var reasoningTags = []string{"think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis"}

// stripReasoning drops everything that a model thought aloud. A tag counts
// only where a line begins with it, so that code which mentions one is kept.
func stripReasoning(text []byte) []byte {
	if i := bytes.LastIndex(text, []byte("<|channel|>final<|message|>")); i >= 0 {
		text = text[i+len("<|channel|>final<|message|>"):]
	}
	for _, tag := range reasoningTags {
		text = stripTag(text, []byte("<"+tag+">"), []byte("</"+tag+">"))
	}
	return text
}

func stripTag(text, open, shut []byte) []byte {
	for {
		at := topLevel(text, open)
		if at < 0 {
			break
		}
		end := bytes.Index(text[at:], shut)
		if end < 0 {
			return text[:at]
		}
		text = append(bytes.Clone(text[:at]), text[at+end+len(shut):]...)
	}
	// A lone closing tag: the opening one was part of the prompt.
	if at := wholeLine(text, shut); at >= 0 {
		return text[at+len(shut):]
	}
	return text
}

// topLevel finds a line that starts with mark and stands outside every fence.
func topLevel(text, mark []byte) int {
	fenced := false
	for at := 0; at < len(text); {
		line := text[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		t := bytes.TrimLeft(line, " \t")
		switch {
		case bytes.HasPrefix(t, []byte("```")) || bytes.HasPrefix(t, []byte("~~~")):
			fenced = !fenced
		case !fenced && bytes.HasPrefix(t, mark):
			return at + len(line) - len(t)
		}
		at += len(line) + 1
	}
	return -1
}

// wholeLine finds the last line that is mark and nothing else.
func wholeLine(text, mark []byte) int {
	for end := len(text); end > 0; {
		at := bytes.LastIndex(text[:end], mark)
		if at < 0 {
			return -1
		}
		before, after := text[:at], text[at+len(mark):]
		if i := bytes.IndexByte(after, '\n'); i >= 0 {
			after = after[:i]
		}
		before = before[bytes.LastIndexByte(before, '\n')+1:]
		if blank(before) && blank(after) {
			return at
		}
		end = at
	}
	return -1
}
