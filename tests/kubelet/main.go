// Command kubelet-harness runs the kubelet's own device manager, topology manager and
// pod-resources server in one process and takes orders as JSON lines. README.md lists them.
//
// Every line on standard input is one request and runs in its own goroutine; every answer is one
// line on standard output. The kubelet's log goes to standard error. The end of standard input
// ends the process.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// endGrace is how long requests still running at the end of input may take.
const endGrace = 2 * time.Second

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "kubelet-harness: %v\n", err)
		os.Exit(1)
	}
}

// serve answers requests until the input ends, then gives the running ones endGrace.
func serve(input io.Reader, output io.Writer) error {
	node := newKubelet()
	answers := &lineWriter{output: output}
	var running sync.WaitGroup

	reader := bufio.NewReader(input)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			running.Add(1)
			go func() {
				defer running.Done()
				answers.write(node.answer(line))
			}()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
	}

	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(endGrace):
	}
	return nil
}

// lineWriter keeps answers of concurrent requests on lines of their own.
type lineWriter struct {
	mutex  sync.Mutex
	output io.Writer
}

func (w *lineWriter) write(line []byte) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, err := w.output.Write(append(line, '\n')); err != nil {
		// Nobody is left to talk to.
		os.Exit(1)
	}
}
