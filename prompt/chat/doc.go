// Package chat renders a model's chat template, a small subset of Jinja, into
// prompt segments that know whether the template or somebody else wrote them.
//
// Every string inside the interpreter is a text: characters with, for each of
// them, where they came from. Joining, trimming, slicing, splitting, replacing
// and changing case keep that, so the rendered prompt falls apart into
// scaffold (written by the template, where control tokens count) and content
// (written by users, documents and models, where they never do), and joined it
// is the text that Jinja2 produces with the settings of the transformers
// library: trim_blocks, lstrip_blocks, loop controls, and its filters and
// functions tojson, raise_exception and strftime_now.
//
// A template is data of unknown origin. It sees the values it is given and
// nothing else: an attribute is a key of a mapping or one of the few methods
// in methods.go (CVE-2024-34359 came from reaching further). The number of
// steps, the bytes built, the depth of calls and the length of the output are
// bounded.
package chat
