package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/schemas"
)

func sha256hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// description is schemas/openapi.yaml, ready to validate answers.
type description struct {
	doc     map[string]any
	schemas map[string]*jsonschema.Schema
}

// published is where the files of package schemas refer to each other.
const published = "https://nexuscore.dev/schemas/"

var openapi = sync.OnceValues(func() (*description, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	d := &description{schemas: map[string]*jsonschema.Schema{}}
	for _, name := range []string{schemas.Heal, schemas.OpenAPI} {
		text, err := schemas.Text(name)
		if err != nil {
			return nil, err
		}
		if text, err = yaml.YAMLToJSON(text); err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if err := c.AddResource(published+name, doc); err != nil {
			return nil, err
		}
		d.doc, _ = doc.(map[string]any)
	}
	all, _ := d.get(d.doc, "components", "schemas").(map[string]any)
	for name := range all {
		s, err := c.Compile(published + schemas.OpenAPI + "#/components/schemas/" + name)
		if err != nil {
			return nil, err
		}
		d.schemas[name] = s
	}
	return d, nil
})

func spec(t *testing.T) *description {
	t.Helper()
	d, err := openapi()
	require.NoError(t, err)
	return d
}

// get walks down from node; references on the way are followed.
func (d *description) get(node any, names ...string) any {
	m, _ := node.(map[string]any)
	if ref, ok := m["$ref"].(string); ok && strings.HasPrefix(ref, "#/components/") && len(names) > 0 {
		return d.get(d.get(d.doc, strings.Split(ref[2:], "/")...), names...)
	}
	switch len(names) {
	case 0:
		return node
	case 1:
		return m[names[0]]
	}
	return d.get(m[names[0]], names[1:]...)
}

var parameter = regexp.MustCompile(`\\\{\w+\\\}`)

// operation finds the operation that a request asks for.
func (d *description) operation(method, path string) any {
	path, _, _ = strings.Cut(path, "?")
	paths, _ := d.doc["paths"].(map[string]any)
	for template := range paths {
		pattern := parameter.ReplaceAllString(regexp.QuoteMeta(template), "[^/]+")
		if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			return d.get(paths[template], strings.ToLower(method))
		}
	}
	return nil
}

// described holds an answer against openapi.yaml: status, media type, body.
// What asks for no operation is answered by a problem.
func described(t *testing.T, method, path string, got reply) {
	t.Helper()
	d := spec(t)
	op := d.operation(method, path)
	if op == nil {
		if method != http.MethodHead {
			valid(t, "Problem", got.body)
		}
		return
	}
	res := d.get(op, "responses", strconv.Itoa(got.status))
	require.NotNil(t, res, "%s %s answers %d, which is not described: %s", method, path, got.status, got.body)
	content, _ := d.get(res, "content").(map[string]any)
	if len(content) == 0 {
		require.Empty(t, got.body)
		return
	}
	media, _, err := mime.ParseMediaType(got.header.Get("Content-Type"))
	require.NoError(t, err)
	require.Contains(t, content, media, "%s %s", method, path)
	schema, _ := d.get(content[media], "schema").(map[string]any)
	if ref, ok := schema["$ref"].(string); ok {
		valid(t, strings.TrimPrefix(ref, "#/components/schemas/"), got.body)
	}
}

// valid holds JSON against a schema of components.
func valid(t *testing.T, name string, body []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err, string(body))
	require.NoError(t, spec(t).schemas[name].Validate(doc), string(body))
}

func TestEveryRouteIsDescribedAndNoOther(t *testing.T) {
	t.Parallel()
	d := spec(t)
	var have, want []string
	for _, rt := range (&Server{}).routes(nil) {
		have = append(have, rt.method+" "+rt.path)
		op := d.get(d.doc, "paths", rt.path, strings.ToLower(rt.method))
		require.NotNil(t, op, "%s %s", rt.method, rt.path)
		security, listed := d.get(op, "security").([]any)
		require.Equal(t, rt.public, listed && len(security) == 0, "%s: public and security differ", rt.path)
	}
	paths, _ := d.doc["paths"].(map[string]any)
	for path, item := range paths {
		operations, _ := item.(map[string]any)
		for method := range operations {
			if method != "parameters" {
				want = append(want, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	require.Equal(t, want, have)
}

func TestEveryReferenceLeadsSomewhere(t *testing.T) {
	t.Parallel()
	d := spec(t)
	text, err := json.Marshal(d.doc)
	require.NoError(t, err)
	refs := regexp.MustCompile(`"\$ref":"#/([^"]+)"`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, refs)
	for _, ref := range refs {
		require.NotNil(t, d.get(d.doc, strings.Split(ref[1], "/")...), ref[1])
	}
}

func TestATaskIsTakenAsItIsDescribed(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{
		`{"kind":"heal","dir":"/srv/p"}`:             true,
		`{"kind":"heal","dir":"/srv/p","unknown":1}`: false,
		`{"dir":"/srv/p"}`:                           false,
		`{"kind":"build","dir":"/srv/p"}`:            false,
		`{"kind":"heal","dir":"p"}`:                  false,
		`{"kind":"heal","dir":"/srv/p","driver":{"pid":1,"start":1,"host":"here"}}`: false,
		`[]`: false,
	} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		require.NoError(t, err)
		err = spec(t).schemas["Task"].Validate(doc)
		require.Equal(t, good, err == nil, "%s: %v", body, err)
		_, err = decodeTask(tasks(t), http.Header{"Content-Type": {mediaJSON}}, []byte(body))
		require.Equal(t, good, err == nil, "%s: %v", body, err)
	}
}

func TestEveryProblemIsDescribed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		nameMalformed, nameUnauthorized, nameOutside, nameForeign, nameNotFound, nameMethod, nameReused, nameEnded,
		nameTooLarge, nameMedia, nameRefused, nameDamaged, nameInternal, nameBus, nameFull, nameBusy,
	} {
		body, err := json.Marshal(refuse(http.StatusTeapot, name, "%s", fmt.Sprint("because of ", name)))
		require.NoError(t, err)
		valid(t, "Problem", body)
	}
}
