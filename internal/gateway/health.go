package gateway

import (
	"context"
	"net/http"
	"strings"

	"nexuscore.dev/nexus/schemas"
)

type status struct {
	Status string `json:"status"`
}

// health says that the process is up.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	return sendJSON(w, http.StatusOK, status{"ok"})
}

// ready says whether the bus answers and has its streams.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.times.ready)
	defer cancel()
	if _, err := s.cfg.Bus.Usages(ctx); err != nil {
		return busError(err)
	}
	return sendJSON(w, http.StatusOK, status{"ready"})
}

// schema serves the published description of this API and of its messages.
func (s *Server) schema(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	text, err := schemas.Text(name)
	if err != nil {
		return refuse(http.StatusNotFound, nameNotFound, "there is no schema %q", name)
	}
	media := "application/schema+json"
	if strings.HasSuffix(name, ".yaml") {
		media = "application/yaml"
	}
	w.Header().Set("Content-Type", media)
	_, err = w.Write(text) //nolint:gosec // the name only picks one of the embedded files
	return err
}
