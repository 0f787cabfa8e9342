// Package webui is the page /debug/latency: where the milliseconds and the
// tokens of the last requests went. It is plain HTML, CSS and JavaScript without
// any library, embedded in the binary, and asks nothing of another host.
package webui

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"ragd/telemetry"
)

//go:embed latency
var files embed.FS

// securityPolicy lets the page load its own files and nothing else: what slipped
// through escaping could neither run nor send.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// languages are those the page speaks; the first is the default.
var languages = []string{"en", "ko"}

// Latency serves the page and its assets below prefix. They hold no data, so
// they need no key.
func Latency(prefix string) http.Handler {
	assets, err := fs.Sub(files, "latency")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	static := http.StripPrefix(prefix, http.FileServerFS(assets))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", securityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		if strings.TrimSuffix(r.URL.Path, "/") == prefix {
			servePage(w, r, assets)
			return
		}
		static.ServeHTTP(w, r)
	})
}

// servePage writes the page in the language the browser asks for.
func servePage(w http.ResponseWriter, r *http.Request, assets fs.FS) {
	page, err := fs.ReadFile(assets, "index.html")
	if err != nil {
		http.Error(w, "the page is missing", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Accept-Language")
	lang := preferred(r.Header.Get("Accept-Language"))
	_, _ = w.Write([]byte(strings.Replace(string(page), `<html lang="en">`, `<html lang="`+lang+`">`, 1)))
}

var matcher = language.NewMatcher([]language.Tag{language.English, language.Korean})

// preferred picks a language of the page by an Accept-Language header (RFC 9110 §12.5.4).
func preferred(header string) string {
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return languages[0]
	}
	_, i, _ := matcher.Match(tags...)
	return languages[i]
}

// Source is what the page shows; *telemetry.Telemetry is one.
type Source interface {
	Recent(seq uint64, limit int) []telemetry.Record
	Active() int
	Started() time.Time
	RecordsContent() bool
}

// maxRecords bounds one answer of the data endpoint; the page asks again.
const maxRecords = 2000

type dataBody struct {
	// Started names the process: records of another start count from 1 again.
	Started time.Time `json:"started"`
	Active  int       `json:"active"`
	Content bool      `json:"content"`
	// More says that records after the last one here are waiting.
	More    bool               `json:"more"`
	Records []telemetry.Record `json:"records"`
}

// Data serves the finished requests after ?since=SEQ, oldest first, as JSON.
func Data(src Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var since uint64
		if v := r.URL.Query().Get("since"); v != "" {
			var err error
			if since, err = strconv.ParseUint(v, 10, 64); err != nil {
				http.Error(w, "since: a sequence number is wanted", http.StatusBadRequest)
				return
			}
		}
		records := src.Recent(since, maxRecords)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// A failed write means that the reader is gone.
		_ = json.NewEncoder(w).Encode(dataBody{
			Started: src.Started(), Active: src.Active(), Content: src.RecordsContent(),
			More: len(records) == maxRecords, Records: records,
		})
	})
}
