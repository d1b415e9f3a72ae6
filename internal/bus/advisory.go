package bus

import (
	"encoding/json"
	"fmt"

	"nexuscore.dev/nexus/internal/wire"
)

// advisory is what the server says about a message that it gave up on.
type advisory struct {
	Type       string `json:"type"`
	Stream     string `json:"stream"`
	Consumer   string `json:"consumer"`
	StreamSeq  uint64 `json:"stream_seq"`
	Deliveries int    `json:"deliveries"`
	Reason     string `json:"reason"`
}

func parseAdvisory(body []byte) (advisory, error) {
	var a advisory
	if err := json.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("%w: advisory: %w", wire.ErrMalformed, err)
	}
	if a.Stream == "" || a.StreamSeq == 0 {
		return a, fmt.Errorf("%w: advisory names no message", wire.ErrMalformed)
	}
	return a, nil
}

func (a advisory) text() string {
	if a.Reason != "" {
		return "the message was refused: " + a.Reason
	}
	return fmt.Sprintf("%d workers were lost over this message", a.Deliveries)
}
