package agents

import (
	"encoding/json"
	"errors"
	"sync"

	"nexuscore.dev/nexus/internal/testrun"
	"nexuscore.dev/nexus/internal/validate"
)

// GateConfig is how the gates judge the files of a project that runs under
// this interpreter, nil for the system's own.
func (c Config) GateConfig(python *testrun.Interpreter) validate.Config {
	v := validate.Config{Temp: c.Temp, Hidden: []string{c.State}}
	if python != nil {
		v.Python, v.ReadOnly = python.Path, python.ReadOnly
	}
	if c.Model != nil {
		v.Secrets = c.Model.Secrets
	}
	return v
}

// maxWarm is how many validators wait for their interpreter's next project.
const maxWarm = 4

// validators keeps the most recently used validators, each with an interpreter
// of its own.
type validators struct {
	cfg Config

	mu    sync.Mutex
	clock int
	list  map[string]*shared
}

// shared is a validator with its users and the time of its last use.
type shared struct {
	*validate.Validator
	users, used int
}

// borrow returns the validator of an interpreter, which lives at least until
// release is called.
func (p *validators) borrow(python *testrun.Interpreter) (v *validate.Validator, release func(), err error) {
	name, err := json.Marshal(python)
	if err != nil {
		return nil, nil, err
	}
	key := string(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.list[key]
	if s == nil {
		if err := p.shrink(maxWarm - 1); err != nil {
			return nil, nil, err
		}
		v, err := validate.New(p.cfg.GateConfig(python))
		if err != nil {
			return nil, nil, err
		}
		s = &shared{Validator: v}
		if p.list == nil {
			p.list = map[string]*shared{}
		}
		p.list[key] = s
	}
	p.clock++
	s.users, s.used = s.users+1, p.clock
	return s.Validator, func() { p.release(s) }, nil
}

func (p *validators) release(s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
}

// shrink closes what was not used for longest, down to most. What is in use
// stays.
func (p *validators) shrink(most int) error {
	var err error
	for len(p.list) > most {
		oldest := ""
		for key, s := range p.list {
			if s.users == 0 && (oldest == "" || s.used < p.list[oldest].used) {
				oldest = key
			}
		}
		if oldest == "" {
			return err
		}
		err = errors.Join(err, p.list[oldest].Close())
		delete(p.list, oldest)
	}
	return err
}

// close ends all interpreters.
func (p *validators) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, s := range p.list {
		err = errors.Join(err, s.Close())
	}
	clear(p.list)
	return err
}
