// Package aider reads the chat history of aider, a Markdown file.
package aider

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	name    = "aider"
	agentID = "aider"
)

// started begins the line that begins a chat.
const started = "# aider chat started at "

// Format returns the format.
//
// A native record is a line. Lines of one kind that follow each other are a block, which
// gives its signals when the next block begins:
//
//	# aider chat started at T    a chat, kept as aider.chat; T has no zone, and is taken for UTC
//	#### text                    a prompt, which ends the turn before it; a command such as /add is skipped
//	> text                       output of the program: "Applied edit to F" is a call of edit with its
//	                             result, "Tokens: …" are the tokens, the rest is kept as aider.output
//	text                         what the model said
//
// Aider ends the lines that it writes itself with two spaces, and what the model said with
// a blank line. That tells them from headings and quotes in what the model said. The times of the chats are the only ones,
// so the clock between them is stated.
func Format() recording.Format {
	return recording.Format{
		Name: name, Title: "aider chat history", Agent: agentID, Grows: true, Invented: true,
		Recognized: `Markdown with a line "# aider chat started at"`,
		Detect: func(s *recording.Sample) string {
			if bytes.HasPrefix(s.Head, []byte(started)) || bytes.Contains(s.Head, []byte("\n"+started)) {
				if first := bytes.TrimSpace(s.Head); first[0] != '{' && first[0] != '[' {
					return "a line begins with " + strings.TrimSpace(started)
				}
			}
			return ""
		},
		Map: read,
	}
}

// kind is the kind of a line.
type kind uint8

const (
	blank kind = iota
	chat
	prompt
	output
	answer
)

// history is a reading of one file.
type history struct {
	*recording.Mapping
	block  block
	corr   string
	active bool // the turn is not complete
	model  string
	edits  int
}

// block are lines of one kind that follow each other. The last lines that are blank are no part of it.
type block struct {
	kind  kind
	first recording.SavedRecord
	line  int
	lines []string
	blank int // blank lines since the last one
	held  int // records after the first
	size  int
	over  bool // the text is longer than is read
}

// maxBlock bounds the text of a block.
const maxBlock = 8 << 20

func read(in *recording.Recorded, m *recording.Mapping) error {
	file, err := in.FS.Open(in.Name)
	if err != nil {
		return err
	}
	defer file.Close()
	h := &history{Mapping: m}
	lines := newLineReader(file, in.Name)
	for !m.Stopped() {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if line.torn && !in.Final() {
			m.Begin(recording.NativeRecord{Place: line.place, Size: line.size})
			m.Hold() // it is still being written
			break
		}
		h.line(line)
	}
	if in.Final() && !m.Stopped() {
		h.end()
	}
	return nil
}

// kindOf returns the kind of a line and its text.
func (h *history) kindOf(text string) (kind, string) {
	trimmed := strings.TrimRight(text, " \t\r")
	if trimmed == "" {
		return blank, ""
	}
	if when, is := strings.CutPrefix(text, started); is {
		return chat, strings.TrimSpace(when)
	}
	// What the model said ends with a blank line, before aider writes something else.
	own := strings.HasSuffix(text, "  ") && (h.block.kind != answer || h.block.blank > 0)
	if rest, is := strings.CutPrefix(text, "#### "); is && own {
		return prompt, strings.TrimSpace(rest)
	}
	if rest, is := strings.CutPrefix(text, "> "); is && own {
		return output, strings.TrimSpace(rest)
	}
	return answer, strings.TrimRight(text, "\r")
}

// line adds a line to the block, or begins the next one. A native record is a line that is
// not blank.
func (h *history) line(line textLine) {
	k, text := h.kindOf(line.text)
	if k == blank {
		h.block.blank++
		return
	}
	h.Begin(recording.NativeRecord{Place: line.place, Size: line.size, Value: signal.NewObject(1).Text("line", line.text).Value()})
	h.SetNativeID("line " + strconv.Itoa(line.place.Line))
	// What a blank line divides is one answer, but two prompts.
	if k != h.block.kind || k == chat || k == prompt && h.block.blank > 0 {
		h.end()
		h.Hold()
		h.block = block{kind: k, first: h.Save(), line: line.place.Line}
	} else {
		h.Hold()
		h.block.held++
		if k == answer {
			for range h.block.blank {
				h.block.add("")
			}
		}
	}
	h.block.blank = 0
	h.block.add(text)
}

func (b *block) add(line string) {
	if b.size += len(line) + 1; b.size > maxBlock {
		b.over = true
		return
	}
	b.lines = append(b.lines, line)
}

// end emits the block that was read.
func (h *history) end() {
	b := h.block
	h.block = block{}
	if b.kind == blank {
		return
	}
	text := strings.Join(b.lines, "\n")
	h.Within(b.first, func() {
		if b.over {
			h.AddMeta("over", signal.Bool(true))
		}
		switch b.kind {
		case chat:
			h.complete()
			at, known := recording.TimeText(text)
			h.SetClock(at, known)
			h.Emit(name+".chat", "", signal.NewObject(1).Text("startedAt", text).Value())
		case prompt:
			h.prompt(text, b.line)
		case output:
			h.output(b.lines)
		case answer:
			h.Text(h.corr, agentID, text)
		case blank:
		}
	})
	h.Release(b.held)
	h.Elapse(recording.ReadingTime(len(text)))
}

// asking are the commands that give the model a task.
var asking = []string{"/ask ", "/code ", "/architect ", "/context "}

func (h *history) prompt(text string, line int) {
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!") {
		task := false
		for _, command := range asking {
			task = task || strings.HasPrefix(text, command)
		}
		if !task {
			h.Emit(name+".command", "", signal.NewObject(1).Text("command", text).Value())
			return
		}
	}
	h.complete()
	h.corr, h.active = "turn-"+strconv.Itoa(line), true
	h.Dispatch(h.corr, h.corr, recording.User, agentID, text)
}

// complete ends the turn, if one is active.
func (h *history) complete() {
	if h.active {
		h.active = false
		h.Complete(h.corr, h.corr, agentID, true, "")
	}
}

// output reads lines of the program.
func (h *history) output(lines []string) {
	var rest []string
	keep := func() {
		if len(rest) > 0 {
			h.Emit(name+".output", h.corr, signal.NewObject(1).Text("text", strings.Join(rest, "\n")).Value())
			rest = nil
		}
	}
	for _, line := range lines {
		for _, prefix := range []string{"Main model: ", "Model: "} {
			if model, is := strings.CutPrefix(line, prefix); is {
				h.model, _, _ = strings.Cut(model, " ")
			}
		}
		if path, is := strings.CutPrefix(line, "Applied edit to "); is {
			keep()
			h.edits++
			id := "edit-" + strconv.Itoa(h.edits)
			h.Call(h.corr, agentID, "edit", id, signal.NewObject(1).Text("path", path).Value())
			h.Result("", recording.Answer{CallID: id, Agent: agentID, Success: true, Output: signal.Text(line)})
		} else if u, is := tokens(line); is {
			keep()
			u.Model = h.model
			h.Tokens(h.corr, agentID, u)
		} else {
			rest = append(rest, line)
		}
	}
	keep()
}
