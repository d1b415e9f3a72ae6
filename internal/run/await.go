package run

// Waits reports whether s waits for the answer to ask n.
func (s State) Waits(n int) bool {
	_, ok := s.Pending[n]
	return ok
}

// Awaits reports whether f means anything to s: the answer or failure of a
// pending ask by somebody who may state it, an armed timer whose moment has
// come at f.At, or an order that changes something. Every other fact is late, doubled or forged; whoever
// appends to the log drops it, so that nobody can fill the log with it.
func (s State) Awaits(f Fact) bool {
	switch {
	case s.OpenedAt.IsZero() || s.Closed:
		return false
	case f.Timer != "":
		return s.due(f)
	case f.Order != nil:
		return s.heeds(*f.Order)
	}
	ask, ok := s.Pending[f.Ask]
	return ok && speaks(f, ask)
}

// due reports whether the moment of an armed timer has come at f.At: a timer
// that was set anew may still fire for its old moment.
func (s State) due(f Fact) bool {
	for _, t := range s.Timers() {
		if t.Name == f.Timer && !t.At.After(f.At) {
			return true
		}
	}
	return false
}

func (s State) heeds(o Order) bool {
	open := s.Ended == nil && s.Stop == nil
	switch o.Kind {
	case OrderCancel:
		return open
	case OrderPark:
		return open && !s.Parked
	case OrderResume:
		return open && (s.Parked || (s.adopts(o.Driver) && s.N < s.Task.Limits.Events-reserve))
	}
	return false
}

func (s State) adopts(d *Driver) bool {
	return d != nil && (s.Task.Driver == nil || *s.Task.Driver != *d)
}
