package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// Model is one model in use, as /v1/models lists it.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // when this process began, in Unix seconds
	OwnedBy string `json:"owned_by"`
	Role    string `json:"role"`
}

// The roles of models.
const (
	RoleAnswers    = "answers"
	RoleRetrieval  = "answers from documents"
	RoleEmbeddings = "embeddings"
	RoleRerank     = "rerank"
)

// retrievalModel is the name that answers from documents: of the default
// collection, or, with a slash behind it, of another.
const retrievalModel = "ragd"

// retrieval is the collection that a model's name asks for.
func retrieval(model string) (collection string, ok bool) {
	if model == retrievalModel {
		return defaultCollection, true
	}
	collection, ok = strings.CutPrefix(model, retrievalModel+"/")
	return collection, ok && collection != ""
}

type modelList struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

func (s *server) models(c *gin.Context) {
	list, err := s.listModels(c.Request.Context())
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, modelList{"list", list})
}

// listModels lists the models, then the caller's collections as models that
// answer from them.
func (s *server) listModels(ctx context.Context) ([]Model, error) {
	list := make([]Model, 0, len(s.Models)+1)
	for _, m := range s.Models {
		list = append(list, s.describe(m.ID, m.Role))
	}
	list = append(list, s.describe(retrievalModel, RoleRetrieval))
	collections, err := s.Library.Collections(ctx)
	for _, col := range collections {
		list = append(list, s.describe(retrievalModel+"/"+col.Name, RoleRetrieval))
	}
	return list, err
}

func (s *server) describe(id, role string) Model {
	return Model{ID: id, Object: "model", Created: s.started.Unix(), OwnedBy: "ragd", Role: role}
}

func (s *server) model(c *gin.Context) {
	id := strings.TrimPrefix(c.Param("id"), "/")
	list, err := s.listModels(c.Request.Context())
	if err != nil {
		s.fail(c, err, "")
		return
	}
	for _, m := range list {
		if m.ID == id {
			c.JSON(http.StatusOK, m)
			return
		}
	}
	s.fail(c, noModel(id), "")
}

func noModel(id string) error {
	return &answer.Error{Code: modelNotFound, Field: "model", Message: fmt.Sprintf("model: there is no model %q; GET /v1/models lists them", id)}
}

// checkModel refuses a name that no model of the role has; an empty one is the
// model of that role.
func (s *server) checkModel(id, role string) error {
	for _, m := range s.Models {
		if m.Role == role && (id == "" || id == m.ID) {
			return nil
		}
	}
	return noModel(id)
}
