package patch

import (
	"bytes"
	"sort"
)

// Span pairs old lines [OldFrom, OldTo) with the new lines [NewFrom, NewTo)
// that stand in their place. Everything between two spans is equal.
type Span struct{ OldFrom, OldTo, NewFrom, NewTo int }

// maxTable bounds the quadratic comparison of one gap: rows times columns.
const maxTable = 1 << 18

// LineDiff lists the differing stretches of two sequences of lines, in order.
// Lines that occur once on both sides anchor it, so it takes n log n on real
// text; small gaps are compared exactly, large ones are replaced as a whole.
func LineDiff(a, b [][]byte) []Span {
	d := differ{a: a, b: b}
	d.compare(0, len(a), 0, len(b))
	return d.out
}

type differ struct {
	a, b [][]byte
	out  []Span
}

func (d *differ) compare(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && bytes.Equal(d.a[a0], d.b[b0]) {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && bytes.Equal(d.a[a1-1], d.b[b1-1]) {
		a1, b1 = a1-1, b1-1
	}
	switch {
	case a0 == a1 && b0 == b1:
	case a0 == a1 || b0 == b1:
		d.emit(Span{a0, a1, b0, b1})
	default:
		d.gap(a0, a1, b0, b1)
	}
}

func (d *differ) gap(a0, a1, b0, b1 int) {
	anchors := d.anchors(a0, a1, b0, b1)
	if len(anchors) == 0 {
		if (a1-a0)*(b1-b0) <= maxTable {
			d.table(a0, a1, b0, b1)
			return
		}
		d.emit(Span{a0, a1, b0, b1})
		return
	}
	for _, p := range anchors {
		if p[0] < a0 || p[1] < b0 {
			continue
		}
		d.compare(a0, p[0], b0, p[1])
		a0, b0 = p[0]+1, p[1]+1
	}
	d.compare(a0, a1, b0, b1)
}

// emit appends a span and joins it to the one before when they touch.
func (d *differ) emit(s Span) {
	if n := len(d.out); n > 0 && d.out[n-1].OldTo == s.OldFrom && d.out[n-1].NewTo == s.NewFrom {
		d.out[n-1].OldTo, d.out[n-1].NewTo = s.OldTo, s.NewTo
		return
	}
	d.out = append(d.out, s)
}

// anchors pairs the lines that are unique on both sides, as the longest
// sequence that is increasing on both.
func (d *differ) anchors(a0, a1, b0, b1 int) [][2]int {
	type seen struct{ na, nb, ia, ib int }
	m := make(map[string]*seen, a1-a0)
	for i := a0; i < a1; i++ {
		s := m[string(d.a[i])]
		if s == nil {
			s = &seen{}
			m[string(d.a[i])] = s
		}
		s.na, s.ia = s.na+1, i
	}
	for i := b0; i < b1; i++ {
		if s := m[string(d.b[i])]; s != nil {
			s.nb, s.ib = s.nb+1, i
		}
	}
	var pairs [][2]int
	for i := a0; i < a1; i++ {
		if s := m[string(d.a[i])]; s.na == 1 && s.nb == 1 {
			pairs = append(pairs, [2]int{s.ia, s.ib})
		}
	}
	return increasing(pairs)
}

// increasing is the longest subsequence whose second members increase.
func increasing(pairs [][2]int) [][2]int {
	var tails []int
	prev := make([]int, len(pairs))
	for i, p := range pairs {
		k := sort.Search(len(tails), func(k int) bool { return pairs[tails[k]][1] >= p[1] })
		prev[i] = -1
		if k > 0 {
			prev[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	out := make([][2]int, len(tails))
	if len(tails) == 0 {
		return out
	}
	for i, k := tails[len(tails)-1], len(tails)-1; k >= 0; i, k = prev[i], k-1 {
		out[k] = pairs[i]
	}
	return out
}

// table is the textbook longest common subsequence of a small gap.
func (d *differ) table(a0, a1, b0, b1 int) {
	w := b1 - b0 + 1
	t := make([]int32, (a1-a0+1)*w)
	for i := a1 - a0 - 1; i >= 0; i-- {
		for j := b1 - b0 - 1; j >= 0; j-- {
			if bytes.Equal(d.a[a0+i], d.b[b0+j]) {
				t[i*w+j] = t[(i+1)*w+j+1] + 1
			} else {
				t[i*w+j] = max(t[(i+1)*w+j], t[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for a0+i < a1 || b0+j < b1 {
		switch {
		case a0+i < a1 && b0+j < b1 && bytes.Equal(d.a[a0+i], d.b[b0+j]):
			i, j = i+1, j+1
		case b0+j == b1 || (a0+i < a1 && t[(i+1)*w+j] >= t[i*w+j+1]):
			d.emit(Span{a0 + i, a0 + i + 1, b0 + j, b0 + j})
			i++
		default:
			d.emit(Span{a0 + i, a0 + i, b0 + j, b0 + j + 1})
			j++
		}
	}
}
