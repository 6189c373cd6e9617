package api

import (
	"reflect"
	"strings"
	"sync"
)

// bodyFields are the names that an object has, and what each takes.
type bodyFields struct {
	names []string
	types []reflect.Type
}

var knownFields sync.Map // bodyFields by reflect.Type

// fieldsOf gives the JSON names of a struct.
func fieldsOf(t reflect.Type) ([]string, []reflect.Type) {
	if f, ok := knownFields.Load(t); ok {
		return f.(bodyFields).names, f.(bodyFields).types
	}
	f := bodyFields{types: []reflect.Type{}}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || field.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		f.names, f.types = append(f.names, name), append(f.types, field.Type)
	}
	knownFields.Store(t, f)
	return f.names, f.types
}
