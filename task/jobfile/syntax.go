package jobfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"lanjobs/task"
)

// maxDepth bounds lists and maps inside each other. A job file needs 5.
const maxDepth = 100

const emptyHint = "the smallest one is two lines:  name: hello  and  run: echo hi"

// tree parses the text to the node of its only document, nil after a fault. Size comes first, so that nothing bigger
// than a job file may be is ever parsed.
func (l *loader) tree(data []byte) *yaml.Node {
	if len(data) > task.MaxJobFileBytes {
		l.whole("", fmt.Sprintf("the file is larger than a job file may be: %d KiB", len(data)>>10),
			fmt.Sprintf("at most %d KiB; long lists go into a file of their own: shards: {lines: FILE}", task.MaxJobFileBytes>>10))
		return nil
	}
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		l.whole("", "the file is UTF-16, not UTF-8", "save it as UTF-8 (PowerShell: Set-Content -Encoding utf8)")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !l.readable(data) {
		return nil
	}
	data = joinSurrogates(data)
	l.lines = splitLines(string(data))
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		l.whole("", err.Error(), "")
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		l.syntax(err)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		l.fault(place{second.Line, 1, 3}, "", "a second document begins here; a job file holds one", "put each job into a file of its own")
		return nil
	case !errors.Is(err, io.EOF):
		l.syntax(err)
		return nil
	}
	if len(doc.Content) != 1 || isNull(doc.Content[0]) {
		l.whole("", "the file is empty", emptyHint)
		return nil
	}
	return doc.Content[0]
}

// readable finds what the library would refuse without telling the place.
func (l *loader) readable(data []byte) bool {
	line, column := 1, 1
	for rest := data; len(rest) > 0; column++ {
		r, size := utf8.DecodeRune(rest)
		message := ""
		switch {
		case r == utf8.RuneError && size == 1:
			message = fmt.Sprintf("the file is not UTF-8 (byte 0x%02X here)", rest[0])
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xFFFE, r == 0xFFFF:
			message = fmt.Sprintf("control character U+%04X here", r)
		}
		if message != "" {
			l.lines = splitLines(strings.ToValidUTF8(string(data), "\uFFFD"))
			l.fault(place{line, column, 1}, "", message, "")
			return false
		}
		if r == '\n' {
			line, column = line+1, 0
		}
		rest = rest[size:]
	}
	return true
}

// splitLines splits at all line ends that YAML 1.1 and so the library counts.
func splitLines(s string) []string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s)
	return strings.Split(s, "\n")
}

// joinSurrogates turns the pairs of escapes that JSON writes for a letter beyond U+FFFF ("\ud83d\ude00") into the
// letter: many JSON writers make them, and no YAML reader knows them.
func joinSurrogates(data []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !bytes.Contains(data, []byte(`\u`)) || !json.Valid(data) {
		return data
	}
	var out bytes.Buffer
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			out.WriteByte(data[i])
			i++
			continue
		}
		if r := utf16.DecodeRune(escape(data[i:]), escape(data[min(i+6, len(data)):])); r != utf8.RuneError {
			out.WriteRune(r)
			i += 12
			continue
		}
		out.Write(data[i : i+2]) // valid JSON: a backslash is never last
		i += 2
	}
	return out.Bytes()
}

// escape reads \uXXXX; -1 is none.
func escape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	if _, err := fmt.Sscanf(string(b[2:6]), "%04x", &r); err != nil {
		return -1
	}
	return r
}

// syntax reports a fault that the library found. Its messages name the parser's state; the common ones get plain words.
func (l *loader) syntax(err error) {
	var e *yaml.LoadError
	if !errors.As(err, &e) || e.Mark.Line == 0 {
		if strings.Contains(err.Error(), "no documents") || errors.Is(err, io.EOF) {
			l.whole("", "the file is empty", emptyHint)
			return
		}
		l.whole("", "not YAML: "+err.Error(), "")
		return
	}
	at, message, suggestion := place{e.Mark.Line, e.Mark.Column, 1}, e.Message, ""
	line := l.line(at.line)
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	has := func(s string) bool { return strings.Contains(e.Message, s) }
	switch {
	case strings.Contains(indent, "\t"):
		at.column, message, suggestion = 1+strings.IndexByte(indent, '\t'), "a tab in the indentation; YAML indents with spaces only", "write spaces instead of the tab"
	case has("mapping values are not allowed"):
		message, suggestion = `unexpected ":" here`, `a text with ": " in it needs quotes around it; a new key needs a line of its own, indented like its neighbours`
	case has("could not find expected ':'"):
		at = place{e.ContextMark.Line, e.ContextMark.Column, 1}
		message, suggestion = `a key without ":" here`, `write "key: value"; further lines of a text must be indented more than its key`
		if key, value, ok := strings.Cut(strings.TrimSpace(l.line(at.line)), ":"); ok && value != "" && value[0] != ' ' && validLabel(key) {
			message, suggestion = `no blank after the ":" here`, fmt.Sprintf("write %s: %s", key, value)
		}
	case has("did not find expected key"):
		message, suggestion = "this line does not fit the ones above", "indent the keys of one map alike"
		if before := []rune(line)[:min(max(at.column-1, 0), utf8.RuneCountInString(line))]; strings.HasSuffix(string(before), "'") || strings.HasSuffix(string(before), `"`) {
			message, suggestion = "the text in quotes has ended before this", `inside '…' write '' for one ', inside "…" write \" for one "; or use a block: a | and the text below it, indented`
		}
	case has("unexpected end of stream"):
		at = place{e.ContextMark.Line, e.ContextMark.Column, 1}
		message, suggestion = "this quote is never closed", "add the same sign where the text ends"
	case has("did not find expected ',' or"):
		message = fmt.Sprintf("the list or map that was opened at line %d is not closed, or a comma is missing", e.ContextMark.Line)
		suggestion = "a text with , [ ] { } in it needs quotes around it"
	case has("did not find expected node content"):
		message, suggestion = "something is missing here: a value, or the end of a list or map", "write the value, or close the list with ] and the map with }"
	case has("did not find expected alphabetic or numeric character"):
		at = place{e.ContextMark.Line, e.ContextMark.Column, 1}
		message, suggestion = "a text cannot begin like this: * and & stand before the name of an anchor", `put the text in quotes, as in cron: "*/5 * * * *"`
	case has("cannot start any token"):
		message, suggestion = "a text cannot begin like this", "put the text in quotes"
	case has("unknown anchor"):
		message, suggestion = strings.ReplaceAll(e.Message, "'", `"`), "put the text in quotes if the * is meant; an anchor (&name) must stand before its use"
	case has("exceeded max depth"):
		message = fmt.Sprintf("lists and maps more than %d deep inside each other", maxDepth)
	case has("invalid Unicode character escape"):
		message = "this escape is not a character"
	case has("incompatible YAML document"):
		message, suggestion = "this YAML version is not known", "remove the line %YAML"
	}
	l.fault(at, "", message, suggestion)
}
