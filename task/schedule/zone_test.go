package schedule

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// change is the moment of a home-made zone from which an offset holds.
type change struct {
	at     time.Time
	offset time.Duration
}

// homeMade makes a zone that begins with an offset; its file is of the first version of TZif.
func homeMade(t testing.TB, name string, first time.Duration, changes ...change) *time.Location {
	t.Helper()
	be := binary.BigEndian
	var times, indexes, types []byte
	types = append(be.AppendUint32(types, uint32(int32(first/time.Second))), 0, 0)
	for i, c := range changes {
		times = be.AppendUint32(times, uint32(int32(c.at.Unix())))
		indexes = append(indexes, byte(i+1))
		types = append(be.AppendUint32(types, uint32(int32(c.offset/time.Second))), 0, 0)
	}
	data := append([]byte("TZif\x00"), make([]byte, 15)...)
	for _, n := range []int{0, 0, 0, len(changes), len(changes) + 1, 4} {
		data = be.AppendUint32(data, uint32(n))
	}
	data = slices.Concat(data, times, indexes, types, []byte("XXX\x00"))
	zone, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func utc(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		panic(err)
	}
	return t
}

// C13: home-made zones that jump by an hour and by five minutes.
func TestHomeMadeZones(t *testing.T) {
	change0 := utc("2026-11-29 13:11")
	gap := homeMade(t, "Test/Gap", time.Hour, change{change0, 2 * time.Hour})
	back := homeMade(t, "Test/Back", 2*time.Hour, change{change0, 2*time.Hour - 5*time.Minute})
	for _, zone := range []*time.Location{gap, back} {
		w := walkThrough(zone, utc("2026-11-25 00:00"), utc("2026-12-03 00:00"))
		for _, expr := range slices.Concat(sparse, dense, []string{"30 14 * * *", "8 15 * * *", "10,12 14,15 * * *"}) {
			compare(t, w, expr, 3*1440, len(w.local))
		}
	}
	o, _ := calendarOf(t, "30 14 * * *", gap).Next(utc("2026-11-29 00:00"))
	if got, want := shown(o), "2026-11-29T14:30[Test/Gap] 2026-11-29T13:11:00Z"; got != want {
		t.Errorf("in the middle of the missing hour: %s, not %s", got, want)
	}
	got := calendarOf(t, "8 15 * * *", back).Between(utc("2026-11-29 00:00"), utc("2026-11-30 00:00"), 10)
	if len(got) != 1 || !got[0].Due.Equal(utc("2026-11-29 13:08")) {
		t.Errorf("a time that comes twice: %v", got)
	}
}

// Zones that change in ways that no government has thought of yet.
func TestRandomZones(t *testing.T) {
	from := utc("2026-03-01 00:00")
	offset := func(r *rand.Rand) time.Duration { return time.Duration(r.IntN(52*60)-26*60) * time.Minute }
	for seed := range seeds(40) {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		var changes []change
		for at, n := from.Add(96*time.Hour), r.IntN(6); n > 0; n-- {
			at = at.Add(time.Duration(1+r.IntN([]int{30, 300, 3000}[r.IntN(3)])) * time.Minute)
			o := offset(r)
			if len(changes) > 0 && r.IntN(2) == 0 {
				o = changes[len(changes)-1].offset + time.Duration(r.IntN(240)-120)*time.Minute
			}
			changes = append(changes, change{at, min(max(o, -26*time.Hour), 26*time.Hour)})
		}
		w := walkThrough(homeMade(t, fmt.Sprint("Seed", seed), offset(r), changes...), from, from.Add(20*24*time.Hour))
		for range 6 {
			all := slices.Concat(sparse, dense)
			compare(t, w, all[r.IntN(len(all))], 3*1440, len(w.local))
		}
		compare(t, w, fmt.Sprintf("%d,%d %d-23/%d * * *", r.IntN(60), r.IntN(60), r.IntN(12), 1+r.IntN(5)), 3*1440, len(w.local))
		if t.Failed() {
			t.Fatalf("seed %d, changes %v", seed, changes)
		}
	}
}

// A gap that ends within a minute, as before zones had whole minutes.
func TestOddSeconds(t *testing.T) {
	zone := homeMade(t, "Test/Odd", -90*time.Second, change{utc("2026-03-01 12:00"), 3*time.Hour + 30*time.Second})
	o, _ := calendarOf(t, "30 13 * * *", zone).Next(utc("2026-03-01 00:00"))
	if got, want := shown(o), "2026-03-01T13:30[Test/Odd] 2026-03-01T12:00:00Z"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	o, _ = calendarOf(t, "1 15 * * *", zone).Next(utc("2026-03-01 00:00"))
	if got, want := shown(o), "2026-03-01T15:01[Test/Odd] 2026-03-01T12:00:30Z"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestZoneList(t *testing.T) {
	names := strings.Fields(zoneList)
	if !slices.IsSorted(names) || len(names) < 500 {
		t.Errorf("%d names", len(names))
	}
	for _, name := range names {
		load(t, name)
	}
	root, _ := exec.Command("go", "env", "GOROOT").Output()
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skip("no zone data beside the compiler to compare with: ", err)
	}
	defer archive.Close()
	var want []string
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			want = append(want, f.Name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("zones.txt has %d names, the built-in zone data %d: write them anew", len(names), len(want))
	}
}

// Y15, with what to write instead.
func TestZonesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"Europe/Pariss": `did you mean "Europe/Paris"?`, "europe/berlin": "write Europe/Berlin", "utc": "write UTC", "PST": "write America/Los_Angeles",
		"UTC+8": "Etc/GMT-8", "+08:00": "Etc/GMT-8", "-0500": "Etc/GMT+5", "+05:30": "Asia/Kolkata", "Asia/Beijing": "write Asia/Shanghai",
		"": "leave timezone out", "Local": "write its name", "../../x": "Europe/Berlin", "/etc/passwd": "Europe/Berlin", "Berlin": "write Europe/Berlin",
		"New_York": "write America/New_York", "posix/Europe/Berlin": "write Europe/Berlin", "Europe": "continent and city", "Europe/Berlin\x00": "Europe/Berlin",
		strings.Repeat("x", 1000): "Europe/Berlin", "🕒": "Europe/Berlin",
	} {
		zone, message, suggestion := loadZone(name)
		if zone != nil || message == "" || !strings.Contains(suggestion, want) {
			t.Errorf("%q: %v, %s: %s (want %s)", name, zone, message, suggestion, want)
		}
	}
	for _, name := range []string{"UTC", "Etc/GMT+8", "EST5EDT", "America/Argentina/Buenos_Aires", "Asia/Ho_Chi_Minh"} {
		load(t, name)
	}
}
