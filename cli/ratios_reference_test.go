//go:build bench

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// disk is what the reference of all that ends in the log is taken on: bare synced bbolt transactions, on the disk that the nodes use.
type disk struct {
	b  *bench
	db *bbolt.DB
	n  int
}

func (b *bench) openDisk() *disk {
	db, err := bbolt.Open(filepath.Join(b.dir, "bare.db"), 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = db.Close() })
	return &disk{b: b, db: db}
}

// commit is one transaction.
func (d *disk) commit() {
	d.n++
	err := d.db.Update(func(tx *bbolt.Tx) error {
		k, err := tx.CreateBucketIfNotExists([]byte("b"))
		if err != nil {
			return err
		}
		return k.Put([]byte(strconv.Itoa(d.n)), make([]byte, 100))
	})
	if err != nil {
		d.b.t.Fatal(err)
	}
}

// rate is how many transactions a second it takes, one after the other.
func (d *disk) rate() float64 {
	n, start := 0, time.Now()
	for ; time.Since(start) < 2*time.Second; n++ {
		d.commit()
	}
	return float64(n) / time.Since(start).Seconds()
}

// beside is the rate around a part, half of it before and half after: a disk may be twice as fast a minute later.
func (d *disk) beside(part func()) float64 {
	before := d.rate()
	part()
	return (before + d.rate()) / 2
}

// bareExecs runs /bin/true as often as it can, one loop per processor.
func (b *bench) bareExecs() float64 {
	const each = 500
	var loops sync.WaitGroup
	start := time.Now()
	for range runtime.NumCPU() {
		loops.Go(func() {
			for range each {
				if err := exec.Command("/bin/true").Run(); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	loops.Wait()
	return each * float64(runtime.NumCPU()) / time.Since(start).Seconds()
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func cpuTime(pid int) time.Duration {
	s, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(s)[strings.LastIndexByte(string(s), ')')+2:])
	u, _ := strconv.Atoi(f[11])
	k, _ := strconv.Atoi(f[12])
	return time.Duration(u+k) * 10 * time.Millisecond
}

func rss(pid int) int {
	s, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(s)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(kb)[0])
			return n / 1024
		}
	}
	return 0
}
