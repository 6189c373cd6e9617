package transport

import (
	"fmt"
	"sync"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"lanjobs/task"
)

// MaxMessageBytes bounds a message between nodes, either way. The largest are answers to a poll: each assignment may bring a
// checkpoint of task.MaxCheckpointBytes, which makes 256 of the worst at once.
const MaxMessageBytes = 64 << 20

// messageDepth bounds how deep lists and maps may be nested in a message; ours have about five levels.
const messageDepth = 32

// messageHandle writes structs as maps with the names of their Go fields. Tags for JSON are left alone, so that the API can
// be changed without changing the wire between nodes.
var messageHandle = sync.OnceValue(func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.TypeInfos = codec.NewTypeInfos([]string{"codec"})
	h.WriteExt = true // strings and byte strings are told apart
	h.MaxDepth = messageDepth
	return h
})

// Encode writes a message as MessagePack. The error is task.ErrTooLarge above MaxMessageBytes.
func Encode(v any) ([]byte, error) {
	var b []byte
	if err := codec.NewEncoderBytes(&b, messageHandle()).Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if len(b) > MaxMessageBytes {
		return nil, tooLarge(fmt.Sprintf("a message of %d bytes (%T)", len(b), v))
	}
	return b, nil
}

// Decode reads one message into v, a pointer to a zero value. Fields that v does not have are skipped. A message with
// anything behind it, or one that is cut short, is task.ErrInvalid.
func Decode(b []byte, v any) error {
	if len(b) > MaxMessageBytes {
		return tooLarge(fmt.Sprintf("a message of %d bytes (%T)", len(b), v))
	}
	d := codec.NewDecoderBytes(b, messageHandle())
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: decode %T: %w", task.ErrInvalid, v, err)
	}
	if n := len(b) - d.NumBytesRead(); n > 0 {
		return fmt.Errorf("%w: decode %T: %d bytes too many", task.ErrInvalid, v, n)
	}
	return nil
}

func tooLarge(what string) error {
	return task.NewProblem(task.ErrTooLarge, fmt.Sprintf("%s is more than %d bytes.", what, MaxMessageBytes), "")
}
