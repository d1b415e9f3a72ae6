package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// route is one operation of schemas/openapi.yaml.
type route struct {
	method, path string
	// public routes need no token.
	public bool
	handle func(http.ResponseWriter, *http.Request) error
}

// routes is the whole API. Streams end when stopping is closed.
func (s *Server) routes(stopping <-chan struct{}) []route {
	return []route{
		{"POST", "/v1/tasks", false, s.postTask},
		{"GET", "/v1/runs", false, s.listRuns},
		{"GET", "/v1/runs/{id}", false, s.getRun},
		{"GET", "/v1/runs/{id}/events", false, s.streamEvents(stopping)},
		{"POST", "/v1/runs/{id}/cancel", false, s.cancelRun},
		{"GET", "/healthz", true, s.health},
		{"GET", "/readyz", true, s.ready},
		{"GET", "/schemas/{name}", true, s.schema},
	}
}

// handler is what every request passes: log, panics, guard, route.
func (s *Server) handler(stopping <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, rt := range s.routes(stopping) {
		mux.Handle(rt.method+" "+rt.path, s.route(rt))
		methods[rt.path] = append(methods[rt.path], rt.method)
	}
	for path, allowed := range methods {
		mux.Handle(path, s.route(route{handle: wrongMethod(allowed)}))
	}
	mux.Handle("/", s.route(route{handle: func(_ http.ResponseWriter, r *http.Request) error {
		return refuse(http.StatusNotFound, nameNotFound, "there is nothing at %s; GET /schemas/openapi.yaml lists what there is", r.URL.Path)
	}}))
	return s.logged(s.recovered(s.local(mux)))
}

// route answers a handler's error as a problem.
func (s *Server) route(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := error(nil)
		if !rt.public {
			err = s.authorise(r)
		}
		if err == nil {
			err = rt.handle(w, r)
		}
		s.fail(w, err)
	})
}

// fail tells the caller what went wrong, unless the answer has begun; the log
// gets the cause.
func (s *Server) fail(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	rec, ok := w.(*recorder)
	if ok {
		rec.cause = err
	}
	if ok && rec.status != 0 {
		return
	}
	var p *problem
	if !errors.As(err, &p) {
		p = internal(err)
	}
	if err := p.write(w); err != nil && ok {
		rec.cause = errors.Join(rec.cause, err)
	}
}

func wrongMethod(allowed []string) func(http.ResponseWriter, *http.Request) error {
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(slices.Clone(allowed), http.MethodHead)
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return refuse(http.StatusMethodNotAllowed, nameMethod, "%s is not possible here, only %s", r.Method, strings.Join(allowed, ", "))
	}
}
