package wire

import (
	"strings"
	"time"
)

// Header holds a message's headers; names are compared without regard to
// case, as other systems spell them as they like.
type Header map[string][]string

// Get returns the first value of the header, or "".
func (h Header) Get(name string) string {
	for k, v := range h {
		if len(v) > 0 && strings.EqualFold(k, name) {
			return v[0]
		}
	}
	return ""
}

// HomeHeader names the host that the run's folder lives on.
const HomeHeader = "nexus-home"

// Envelope returns the CloudEvents 1.0 headers of a message in binary mode.
// source says which part of the system sent it, id is unique within source.
func Envelope(source, id, kind, runID string, at time.Time) Header {
	return Header{
		"ce-specversion": {"1.0"},
		"ce-id":          {id},
		"ce-source":      {"/nexus/" + source},
		"ce-type":        {"dev.nexuscore." + kind},
		"ce-subject":     {runID},
		"ce-time":        {at.UTC().Format(time.RFC3339Nano)},
		"content-type":   {"application/json"},
	}
}
