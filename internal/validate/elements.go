package validate

// angle begins a tag where no operator can stand.
func (r *reading) angle(i int, before operand, sure bool) {
	top := &r.open[len(r.open)-1]
	switch {
	case top.kind == '<':
		top.vague = true
	case before != anOperand:
		r.tag(i, asCode, sure && before == noOperand)
	}
}

// tag opens one.
func (r *reading) tag(i int, from reads, sure bool) {
	c, n := r.after(i)
	closing := c == '/' && r.at(n+1) != '/' && r.at(n+1) != '*'
	r.push(bracket{kind: '<', levels: 1, after: from, closing: closing, vague: c == '/' && !closing}, sure)
	r.prev = maybeOperand
}

// after is the first byte behind i that is not blank.
func (r *reading) after(i int) (c byte, at int) {
	i++
	for i < len(r.src) && r.src[i] <= ' ' {
		i++
	}
	return r.at(i), i
}

// tagEnds reads what follows a tag. Type parameters look like one and have a
// parenthesis behind them.
func (r *reading) tagEnds(i int, sure bool) reads {
	last := len(r.open) - 1
	b := r.open[last]
	follows, _ := r.after(i)
	vague := b.vague || r.types && !b.closing && (follows == '(' || follows == '/')
	if !sure || b.kind != '<' || !r.certain() || vague {
		r.doubts++
		return asCode | asText
	}
	r.prev = anOperand
	switch {
	case b.closing:
		if last < 2 || r.open[last-1].kind != 'E' || r.open[last-1].doubts != r.doubts {
			r.doubts++
			return asCode | asText
		}
		b = r.open[last-1]
		r.cut(last - 1)
	case r.src[i-1] == '/':
		r.cut(last)
	default:
		r.cut(last)
		b.kind, b.levels = 'E', 1
		r.push(b, true)
		return asText
	}
	return b.after
}
