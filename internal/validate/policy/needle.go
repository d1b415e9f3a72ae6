package policy

import (
	"bytes"
	"regexp"
	"regexp/syntax"
)

// pattern is an expression that first looks for the literal texts without
// which it can't match: most lines hold none of them, and a search for a text
// is many times as quick.
type pattern struct {
	re *regexp.Regexp
	// needles are texts of which every match holds one; empty when unknown.
	needles [][]byte
}

func compile(expr string) (*pattern, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return &pattern{re, needles(tree)}, nil
}

// match reports whether the line matches.
func (p *pattern) match(line []byte) bool {
	if len(p.needles) == 0 {
		return p.re.Match(line)
	}
	for _, n := range p.needles {
		if bytes.Contains(line, n) {
			return p.re.Match(line)
		}
	}
	return false
}

// needles lists texts of which every match of re holds at least one, nil when
// there are no such texts.
func needles(re *syntax.Regexp) [][]byte {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return [][]byte{[]byte(string(re.Rune))}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needles(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needles(re.Sub[0])
		}
	case syntax.OpConcat:
		var best [][]byte
		for _, sub := range re.Sub {
			if n := needles(sub); shortest(n) > shortest(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all [][]byte
		for _, sub := range re.Sub {
			n := needles(sub)
			if n == nil {
				return nil
			}
			all = append(all, n...)
		}
		return all
	default: // may match without any certain text
	}
	return nil
}

func shortest(list [][]byte) int {
	if len(list) == 0 {
		return 0
	}
	least := len(list[0])
	for _, n := range list {
		least = min(least, len(n))
	}
	return least
}
