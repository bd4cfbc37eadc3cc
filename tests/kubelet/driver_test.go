package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// asHarness makes this test binary be the harness, so that tests talk to it as all others do.
const asHarness = "KUBELET_HARNESS_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(asHarness) == "" {
		os.Exit(m.Run())
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// harness is one running harness process.
type harness struct {
	t       *testing.T
	process *exec.Cmd
	input   io.WriteCloser

	mutex   sync.Mutex
	next    int
	waiting map[string]chan answer
}

// answer is an answer line; its fields are read into what the test expects.
type answer struct {
	line  []byte
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

// fields maps request parameters.
type fields map[string]any

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, process: exec.Command(os.Args[0]), waiting: map[string]chan answer{}}
	h.process.Env = append(os.Environ(), asHarness+"=1")
	log, err := os.Create(filepath.Join(t.TempDir(), "kubelet.log"))
	if err != nil {
		t.Fatal(err)
	}
	h.process.Stderr = log
	output, err := h.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if h.input, err = h.process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := h.process.Start(); err != nil {
		t.Fatal(err)
	}
	go h.read(output)
	t.Cleanup(func() {
		h.kill()
		if t.Failed() {
			content, _ := os.ReadFile(log.Name())
			t.Logf("kubelet log:\n%s", content)
		}
		log.Close()
	})
	return h
}

// kill ends the process as a crash does.
func (h *harness) kill() {
	_ = h.process.Process.Kill()
	_ = h.process.Wait()
}

func (h *harness) read(output io.Reader) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var head struct {
			ID json.RawMessage `json:"id"`
			answer
		}
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			head.Error = fmt.Sprintf("not an answer: %q", lines.Text())
		}
		head.line = append([]byte{}, lines.Bytes()...)
		h.mutex.Lock()
		waiting := h.waiting[string(head.ID)]
		delete(h.waiting, string(head.ID))
		h.mutex.Unlock()
		if waiting != nil {
			waiting <- head.answer
		}
	}
}

// send gives the channel on which the answer will come.
func (h *harness) send(op string, parameters fields) chan answer {
	h.t.Helper()
	h.mutex.Lock()
	h.next++
	id := strconv.Itoa(h.next)
	answered := make(chan answer, 1)
	h.waiting[id] = answered
	h.mutex.Unlock()
	request := fields{"id": json.RawMessage(id), "op": op}
	for name, value := range parameters {
		request[name] = value
	}
	line, err := json.Marshal(request)
	if err != nil {
		h.t.Fatal(err)
	}
	if testing.Verbose() {
		h.t.Logf("> %s", line)
	}
	if _, err := h.input.Write(append(line, '\n')); err != nil {
		h.t.Fatal(err)
	}
	return answered
}

func (h *harness) await(answered chan answer) answer {
	h.t.Helper()
	select {
	case a := <-answered:
		if testing.Verbose() {
			h.t.Logf("< %s", a.line)
		}
		return a
	case <-time.After(20 * time.Second):
		h.t.Fatal("no answer within 20 s")
		return answer{}
	}
}

// must sends a request that has to succeed and reads the answer's fields.
func must[A any](h *harness, op string, parameters fields) A {
	h.t.Helper()
	return succeeded[A](h, h.await(h.send(op, parameters)))
}

func succeeded[A any](h *harness, a answer) A {
	h.t.Helper()
	var read A
	if !a.OK {
		h.t.Fatalf("request failed: %s", a.Error)
	}
	if err := json.Unmarshal(a.line, &read); err != nil {
		h.t.Fatalf("answer %s: %v", a.line, err)
	}
	return read
}

// fails sends a request that has to fail and gives its error.
func (h *harness) fails(op string, parameters fields) string {
	h.t.Helper()
	a := h.await(h.send(op, parameters))
	if a.OK {
		h.t.Fatalf("%s succeeded: %s", op, a.line)
	}
	return a.Error
}

func (h *harness) admit(pod fields) verdict {
	h.t.Helper()
	return must[verdict](h, "admit", fields{"pod": pod})
}

func (h *harness) waitAllocatable(count int) {
	h.t.Helper()
	must[waitAnswer](h, "wait_allocatable", fields{"resource": chips, "count": count, "timeout_ms": 5000})
}

// registerAgain registers a plugin the kubelet has hung up on. Observed: a registration that comes
// before the kubelet is done with the connection before is hung up on as well, or refused, so one
// may not be enough.
func (h *harness) registerAgain(p *scriptedPlugin, count int) {
	h.t.Helper()
	eventually(h.t, "registered again", func() bool {
		if p.register() != nil {
			return false
		}
		a := h.await(h.send("wait_allocatable", fields{"resource": chips, "count": count, "timeout_ms": 200}))
		return a.OK
	})
}

// asking is a pod with one container that asks for chips.
func asking(name string, count int) fields {
	return fields{"name": name, "namespace": "default", "uid": "uid-" + name, "containers": []fields{container("main", count)}}
}

func container(name string, count int) fields {
	return fields{"name": name, "limits": fields{chips: strconv.Itoa(count)}}
}

// socketDir is a directory with a path short enough for sockets.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startIn starts the kubelet on a directory, with pod-resources served below it.
func (h *harness) startIn(dir string, more fields) beginningAnswer {
	h.t.Helper()
	parameters := fields{"dir": dir, "pod_resources_socket": filepath.Join(dir, "pr", "kubelet.sock")}
	for name, value := range more {
		parameters[name] = value
	}
	return must[beginningAnswer](h, "start", parameters)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
