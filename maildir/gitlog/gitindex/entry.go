package gitindex

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is what the index keeps of a file.
type Stat struct {
	CTime, MTime time.Time
	Dev, Ino     uint32
	Mode         uint32 // of the file system
	UID, GID     uint32
	Size         int64
	Uncertain    bool // read so soon after a change that the next one may bear the same stamps
}

// StatOf is what the index keeps of what a system call told.
func StatOf(st *unix.Stat_t) Stat {
	cs, cn := st.Ctim.Unix()
	ms, mn := st.Mtim.Unix()
	return Stat{
		CTime: time.Unix(cs, cn),
		MTime: time.Unix(ms, mn),
		Dev:   uint32(st.Dev),
		Ino:   uint32(st.Ino),
		Mode:  uint32(st.Mode),
		UID:   st.Uid,
		GID:   st.Gid,
		Size:  st.Size,
	}
}

// Is reports whether the file is of a kind such as unix.S_IFREG.
func (s Stat) Is(kind uint32) bool { return s.Mode&unix.S_IFMT == kind }

// Same reports whether a file with that state was not touched between the two looks.
func (s Stat) Same(t Stat) bool {
	return s.CTime.Equal(t.CTime) && s.MTime.Equal(t.MTime) && s.Ino == t.Ino && s.Size == t.Size && s.Mode == t.Mode
}

// append writes stat data; of the zero Stat, zeros.
func (s Stat) append(b []byte, mode uint32) []byte {
	if s.MTime.IsZero() {
		s.MTime, s.CTime = time.Unix(0, 0), time.Unix(0, 0)
	}
	for _, v := range []uint32{
		uint32(s.CTime.Unix()), uint32(s.CTime.Nanosecond()), uint32(s.MTime.Unix()), uint32(s.MTime.Nanosecond()),
		s.Dev, s.Ino, mode, s.UID, s.GID, uint32(s.Size),
	} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// Where the fields of an entry are.
const (
	atMTime = 8
	atDev   = 16
	atMode  = 24
	atSize  = 36
	atHash  = 40
	atFlags = 60
	atMore  = 62 // the extended flags, where there are any
)

const (
	flagAssume   = 0x8000
	flagExtended = 0x4000
	flagStages   = 0x3000
	flagName     = 0x0fff
	flagSkip     = 0x4000 // in the extended flags
)

// Entry is an entry as it stands. One that All yields is valid until the next.
type Entry struct {
	Name []byte

	head []byte // the fixed part, with its flags
	raw  []byte // all of it, padding included, where it was read from a file
}

func (e Entry) clone() Entry { return Entry{Name: slices.Clone(e.Name), head: slices.Clone(e.head)} }

// Mode is the mode as tree objects write it.
func (e Entry) Mode() uint32 { return binary.BigEndian.Uint32(e.head[atMode:]) }

// Hash names the blob, or the commit of a module.
func (e Entry) Hash() [20]byte { return [20]byte(e.head[atHash:atFlags]) }

// Dev is the device of the file: another one after each mount.
func (e Entry) Dev() uint32 { return binary.BigEndian.Uint32(e.head[atDev:]) }

func (e Entry) mtime() uint32 { return binary.BigEndian.Uint32(e.head[atMTime:]) }

func (e Entry) size() uint32 { return binary.BigEndian.Uint32(e.head[atSize:]) }

func (e Entry) flags() uint16 { return binary.BigEndian.Uint16(e.head[atFlags:]) }

// Assumed reports that git is told to believe that the file never changes.
func (e Entry) Assumed() bool { return e.flags()&flagAssume != 0 }

// Sparse reports that the file is meant to be missing, because of a sparse checkout.
func (e Entry) Sparse() bool {
	return e.flags()&flagExtended != 0 && binary.BigEndian.Uint16(e.head[atMore:])&flagSkip != 0
}

// Holds reports whether the entry's stat data is st, to the nanosecond.
func (e Entry) Holds(st Stat) bool {
	return bytes.Equal(e.head[:atSize], st.append(nil, e.Mode())[:atSize]) && e.size() == uint32(st.Size)
}

// MayHold reports whether some Git may take a file in that state for the entry's: not each compares
// more than this.
func (e Entry) MayHold(st Stat) bool {
	return e.mtime() == uint32(st.MTime.Unix()) && e.size() == uint32(st.Size) && st.Is(e.Mode()&unix.S_IFMT)
}

// Smudge makes Git compare the content before it believes the entry.
func (e Entry) Smudge() { clear(e.head[atSize:atHash]) }

// newEntry is the entry of a change. Where the file may have changed within the clock's step the
// size is 0: Git then looks at the content.
func newEntry(c Change) Entry {
	b := c.Stat.append(make([]byte, 0, atMore), c.Mode)
	if c.Stat.Uncertain {
		clear(b[atSize:atHash])
	}
	b = append(b, c.Hash[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(min(len(c.Path), flagName)))
	return Entry{Name: []byte(c.Path), head: b}
}
