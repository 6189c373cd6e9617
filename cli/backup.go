package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func backupGroup() *group {
	passphrase := func() urfave.Flag {
		return &urfave.StringFlag{Name: "passphrase-file", Usage: "read the passphrase from `FILE`, - = standard input"}
	}
	return &group{name: "backup", short: "save and restore what the cluster has agreed on", commands: []*command{
		{name: "save", short: "write a backup file, sealed with a passphrase", takes: takesNode | takesOutput | takesYes, run: runBackupSave,
			long: `It holds jobs, schedules, queues, checkpoints, members and the cluster's key, as of one moment; no output of tasks and no
audit log. Any member that keeps a copy makes it, while the cluster works. From a timer:
  lanjobs backup save --out /backup/home --passphrase-file /etc/lanjobs-passphrase --yes -q`,
			flags: []urfave.Flag{
				&urfave.StringFlag{Name: "out", Usage: "write to `FILE` (CLUSTER-TIME.backup here)"}, passphrase()}},
		{name: "show", operands: "FILE", min: 1, max: 1, short: "what a backup is of, and whether it opens", takes: takesOutput, run: runBackupShow,
			long:  `Without a passphrase, on a terminal or by --passphrase-file, only what its head says.`,
			flags: []urfave.Flag{passphrase(), &urfave.BoolFlag{Name: "check", Usage: "ask for the passphrase, open it and read all of it"}}},
		{name: "restore", operands: "FILE", min: 1, max: 1, short: "make this machine the first of the cluster in a backup", takes: takesDataDir | takesOutput | takesDryRun | takesYes,
			run: runBackupRestore,
			long: `For the worst day: no machine of the cluster is left, or what is left is not wanted. This machine becomes the only voter of the
same cluster, in a new generation; machines that were members come back by themselves if nobody leads them any more, others join
by a token. While a majority of the cluster lives, it is not what you want: it would stop as soon as it hears of this one. To try
a backup: lanjobs backup show FILE --check. See lanjobs help lost-quorum

A backup does not know who was removed after it was made. So its tokens end, its clients log in again (--keep-clients lets them
go on), and a machine that was removed since is named by --without. On a terminal you are shown the machines and asked.`,
			flags: []urfave.Flag{
				passphrase(),
				&urfave.BoolFlag{Name: "replace", Usage: "put the data of the node here aside"},
				&urfave.StringSliceFlag{Name: "without", Usage: "let the machine or client `NAME` of the backup in no more (repeatable)"},
				&urfave.BoolFlag{Name: "keep-clients", Usage: "let the clients of the backup go on without a new login"},
				&urfave.StringFlag{Name: "node-name", Usage: "call this machine `NAME` (its host name); a machine of that name in the backup is replaced"},
				&urfave.StringFlag{Name: "listen", Usage: "`ADDR[:PORT]` of the cluster port (all addresses, " + defaultPort + ")"},
				&urfave.BoolFlag{Name: "foreground", Usage: "stay here and be the node"},
			}},
	}}
}

// savePatience is how long the node may take for the backup of a large state.
const savePatience = 2 * time.Minute

func runBackupSave(ctx context.Context, c *call) error {
	out := c.flags.String("out")
	if out != "" {
		if err := c.mayWrite(c.inDir(out)); err != nil { // before the passphrase is asked for
			return err
		}
	}
	cl, v, err := c.connectHere(ctx)
	if err != nil {
		return err
	}
	plain, err := cl.bytes(ctx, "/v1/backup")
	if err != nil {
		return c.explainDoor(err)
	}
	head, _, err := transport.SplitBackup(plain)
	if err != nil {
		return err
	}
	if out == "" {
		out = fmt.Sprintf("%s-%s.backup", head.Cluster, head.Created.Format("20060102-150405"))
	}
	path := c.inDir(out)
	if err := c.mayWrite(path); err != nil {
		return err
	}
	passphrase, err := c.newPassphrase()
	if err != nil {
		return err
	}
	file, err := transport.SealBackup(plain, passphrase)
	if err != nil {
		return err
	}
	if err := transport.WriteFile(path, file); err != nil {
		return &exitError{code: exitBad, detail: fmt.Sprintf("the backup could not be written: %v", err), cause: err}
	}
	head.Seeds = nil
	if err := c.done(savedView{*head, path, len(file)}, []string{path}, "✓ %q as of entry %d is in %s (%d KiB)", head.Cluster, head.Index, out, (len(file)+1023)/1024); err != nil {
		return err
	}
	if v.Health == "no_leader" {
		c.say("The cluster has no leader: this is what %s knew.", head.Node)
	}
	c.say("It opens with the passphrase only, and nothing can bring that back. Try it: lanjobs backup show %s --check", out)
	return nil
}

// savedView is what backup save prints for programs.
type savedView struct {
	transport.BackupHead
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
}

// mayWrite refuses to write over a file that is there.
func (c *call) mayWrite(path string) error {
	if _, err := os.Lstat(path); err == nil && !c.opt.yes {
		return &exitError{code: exitConflict, detail: fmt.Sprintf("%s exists.", path), hint: "Take another name, or --yes to write over it.", cause: task.ErrConflict}
	}
	return nil
}

// readBackup reads a file and its head.
func (c *call) readBackup(name string) ([]byte, *transport.BackupHead, error) {
	file, err := c.readWhole(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &exitError{code: exitNotFound, detail: fmt.Sprintf("there is no file %s.", name), cause: err}
	}
	if err != nil {
		return nil, nil, usage(c.path, "%v", err)
	}
	head, err := transport.ReadBackupHead(file)
	return file, head, err
}

// openBackup asks for the passphrase and opens a file.
func (c *call) openBackup(name string, file []byte) ([]byte, error) {
	passphrase, err := c.passphrase("Passphrase: ")
	if err != nil {
		return nil, err
	}
	plain, err := transport.OpenBackup(file, passphrase)
	if errors.Is(err, transport.ErrPassphrase) {
		return nil, &exitError{code: exitNotAllowed, detail: fmt.Sprintf("this passphrase does not open %s, or the file is damaged. Nothing was changed.", name), cause: err}
	}
	return plain, err
}

func runBackupShow(_ context.Context, c *call) error {
	file, head, err := c.readBackup(c.args[0])
	if err != nil {
		return err
	}
	if !c.flags.Bool("check") && c.flags.String("passphrase-file") == "" {
		return c.show(answer{value: head, names: []string{head.Cluster}, head: backupLines(head)})
	}
	plain, err := c.openBackup(c.args[0], file)
	if err != nil {
		return err
	}
	v, err := c.nodes.checkBackup(plain)
	if err != nil {
		return err
	}
	v.Seeds = nil
	return c.show(answer{value: v, names: []string{v.Cluster}, head: restoreLines(v)})
}

func backupLines(h *transport.BackupHead) []string {
	return []string{fmt.Sprintf("%s   made %s on %s by lanjobs %s", h.Cluster, h.Created.Local().Format("2006-01-02 15:04:05"), h.Node, h.Version),
		fmt.Sprintf("  entry %d, generation %d, level %d, cluster %s", h.Index, h.Generation, h.Level, h.ClusterID)}
}

// bytes reads an answer that is no JSON.
func (c *client) bytes(ctx context.Context, path string) ([]byte, error) {
	var out []byte
	ctx, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	resp, err := c.open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err = io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", errCut, err)
	}
	return out, nil
}
