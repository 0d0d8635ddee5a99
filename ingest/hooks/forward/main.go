package forward

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sajou-dev/sajou-go/internal/privatefile"
)

// maxRun bounds the run of a hook, whatever it waits for.
const maxRun = 4 * time.Second

// Flags adds the flags of a hook to a set and gives cfg their defaults, which the
// environment can change: SAJOU_SERVER and SAJOU_HOOK_DIR.
func Flags(flags *flag.FlagSet, cfg *Config) {
	cfg.Server, cfg.Dir = DefaultServer, DefaultDir()
	if server := os.Getenv("SAJOU_SERVER"); server != "" {
		cfg.Server = server
	}
	flags.StringVar(&cfg.Server, "server", cfg.Server, "`ADDRESS` of the server; SAJOU_SERVER sets the default")
	flags.StringVar(&cfg.Session, "session", "", "record into session `NAME` (default: one for each session of the agent)")
	flags.StringVar((*string)(&cfg.Split), "split", "", "divide the session by `KIND`: native-session, source or day")
	flags.StringVar(&cfg.Source, "source", "", "`SOURCE` of the signals (default: adapter: and the agent)")
	flags.StringVar(&cfg.Dir, "dir", cfg.Dir, "`DIR` of the spool and the log; SAJOU_HOOK_DIR sets the default")
}

// DefaultDir returns the directory of the spool and the log: that of SAJOU_HOOK_DIR, or
// sajou/hooks where the system keeps the state of programs.
func DefaultDir() string {
	if dir := os.Getenv("SAJOU_HOOK_DIR"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sajou", "hooks")
	}
	if home, err := os.UserHomeDir(); err == nil && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		return filepath.Join(home, ".local", "state", "sajou", "hooks")
	}
	if dir, err := os.UserConfigDir(); err == nil {
		return filepath.Join(dir, "sajou", "hooks")
	}
	return ""
}

// Token returns the token of the environment: SAJOU_TOKEN, or the content of the file that
// SAJOU_TOKEN_FILE names, which only its owner may be able to read.
func Token() (string, error) { return privatefile.Token("") }

// Main is a program: it handles the object on stdin as its arguments say, and returns; see
// [Run]. An argument that it does not know is noted in the log and passed over, because the
// object would be lost else.
func Main(args []string, stdin io.Reader, base Config, exit func()) {
	cfg := base
	flags := flag.NewFlagSet("hook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	Flags(flags, &cfg)
	var wrong error
	for len(args) > 0 {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		args = flags.Args()
		if err == nil && len(args) > 0 {
			err = fmt.Errorf("unexpected argument %q", args[0])
			args = args[1:]
		}
		if wrong == nil {
			wrong = err
		}
	}
	if wrong != nil {
		writeLog(cfg.Dir, cfg.Now(), wrong)
	}
	Run(stdin, cfg, exit)
}

// Run handles the object on stdin with the token of the environment. It prints nothing, and
// returns after a few seconds at most; failures are in the log. The caller then ends the
// process with code 0. Exit does so, if Run cannot return in time.
func Run(stdin io.Reader, cfg Config, exit func()) {
	cfg.Note = func(err error) { writeLog(cfg.Dir, cfg.Now(), err) }
	defer func() {
		if failure := recover(); failure != nil {
			cfg.Note(fmt.Errorf("a fault of the program: %v", failure))
		}
	}()
	timer := time.AfterFunc(maxRun, func() {
		// The log may be what does not answer.
		time.AfterFunc(maxRun/4, exit)
		cfg.Note(errors.New("the hook did not end in time and was stopped; is stdin open, or the disk stuck?"))
		exit()
	})
	defer timer.Stop()
	cfg.Token, cfg.Hold = Token()
	if err := Handle(context.Background(), stdin, cfg); err != nil {
		cfg.Note(err)
	}
}
