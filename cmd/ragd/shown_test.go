package main

import (
	"bytes"
	"strings"
	"testing"

	"ragd/ingest"
	"ragd/internal/answer"
)

// TestTextIsNoOrder: documents, names and answers cannot write to a terminal what only
// this program may.
func TestTextIsNoOrder(t *testing.T) {
	const evil = "a\x1b[2Jb\u009b1mc\rd\u202ee"
	const plain = "a\ufffd[2Jb\ufffd1mc\ufffdd\ufffde"
	for name, print := range map[string]func(*bytes.Buffer){
		"answer": func(b *bytes.Buffer) { (&terminalSink{w: b}).Delta(evil) },
		"sources": func(b *bytes.Buffer) {
			printSources(b, &answer.Result{Sources: answer.Sources{Cited: []answer.Source{{Document: evil, Heading: []string{evil}}}}})
		},
		"search": func(b *bytes.Buffer) {
			printSearch(b, &answer.SearchResult{Results: []answer.Candidate{{Source: answer.Source{Document: evil, Text: evil}}}})
		},
		"report": func(b *bytes.Buffer) {
			printReport(b, ingest.Report{Files: []ingest.FileResult{{Path: evil, Status: ingest.Failed, Reason: evil, Warnings: []string{evil}}}})
		},
	} {
		var b bytes.Buffer
		print(&b)
		if got := b.String(); strings.ContainsAny(got, "\x1b\u009b\r\u202e") || !strings.Contains(got, plain) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := shown("한글\n\ttab ★"); got != "한글\n\ttab ★" {
		t.Errorf("plain text became %q", got)
	}
	if got := shownLine("two\nlines"); got != "two\ufffdlines" {
		t.Errorf("a name of two lines became %q", got)
	}
}
