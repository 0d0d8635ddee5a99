package source

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// spool copies a stream into a temporary file, from which it can be read at any offset.
func (o *opening) spool(ctx context.Context, in io.Reader) (*io.SectionReader, error) {
	s, err := newSpool(o.config.TempDir)
	if err != nil {
		return nil, err
	}
	o.keep(s)
	buf := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := in.Read(buf)
		if s.size+int64(n) > o.config.MaxSpool {
			return nil, fmt.Errorf("%w of %d MiB", ErrSpool, o.config.MaxSpool>>20)
		}
		if err := s.append(buf[:n]); err != nil {
			return nil, err
		}
		if errors.Is(err, io.EOF) {
			return io.NewSectionReader(s, 0, s.size), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// spoolFile is a temporary file whose bytes are encrypted, by AES in counter mode with
// a key that lives in memory alone: recordings hold secrets, and rules that remove them
// apply only later. The file is unreadable once the process has ended, even if it could
// not be removed.
type spoolFile struct {
	file  *os.File
	block cipher.Block
	size  int64
}

func newSpool(dir string) (*spoolFile, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "sajou-spool-*") // of mode 0600
	if err != nil {
		return nil, err
	}
	// Where the system allows it, the file has no name from now on. Close removes it elsewhere.
	_ = os.Remove(file.Name())
	return &spoolFile{file: file, block: block}, nil
}

// append encrypts p in place and writes it at the end.
func (s *spoolFile) append(p []byte) error {
	s.crypt(p, s.size)
	n, err := s.file.WriteAt(p, s.size)
	s.size += int64(n)
	return err
}

// ReadAt implements [io.ReaderAt].
func (s *spoolFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.file.ReadAt(p, off)
	s.crypt(p[:n], off)
	return n, err
}

// crypt encrypts or decrypts the bytes at an offset. The key is used for this file
// alone, so the counter may begin at 0.
func (s *spoolFile) crypt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[8:], uint64(off/aes.BlockSize))
	stream := cipher.NewCTR(s.block, iv[:])
	var skipped [aes.BlockSize]byte
	head := skipped[:off%aes.BlockSize]
	stream.XORKeyStream(head, head)
	stream.XORKeyStream(p, p)
}

// Close removes the file.
func (s *spoolFile) Close() error {
	err := s.file.Close()
	if removing := os.Remove(s.file.Name()); removing != nil && !errors.Is(removing, os.ErrNotExist) {
		err = errors.Join(err, removing)
	}
	return err
}
