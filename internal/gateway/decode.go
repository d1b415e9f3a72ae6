package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"nexuscore.dev/nexus/internal/wire"
)

const (
	// maxBody is the most bytes of a request's body.
	maxBody = 1 << 20
	// maxTask is the most bytes of a task on the bus, whose messages hold
	// 1 MiB with their headers.
	maxTask = 900 << 10

	mediaJSON       = "application/json"
	mediaStructured = "application/cloudevents+json"
	// typePrefix stands before the kind in the type of a CloudEvent.
	typePrefix = "dev.nexuscore.task."
)

// keyPattern is what an Idempotency-Key may be: printable ASCII.
var keyPattern = regexp.MustCompile(`^[ -~]{1,200}$`)

// readBody reads a whole body or refuses it.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, refuse(http.StatusUnsupportedMediaType, nameMedia, "the content encoding %q is not read, only plain bodies are", enc)
	}
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge()
	case err != nil:
		p := refuse(http.StatusBadRequest, nameMalformed, "the body could not be read to its end")
		p.cause = err
		return nil, p
	}
	return body, nil
}

func tooLarge() *problem {
	return refuse(http.StatusRequestEntityTooLarge, nameTooLarge, "the body is larger than 1 MiB, which is the limit")
}

// mediaType returns the media type of a body that can be read.
func mediaType(h http.Header) (string, error) {
	given := h.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	if err != nil || (media != mediaJSON && media != mediaStructured) || (charset != "" && !strings.EqualFold(charset, "utf-8")) {
		return "", refuse(http.StatusUnsupportedMediaType, nameMedia,
			"the content type must be %s or %s in UTF-8, not %q", mediaJSON, mediaStructured, given)
	}
	return media, nil
}

// decodeTask reads a task as it came. Every error is a problem of the caller.
func decodeTask(tasks *wire.Tasks, h http.Header, body []byte) (wire.Received, error) {
	var none wire.Received
	media, err := mediaType(h)
	if err != nil {
		return none, err
	}
	if !utf8.Valid(body) {
		return none, malformed(errors.New("not UTF-8"))
	}
	keys := h.Values("Idempotency-Key")
	if len(keys) > 1 || (len(keys) == 1 && !keyPattern.MatchString(keys[0])) {
		return none, malformed(errors.New("the header Idempotency-Key must be one text of 1 to 200 printable ASCII characters"))
	}
	kind, err := kindOf(h, media, body)
	if err != nil {
		return none, malformed(err)
	}
	got, err := tasks.Decode(wire.Header(h), kind, body)
	if err != nil {
		return none, malformed(err)
	}
	if got.Heal.Driver != nil {
		return none, malformed(errors.New("driver is for processes of this machine, not for tasks that come over HTTP"))
	}
	if got.Heal.Child != nil {
		return none, malformed(errors.New("child is a person's decision, which does not come over HTTP: use 'nexus review'"))
	}
	if text, err := json.Marshal(got.Heal); err != nil || len(text) > maxTask {
		return none, tooLarge()
	}
	return got, nil
}

// kindOf returns the kind of task. A body that is no JSON object is left to
// the decoder, which says what is wrong with it.
func kindOf(h http.Header, media string, body []byte) (string, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil || top == nil {
		return wire.KindHeal, nil //nolint:nilerr // see above
	}
	name, prefix := "kind", ""
	if media == mediaStructured {
		name, prefix = "type", typePrefix
	}
	given, ok := top[name]
	var text string
	switch {
	case !ok && media == mediaJSON && h.Get("ce-type") != "":
		name, prefix, text = "ce-type", typePrefix, h.Get("ce-type")
	case !ok:
		return "", errors.New("missing " + name + ": the only known one is " + prefix + wire.KindHeal)
	default:
		if err := json.Unmarshal(given, &text); err != nil {
			return "", errors.New(name + " must be a string")
		}
	}
	kind, ok := strings.CutPrefix(text, prefix)
	if !ok || kind != wire.KindHeal {
		return "", errors.New("unknown " + name + ": the only known one is " + prefix + wire.KindHeal)
	}
	return kind, nil
}

func malformed(err error) *problem {
	text := strings.TrimPrefix(err.Error(), wire.ErrMalformed.Error()+": ")
	return refuse(http.StatusBadRequest, nameMalformed, "malformed task: %s", text)
}

// keyOf is the key under which the task is submitted, and whether the caller
// gave it: the same key is the same run.
func keyOf(tenant string, got wire.Received) (key string, given bool) {
	switch len(got.Key) {
	case 0:
		return ulid.Make().String(), false
	case 2:
		return got.Key[1], true
	}
	return "event-" + wire.RunID(tenant, got.Key...), true
}
