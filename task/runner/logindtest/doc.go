// Package logindtest is a system bus for tests on Linux, on which nothing is but as much of systemd's login manager as lanjobs asks
// for: inhibitor locks, and the signal before and after a sleep. It speaks the protocol over a unix socket, with the files that are
// the locks, so that the client's library is tested too. It must not know lanjobs.
package logindtest
