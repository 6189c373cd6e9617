package runner

import "io/fs"

// ownedByUs: the temporary folder is the user's own on Windows.
func ownedByUs(fs.FileInfo) bool { return true }

// mayExecute: what has a suffix of a program is one.
func mayExecute(string) bool { return true }
