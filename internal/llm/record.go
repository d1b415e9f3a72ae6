package llm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/fault"
)

// Store keeps recordings by key. Put of an existing key may replace it; the
// bytes are the same up to what the model answered.
type Store interface {
	Get(ctx context.Context, key string) (data []byte, found bool, err error)
	Put(ctx context.Context, key string, data []byte) error
}

// ErrNoRecording is the answer of Replaying to a request that was never
// recorded.
var ErrNoRecording = errors.New("no recorded answer for this request")

// Exchange is a recorded request with its answer.
type Exchange struct {
	Version int     `json:"v"`
	Request Request `json:"request"`
	Answer  Answer  `json:"answer"`
}

const exchangeVersion = 1

// Key is the lower-case hex SHA-256 of the request's canonical JSON.
func Key(req Request) (string, error) {
	data, err := canonical(req)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// canonical encodes v, which holds no maps, so that equal values have equal
// bytes and text stays readable.
func canonical(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// EncodeExchange is the artifact of a request and its answer.
func EncodeExchange(req Request, a Answer) ([]byte, error) {
	return canonical(Exchange{exchangeVersion, req, a})
}

// DecodeExchange reads an artifact back and checks that it belongs to key.
func DecodeExchange(key string, data []byte) (Exchange, error) {
	var x Exchange
	if err := json.Unmarshal(data, &x); err != nil {
		return Exchange{}, fmt.Errorf("recording %.12s: %w", key, err)
	}
	if x.Version != exchangeVersion {
		return Exchange{}, fmt.Errorf("recording %.12s has version %d, this is version %d", key, x.Version, exchangeVersion)
	}
	got, err := Key(x.Request)
	if err != nil {
		return Exchange{}, err
	}
	if got != key {
		return Exchange{}, fmt.Errorf("recording %.12s holds the request %.12s", key, got)
	}
	return x, nil
}

// Recording answers from s what was asked before and records what next answers
// now, so that an answer is paid once; model stands in for an empty
// Request.Model, because the same words to another model are another request.
// An answer that cannot be recorded is an error: it would be paid twice.
func Recording(next Model, s Store, model string) Model {
	return Func(func(ctx context.Context, req Request) (Answer, error) {
		if req.Model == "" {
			req.Model = model
		}
		key, a, found, err := recall(ctx, s, req)
		if found || err != nil {
			return a, err
		}
		if a, err = next.Ask(ctx, req); err != nil {
			return Answer{}, err
		}
		if err := keep(ctx, s, key, req, a); err != nil {
			return Answer{}, failure.Convert(err, "llm: record")
		}
		return a, nil
	})
}

// Replaying answers from s alone; a missing key is ErrNoRecording, never the
// answer to another request.
func Replaying(s Store, model string) Model {
	return Func(func(ctx context.Context, req Request) (Answer, error) {
		if req.Model == "" {
			req.Model = model
		}
		key, a, found, err := recall(ctx, s, req)
		if err == nil && !found {
			err = failure.New(failure.Unexpected, "llm: replay", fmt.Errorf("%w (%.12s)", ErrNoRecording, key))
		}
		return a, err
	})
}

func recall(ctx context.Context, s Store, req Request) (key string, a Answer, found bool, err error) {
	const step = "llm: replay"
	if key, err = Key(req); err != nil {
		return "", Answer{}, false, failure.New(failure.Unexpected, step, err)
	}
	data, found, err := s.Get(ctx, key)
	if err != nil {
		return key, Answer{}, false, failure.Convert(err, step)
	}
	if !found {
		return key, Answer{}, false, nil
	}
	x, err := DecodeExchange(key, data)
	if err != nil {
		return key, Answer{}, false, failure.New(failure.Unexpected, step, err)
	}
	return key, x.Answer, true, nil
}

func keep(ctx context.Context, s Store, key string, req Request, a Answer) error {
	data, err := EncodeExchange(req, a)
	if err != nil {
		return err
	}
	fault.Point("llm.record.put")
	if err := s.Put(ctx, key, data); err != nil {
		return err
	}
	fault.Point("llm.record.put.done")
	return nil
}
