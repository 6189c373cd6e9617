package cli

import (
	"bytes"
	"fmt"
	"io"

	"lanjobs/transport"
)

// newPassphrase asks twice on a terminal.
func (c *call) newPassphrase() ([]byte, error) {
	first, err := c.passphrase(fmt.Sprintf("Passphrase (%d characters or more; whoever has it and the file has the cluster): ", transport.MinPassphrase))
	if err != nil || c.flags.String("passphrase-file") != "" {
		return first, err
	}
	second, err := c.passphrase("Again: ")
	if err == nil && !bytes.Equal(first, second) {
		err = &exitError{code: exitUsage, detail: "the two are not the same. Nothing was written."}
	}
	return first, err
}

// passphrase reads one from a file or, unseen, from the terminal. It is never an argument: those show in lists of processes.
func (c *call) passphrase(prompt string) ([]byte, error) {
	var text []byte
	var err error
	switch name := c.flags.String("passphrase-file"); {
	case name == "-":
		text, err = io.ReadAll(io.LimitReader(c.stdin, maxSecret))
	case name != "":
		text, err = c.readSmall(name)
	case !c.inTTY:
		return nil, usage(c.path, "there is no terminal to ask for the passphrase on: --passphrase-file FILE.")
	default:
		fmt.Fprint(c.stderr, prompt)
		text, err = c.secret(c.gone)
		fmt.Fprintln(c.stderr)
	}
	if err != nil {
		return nil, usage(c.path, "the passphrase cannot be read: %v", err)
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	text = bytes.TrimRight(text, "\r")
	if len(text) == 0 {
		return nil, usage(c.path, "the passphrase is empty.")
	}
	return text, nil
}
