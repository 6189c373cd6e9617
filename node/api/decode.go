package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"lanjobs/task"
)

// decode reads a JSON body. An unknown field is refused: it asks for something that would not be done. No body is the zero value.
func (q *request) decode(v any) error {
	if len(bytes.TrimSpace(q.body)) == 0 {
		return nil
	}
	if kind := mediaType(q.http.Header.Get("Content-Type")); kind != typeJSON && kind != "" {
		return invalid("the body's type is "+shown(kind)+", not "+typeJSON, "")
	}
	return decodeJSON(q.body, v)
}

// noFields checks the body of a request that says all with its path: what a body asks for beyond that would not be done.
func noFields(q *request) error { return q.decode(&struct{}{}) }

// mediaType is what a Content-Type says of the body, without its parameters, whatever is wrong with those.
func mediaType(header string) string {
	kind, _, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return kind
}

// decodeJSON reads JSON as it is written. encoding/json would take a name in other letters, the last of two equal names, null for
// anything and "?" for broken text: a slip of the sender would be acknowledged as something that nobody asked for. A field that is
// null is as if it were left out.
func decodeJSON(body []byte, v any) error {
	if !utf8.Valid(body) {
		return unreadable("it is not UTF-8 text", "")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return unreadable(faultOf(body, err), "")
	}
	w := jsonWalk{text: body}
	return w.value(reflect.TypeOf(v).Elem(), "the body")
}

func unreadable(why, hint string) error { return invalid("the body cannot be read: "+why, hint) }

// faultOf says what encoding/json found in the words of whoever wrote the body.
func faultOf(body []byte, err error) string {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := body[:min(max(s.Offset-1, 0), int64(len(body)))]
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		place := fmt.Sprintf("%d:%d: ", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
		switch text := s.Error(); {
		case strings.HasPrefix(text, "unexpected end"):
			return place + "the JSON ends too soon"
		case strings.HasSuffix(text, "after top-level value"):
			return place + "something follows the JSON value"
		default:
			return place + text
		}
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := t.Field
		if what == "" {
			what = "the body"
		}
		is := jsonKinds[t.Value]
		if is == "" {
			is = strings.TrimPrefix(t.Value, "number ")
		}
		return what + " is " + is + ", not " + goKind(t.Type)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

var jsonKinds = map[string]string{"array": "a list", "object": "an object", "string": "a text", "bool": "true or false", "number": "a number"}

// goKind is what a field takes.
func goKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number, as 5"
}

// jsonWalk goes through JSON that is known to be valid beside the type that it was read into.
type jsonWalk struct {
	text []byte
	at   int
}

// next skips white space and gives the byte that follows.
func (w *jsonWalk) next() byte {
	for strings.IndexByte(" \t\r\n", w.text[w.at]) >= 0 {
		w.at++
	}
	return w.text[w.at]
}

// raw is JSON that is read later, by itself.
var raw = reflect.TypeFor[json.RawMessage]()

// value checks the value that comes next; in is what holds it.
func (w *jsonWalk) value(t reflect.Type, in string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch w.next() {
	case '{':
		return w.object(t)
	case '[':
		return w.list(t, in)
	case '"':
		s := w.skipString()
		if t != raw && !wholeText(s) {
			return unreadable(in+" has half a character (a \\u escape without its other half)", "")
		}
	case 'n':
		if in == "the body" {
			return unreadable("it is null, not an object", "")
		}
		w.skipWord()
	default:
		w.skipWord()
	}
	return nil
}

func (w *jsonWalk) object(t reflect.Type) error {
	var names []string
	var types []reflect.Type
	if t.Kind() == reflect.Struct {
		names, types = fieldsOf(t)
	}
	var seen uint64 // fields by number; a test holds that there are no more
	for w.at++; w.next() != '}'; {
		if w.text[w.at] == ',' {
			w.at++
			w.next()
		}
		name, inside := w.skipString(), raw
		if types != nil {
			i := indexOf(names, name)
			switch {
			case i < 0:
				return unknownField(names, name)
			case seen&(1<<i) != 0:
				return unreadable(names[i]+" is given twice", "")
			}
			seen, inside = seen|1<<i, types[i]
		}
		w.next()
		w.at++ // the colon
		if err := w.value(inside, string(bytes.Trim(name, `"`))); err != nil {
			return err
		}
	}
	w.at++
	return nil
}

func (w *jsonWalk) list(t reflect.Type, in string) error {
	inside := raw
	if t != raw && t.Kind() == reflect.Slice {
		inside = t.Elem()
	}
	for w.at++; w.next() != ']'; {
		if w.text[w.at] == ',' {
			w.at++
			w.next()
		}
		if inside != raw && w.text[w.at] == 'n' {
			return unreadable(in+" has null in its list", "")
		}
		if err := w.value(inside, in); err != nil {
			return err
		}
	}
	w.at++
	return nil
}

// skipString gives the string that comes next, as it is written.
func (w *jsonWalk) skipString() []byte {
	from := w.at
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.text[from:w.at]
}

// skipWord passes a number, true, false or null.
func (w *jsonWalk) skipWord() {
	for w.at < len(w.text) && strings.IndexByte(",]} \t\r\n", w.text[w.at]) < 0 {
		w.at++
	}
}

// wholeText tells whether no escape in a string is one half of a character.
func wholeText(s []byte) bool {
	half := rune(0)
	for i := 0; i < len(s); i++ {
		var r rune
		if s[i] == '\\' {
			if i++; s[i] == 'u' {
				n, _ := strconv.ParseUint(string(s[i+1:i+5]), 16, 16)
				r, i = rune(n), i+4
			}
		}
		switch {
		case half != 0 && utf16.DecodeRune(half, r) == utf8.RuneError:
			return false
		case half != 0:
			half = 0
		case utf16.IsSurrogate(r):
			half = r
		}
	}
	return half == 0
}

func indexOf(names []string, written []byte) int {
	var name string
	if bytes.IndexByte(written, '\\') < 0 {
		name = string(written[1 : len(written)-1])
	} else if json.Unmarshal(written, &name) != nil {
		return -1
	}
	for i, known := range names {
		if known == name {
			return i
		}
	}
	return -1
}

func unknownField(names []string, written []byte) error {
	var name string
	_ = json.Unmarshal(written, &name)
	hint := "A field that is unknown here may need a newer version of lanjobs on the leader."
	if near := task.Nearest(names, name); near != "" {
		hint = fmt.Sprintf("Did you mean %q?", near)
	}
	return unreadable("unknown field "+shown(name), hint)
}
