// Command lanjobs runs jobs on the machines of a small network.
package main

import (
	"os"

	"lanjobs/cli"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "0.1.0-dev"

func main() { os.Exit(cli.Main(os.Args, version)) }
