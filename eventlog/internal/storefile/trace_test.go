package storefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

var errDisk = errors.New("the disk says no")

// walChunk is a chunk of a write-ahead log, written from the comment of the format alone.
// form is 0 for the oldest, 1 for that with a log number, 2 for that with synced; part is 1
// for a whole record, 2 for its first chunk, 3 for one in the middle, 4 for the last.
func walChunk(form, part, number int, synced uint64, payload []byte) []byte {
	body := []byte{byte(4*form + part)}
	if form > 0 {
		body = binary.LittleEndian.AppendUint32(body, uint32(number))
	}
	if form > 1 {
		body = binary.LittleEndian.AppendUint64(body, synced)
	}
	body = append(body, payload...)
	c := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	b := binary.LittleEndian.AppendUint32(nil, (c>>15|c<<17)+0xa282ead8)
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(payload))), body...)
}

// drawnWAL draws a file of the write-ahead log, of blocks of 32 KiB, with a few odd chunks,
// bytes that are lost and bytes of an older file behind the end.
func drawnWAL(d *golden.Dice, number int) []byte {
	var b []byte
	form := golden.Pick(d, 2, 2, 2, 1, 0)
	record := func() {
		payload := bytes.Repeat([]byte{byte('a' + d.N(26))}, golden.Pick(d, 0, 1, 30, 500, 9000, 40_000))
		for part := 1; ; part = 3 {
			room := walBlock - len(b)%walBlock
			header := []int{7, 11, 19}[form]
			if room < header {
				b = append(b, make([]byte, room)...)
				continue
			}
			n := min(len(payload), room-header)
			kind := part
			switch {
			case part == 1 && n < len(payload):
				kind = 2
			case part == 3 && n == len(payload):
				kind = 4
			}
			of := number
			if d.Once(60) {
				of += 1 - 2*d.N(2)
			}
			if d.Once(60) {
				kind = 1 + d.N(4)
			}
			synced := uint64(len(b))
			if d.Once(20) {
				synced = golden.Pick(d, uint64(len(b))+900, 1<<62, 1<<63)
			}
			b = append(b, walChunk(form, kind, of, synced, payload[:n])...)
			if payload = payload[n:]; len(payload) == 0 && kind != 2 {
				return
			}
		}
	}
	for range 1 + d.N(12) {
		record()
	}
	switch d.N(5) {
	case 0: // the mark of a finished file
		mark := binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0, 0, 0, 5}, uint32(number+golden.Pick(d, 1, 1, 1, 0, 2)))
		b = append(b, mark...)
	case 1:
		b = append(b, make([]byte, d.N(40_000))...)
	case 2:
		b = b[:d.N(len(b))]
	}
	for range d.N(3) {
		if len(b) == 0 {
			break
		}
		at := d.N(len(b))
		switch d.N(4) {
		case 0:
			b[at] ^= 1 << d.N(8)
		case 1:
			clear(b[at:min(len(b), at+d.N(300))])
		case 2:
			record()
		case 3:
			b = slices.Delete(b, at, min(len(b), at+1+d.N(50)))
		}
	}
	return b
}

// Files of the write-ahead log, in all formats, whole and damaged, are scanned as they were,
// and a visitor may refuse any of their records.
func TestRecordedScans(t *testing.T) {
	golden.Trace(t, "testdata/scans.txt", func(step func(name, text string)) {
		for seed := range 250 {
			d := golden.NewDice(uint64(seed))
			b := drawnWAL(d, 7)
			var out strings.Builder
			for refuse := range 3 {
				records := 0
				scan, err := ScanWAL(bytes.NewReader(b), 7, func(offset int64, payload []byte, intact bool) bool {
					fmt.Fprintf(&out, "%d %08x %d %v\n", offset, crc32.ChecksumIEEE(payload), len(payload), intact)
					records++
					return refuse == 0 || records != refuse*2
				})
				fmt.Fprintf(&out, "%d bytes: %+v %v %v\n", len(b), scan, scan.Rotten(), err)
			}
			step(fmt.Sprint(seed), out.String())
		}
	})
	whole := slices.Concat(walChunk(2, 1, 7, 0, []byte("a")), make([]byte, walBlock))
	for _, n := range []int{0, 19, 20, walBlock, walBlock + 3} {
		scan, err := ScanWAL(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(errDisk)), 7, func(int64, []byte, bool) bool { return true })
		require.ErrorIs(t, err, errDisk, "%d bytes", n)
		assert.Equal(t, n >= 20, scan.End == 20, "%d bytes: the bytes in front of the error are scanned", n)
	}
}

// damagedBytes changes a few bytes of a file, and makes the checksum fit again if sum is not
// nil.
func damagedBytes(d *golden.Dice, b []byte, sum func([]byte) []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + d.N(3) {
		at := d.N(len(b))
		switch d.N(7) {
		case 0:
			b[at] ^= 1 << d.N(8)
		case 1:
			b = b[:at+1]
		case 2:
			b = slices.Delete(b, at, min(len(b), at+1+d.N(20)))
		case 3:
			b = slices.Insert(b, at, []byte(golden.Pick(d, "\n", " ", "0", "id ", "files none\n", "version 1\n", "log 000017.log - -", " table 000019.sst", "x"))...)
		case 4, 5:
			lines := bytes.SplitAfter(b, []byte("\n"))
			i, j := d.N(len(lines)), d.N(len(lines))
			b = slices.Concat(slices.Concat(lines[:i]...), lines[j], slices.Concat(lines[i:]...))
		case 6:
			b[at] = golden.Pick[byte](d, '0', '9', 'f', ' ', '\n', 0)
		}
		if len(b) == 0 {
			return b
		}
	}
	if sum != nil && !d.Once(3) {
		b = sum(b)
	}
	return b
}

// SAJOU, FILES and HEADS with a few changed bytes are read, or refused with the same words.
func TestRecordedFiles(t *testing.T) {
	golden.Trace(t, "testdata/files.txt", func(step func(name, text string)) {
		for seed := range 300 {
			d := golden.NewDice(uint64(seed))
			var out strings.Builder
			b := FormatContents(exampleID, d.Once(2))
			for range 10 {
				b := damagedBytes(d, b, func(b []byte) []byte {
					if i := bytes.LastIndex(b, []byte("sum ")); i > 0 {
						return fmt.Appendf(bytes.Clone(b[:i]), "sum %x\n", sha256.Sum256(b[:i]))
					}
					return b
				})
				r, err := parseFormatFile(b)
				fmt.Fprintf(&out, "%q %+v %v %v %v\n", b, r, err, errors.Is(err, chain.ErrVersion), errors.Is(err, chain.ErrCorrupt))
			}
			b = slices.Concat(filesExample(), []byte(lineOf("table 000019.sst")), []byte(lineOf("")))
			for range 10 {
				b := damagedBytes(d, b, func(b []byte) []byte {
					lines := strings.Split(string(b), "\n")
					for i := 1; i < len(lines); i++ {
						if len(lines[i]) > 9 && !d.Once(8) {
							lines[i] = strings.TrimSuffix(lineOf(lines[i][9:]), "\n")
						}
					}
					return []byte(strings.Join(lines, "\n"))
				})
				n, err := parseFileList(b)
				fmt.Fprintf(&out, "%q %+v %s %v\n", b, n, n.Line(), err)
			}
			heads := HeadsHeader()
			for i := range 1 + d.N(4) {
				heads = AppendHeadsCell(heads, uint32(d.N(4)), strings.Repeat("n", golden.Pick(d, 0, 1, 118, 119, 120, 255)), chain.Head{Seq: chain.Seq(d.N(9)), Hash: chain.Genesis(fmt.Sprint(i))})
				if d.Once(2) {
					PutHeadsSlot(heads[len(heads)-64:], uint32(d.N(4)), chain.Head{Seq: chain.Seq(d.N(9))})
				}
			}
			for range 10 {
				b := damagedBytes(d, heads, nil)
				damage, err := decodeHeads(bytes.NewReader(b), func(i int, n NotedHead) { fmt.Fprintln(&out, i, n) })
				fmt.Fprintln(&out, damage, err)
			}
			step(fmt.Sprint(seed), out.String())
		}
	})
}

// Directories with drawn names of files are classified and checked as they were.
func TestRecordedDirectories(t *testing.T) {
	const other = "ffeeddccbbaa99887766554433221100"
	manifest := func(files *FileList, name, contents string) {
		files.Manifests[name] = Extent{int64(len(contents)), crc32.Checksum([]byte(contents), castagnoli)}
	}
	golden.Trace(t, "testdata/directories.txt", func(step func(name, text string)) {
		for seed := range 600 {
			d := golden.NewDice(uint64(seed))
			mem := vfs.NewMem()
			require.NoError(t, mem.MkdirAll("store", 0o755))
			files := NewFileList(exampleID)
			files.Iteration, files.Current = 2, "MANIFEST-000003"
			manifest(&files, "MANIFEST-000003", "manifest")
			files.Logs["000004.log"] = ListedLog{Extent: Extent{3, crc32.Checksum([]byte("log"), castagnoli)}, Must: true}
			files.Logs["000005.log"] = ListedLog{}
			files.Tables["000006.sst"] = false
			all := map[string]string{
				LockName: "", "marker.manifest.000002.MANIFEST-000003": "", "marker.format-version.000001.013": "",
				"MANIFEST-000003": "manifest and more", "OPTIONS-000002": "[Version]\n", "000004.log": "log and more", "000005.log": "", "000006.sst": "table",
				FormatFile: string(FormatContents(exampleID, false)), FilesName: string(append(files.Header(), files.Line()...)), HeadsFile: string(HeadsHeader()),
			}
			for range d.N(5) {
				name := golden.Pick(d, LockName, "marker.manifest.000002.MANIFEST-000003", "marker.format-version.000001.013", "MANIFEST-000003", "OPTIONS-000002",
					"000004.log", "000005.log", "000006.sst", FormatFile, FilesName, HeadsFile)
				switch d.N(7) {
				case 0, 1:
					delete(all, name)
				case 2:
					all[name] = all[name][:len(all[name])/2]
				case 3:
					all[name] = "other"
				case 4:
					all[golden.Pick(d, "notes.txt", ".DS_Store", "snapshots.db", "snapshots.db-wal", CreatingName, "000009.log", "000009.blob", "000010.dbtmp", "000017-001.log", "CURRENT", "FILES.tmp", "checkpoints")] = "x"
				case 5:
					all[golden.Pick(d, "marker.manifest.000001.MANIFEST-000001", "marker.manifest.000003.MANIFEST-000007", "marker.manifest.000003.000004.log", "marker.x", "marker.manifest.x.y", "MANIFEST-000007", "MANIFEST-000001")] = golden.Pick(d, "", "manifest")
				case 6:
					all[FormatFile] = string(golden.Pick(d, FormatContents(exampleID, true), FormatContents(other, false), []byte("sajou store\nversion 2\n")))
				}
			}
			if d.Once(12) { // few files, as in a directory of another program
				for name := range all {
					if KindOf(name) != KindSnapshot && KindOf(name) != kindSystem && name != "notes.txt" && name != "OPTIONS-000002" {
						delete(all, name)
					}
				}
			}
			for name, contents := range all {
				if golden.NewDice(uint64(seed) + uint64(len(name))).Once(40) {
					require.NoError(t, mem.MkdirAll("store/"+name, 0o755))
					continue
				}
				put(t, mem, "store/"+name, contents)
			}
			var out strings.Builder
			s, err := LookAt(mem, "store")
			fmt.Fprintln(&out, s.Names, s.State, s.Err, err, errors.Is(s.Err, ErrForeign), errors.Is(s.Err, errLockContents))
			if s.Err == nil && s.State >= StateStore {
				for fail := 0; ; fail++ {
					count := 0
					disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
						if op.Kind == errorfs.OpFileClose {
							return nil
						}
						if count++; count == fail {
							return errDisk
						}
						return nil
					}))
					s := s
					s.Check(disk, "store")
					fmt.Fprintln(&out, s.State, s.Format, s.Files, s.outside, s.Unnoted(), s.Err, s.Short, errors.Is(s.Err, chain.ErrVersion), errors.Is(s.Err, chain.ErrCorrupt))
					if count < fail {
						break
					}
				}
			}
			step(fmt.Sprint(seed), out.String())
		}
	})
}

var randomName = regexp.MustCompile(`[0-9a-f]{16}`)

// ordered lists the files of a directory in the order of their names.
type ordered struct{ vfs.FS }

func (o ordered) List(dir string) ([]string, error) {
	names, err := o.FS.List(dir)
	slices.Sort(names)
	return names, err
}

// tree lists the files below a directory with their contents.
func tree(disk vfs.FS, dir string) string {
	names, err := disk.List(dir)
	if err != nil {
		return ""
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		path := disk.PathJoin(dir, name)
		if info, err := disk.Stat(path); err == nil && info.IsDir() {
			fmt.Fprintf(&b, "%s/\n%s", path, tree(disk, path))
			continue
		}
		f, err := disk.Open(path)
		if err != nil {
			fmt.Fprintln(&b, path, err)
			continue
		}
		contents, err := io.ReadAll(f)
		fmt.Fprintf(&b, "%s %q %v\n", path, contents, errors.Join(err, f.Close()))
	}
	return randomName.ReplaceAllString(b.String(), "*")
}

// Each operation on the disk fails in turn while a store is made, copied or removed; the
// error and what is on the disk then are those of the record.
func TestRecordedFaults(t *testing.T) {
	store := func(disk vfs.FS, dir string) error {
		for _, name := range []string{"MANIFEST-000001", "marker.manifest.000001.MANIFEST-000001", "000002.log"} {
			if err := writeNew(disk, disk.PathJoin(dir, name), []byte(name)); err != nil {
				return err
			}
		}
		return WriteAtomically(disk, dir, FormatFile, FormatContents(exampleID, false))
	}
	build := func(disk vfs.FS) Builder {
		return func(dir string, _ *pebble.Lock) error { return store(disk, dir) }
	}
	log := slices.Concat(walChunk(2, 1, 2, 0, []byte("a")), walChunk(2, 1, 2, 20, []byte("b")), []byte("torn"))
	golden.Trace(t, "testdata/faults.txt", func(step func(name, text string)) {
		for _, c := range []struct {
			name string
			has  map[string]string
			do   func(disk vfs.FS) (any, error)
		}{
			{"write", map[string]string{"store/A": "old"}, func(disk vfs.FS) (any, error) {
				return nil, WriteAtomically(disk, "store", "A", []byte("new"))
			}},
			{"cut", map[string]string{"store/A": "long"}, func(disk vfs.FS) (any, error) {
				return nil, CopyBeginning(disk, "store/A", "store/B", 2)
			}},
			{"cut more", map[string]string{"store/A": "long"}, func(disk vfs.FS) (any, error) {
				return nil, CopyBeginning(disk, "store/A", "store/B", 5)
			}},
			{"clear", map[string]string{"store/LOCK": "", "store/notes.txt": "x", "store/000001.log": "", "store/SAJOU": "", "store/snapshots.db": ""}, func(disk vfs.FS) (any, error) {
				return nil, ClearFolder(disk, "store")
			}},
			{"create beside", nil, func(disk vfs.FS) (any, error) {
				created, made, err := CreateBeside(disk, "new/folder/store", build(disk))
				return fmt.Sprint(created, made), err
			}},
			{"create beside another", map[string]string{"store/SAJOU": "x"}, func(disk vfs.FS) (any, error) {
				created, made, err := CreateBeside(disk, "store", build(disk))
				return fmt.Sprint(created, made), err
			}},
			{"create beside a rest", map[string]string{
				"in/.store.new-ffffffffffffff77/LOCK": "", "in/.store.new-ffffffffffffff77/SAJOU.tmp": "x",
				"in/.store.new-ffffffffffffff88/notes.txt": "", "in/.store.new-ffffffffffffff99/LOCK": "x", "in/.store.new-00112233445566/LOCK": "",
			}, func(disk vfs.FS) (any, error) {
				created, made, err := CreateBeside(disk, "in/store", build(disk))
				return fmt.Sprint(created, made), err
			}},
			{"create inside", map[string]string{"store/.DS_Store": "x"}, func(disk vfs.FS) (any, error) {
				return nil, CreateInside(disk, "store", build(disk))
			}},
			{"create inside a rest", map[string]string{"store/SAJOU.creating/LOCK": "", "store/SAJOU.creating/000002.log": "torn"}, func(disk vfs.FS) (any, error) {
				return nil, CreateInside(disk, "store", build(disk))
			}},
			{"create inside a copied rest", map[string]string{
				"store/SAJOU.creating/LOCK": "", "store/SAJOU.creating/SAJOU": string(FormatContents(exampleID, false)), "store/SAJOU.creating/000002.log": "log", "store/SAJOU.creating/notes.txt": "x",
				"store/000002.log": "l\x00",
			}, func(disk vfs.FS) (any, error) {
				return nil, CreateInside(disk, "store", build(disk))
			}},
			{"create inside of others", map[string]string{
				"store/SAJOU.creating/LOCK": "", "store/SAJOU.creating/SAJOU": string(FormatContents(exampleID, false)), "store/SAJOU.creating/000002.log": "log", "store/000002.log": "another",
			}, func(disk vfs.FS) (any, error) {
				return nil, CreateInside(disk, "store", build(disk))
			}},
			{"checkpoint", map[string]string{"store/checkpoints/0011223344556677/MANIFEST-000001": "m", "store/checkpoints/0011223344556677/marker.manifest.000001.MANIFEST-000001": "", "store/checkpoints/0011223344556677/000002.log": string(log), "store/checkpoints/0011223344556677/000001.log": "as it is"}, func(disk vfs.FS) (any, error) {
				return nil, CompleteCheckpoint(disk, "store/checkpoints/0011223344556677", exampleID, HeadsHeader())
			}},
			{"remove a checkpoint", map[string]string{"store/checkpoints/0011223344556677/SAJOU": "", "store/checkpoints/0011223344556677/LOCK": ""}, func(disk vfs.FS) (any, error) {
				return nil, RemoveCheckpoint(disk, "store/checkpoints/0011223344556677", 0)
			}},
			{"sweep checkpoints", map[string]string{"store/checkpoints/0011223344556677/SAJOU": "", "store/checkpoints/notes.txt": "", "store/checkpoints/0011223344556688/LOCK": ""}, func(disk vfs.FS) (any, error) {
				return nil, SweepCheckpoints(disk, "store", []string{CheckpointsName})
			}},
			{"a new checkpoint", nil, func(disk vfs.FS) (any, error) {
				path, err := NewCheckpointPath(disk, "store")
				return path, err
			}},
			{"extent", map[string]string{"store/A": "long"}, func(disk vfs.FS) (any, error) {
				e, err := ExtentOf(disk, "store/A", 3)
				return e, errors.Join(err, CheckExtent(disk, "store", "A", e), CheckExtent(disk, "store", "A", Extent{5, 0}), CheckExtent(disk, "store", "A", Extent{3, 0}))
			}},
			{"small", map[string]string{"store/A": "long"}, func(disk vfs.FS) (any, error) {
				b, err := readSmall(disk, "store/A", 4)
				_, more := readSmall(disk, "store/A", 3)
				return string(b), errors.Join(err, more)
			}},
			{"options", map[string]string{"store/A": "[Version]\nx", "store/B": "[Vers", "store/C": "x"}, func(disk vfs.FS) (any, error) {
				a, err1 := isOptions(disk, "store/A")
				b, err2 := isOptions(disk, "store/B")
				c, err3 := isOptions(disk, "store/C")
				return fmt.Sprint(a, b, c), errors.Join(err1, err2, err3)
			}},
			{"usage", map[string]string{"store/000001.log": "log", "store/000001.sst": "table", "store/snapshots.db": "s", "store/SAJOU": "x"}, func(disk vfs.FS) (any, error) {
				_, err := MeasureUsage(disk, "store")
				return nil, err
			}},
			{"ledger", map[string]string{"store/FILES": "old"}, func(disk vfs.FS) (any, error) {
				l, err := OpenLedger(disk, "store", NewFileList(exampleID))
				if err != nil {
					return nil, err
				}
				var errs []error
				for _, name := range []string{"000001.log", "000002.sst", "OPTIONS-000003"} {
					errs = append(errs, l.announce(name), l.synced(name, Extent{5, 6}))
				}
				l.moved("marker.manifest.000001.MANIFEST-000001")
				errs = append(errs, l.synced("MANIFEST-000001", Extent{7, 8}), l.dispensable("000001.log", "000004.log"))
				l.removed("000001.log")
				l.afterDirectorySync(l.beforeDirectorySync())
				errs = append(errs, l.announce("000005.log"), l.Close(), l.Close(), l.announce("000006.log"))
				return l.state, errors.Join(errs...)
			}},
		} {
			for fail := 0; ; fail++ {
				mem := vfs.NewMem()
				require.NoError(t, mem.MkdirAll("store", 0o755))
				for path, contents := range c.has {
					require.NoError(t, mem.MkdirAll(mem.PathDir(path), 0o755))
					put(t, mem, path, contents)
				}
				if c.name == "create beside" || c.name == "create beside a rest" {
					require.NoError(t, mem.Remove("store"))
				}
				count, what := 0, ""
				disk := errorfs.Wrap(ordered{mem}, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if count++; count != fail {
						return nil
					}
					what = fmt.Sprint(op.Kind, " ", op.Path)
					return errDisk
				}))
				result, err := c.do(disk)
				if count < fail {
					break
				}
				text := fmt.Sprintf("%s\n%v %v\n%s", what, result, err, tree(mem, ""))
				step(fmt.Sprint(c.name, " ", fail), randomName.ReplaceAllString(text, "*"))
			}
		}
	})
}
