package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// request is one line of input: the fields every operation has. The operation reads its own fields
// from the same line.
type request struct {
	ID json.RawMessage `json:"id"`
	Op string          `json:"op"`
}

// operation reads its parameters from the whole request line and gives the fields of its answer.
type operation func(k *kubelet, line []byte) (any, error)

var operations = map[string]operation{
	"start":            with((*kubelet).start),
	"restart":          with((*kubelet).restart),
	"stop":             with((*kubelet).stop),
	"readmit":          with((*kubelet).readmit),
	"sources_ready":    with((*kubelet).setSourcesReady),
	"admit":            with((*kubelet).admit),
	"run_options":      with((*kubelet).runOptions),
	"hold_allocate":    with((*kubelet).holdAllocate),
	"wait_held":        with((*kubelet).waitHeld),
	"release_allocate": with((*kubelet).releaseAllocate),
	"remove":           with((*kubelet).remove),
	"pods":             with((*kubelet).listPods),
	"capacity":         with((*kubelet).capacity),
	"wait_allocatable": with((*kubelet).waitAllocatable),
	"allocatable_ids":  with((*kubelet).allocatableIDs),
	"checkpoint":       with((*kubelet).checkpoint),
	"pod_resources":    with((*kubelet).podResources),
	"end_stream":       with((*kubelet).endStream),
	"list_updates":     with((*kubelet).listUpdates),
}

// with decodes the parameters of one operation. An unknown field is an error: a misspelt switch
// must not turn a test into another one.
func with[P any, A any](run func(*kubelet, P) (A, error)) operation {
	return func(k *kubelet, line []byte) (any, error) {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(line, &fields); err != nil {
			return nil, err
		}
		delete(fields, "id")
		delete(fields, "op")
		rest, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		var parameters P
		decoder := json.NewDecoder(bytes.NewReader(rest))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&parameters); err != nil {
			return nil, fmt.Errorf("bad parameters: %w", err)
		}
		return run(k, parameters)
	}
}

// answer runs one request line and gives the answer line.
func (k *kubelet) answer(line []byte) []byte {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return encodeAnswer(nil, nil, fmt.Errorf("not a JSON request: %w", err))
	}
	run, known := operations[asked.Op]
	if !known {
		return encodeAnswer(asked.ID, nil, fmt.Errorf("unknown op %q", asked.Op))
	}
	fields, err := run(k, line)
	return encodeAnswer(asked.ID, fields, err)
}

func encodeAnswer(id json.RawMessage, fields any, failure error) []byte {
	answer := map[string]json.RawMessage{}
	if failure == nil {
		encoded, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(encoded, &answer)
		}
		failure = err
	}
	if failure != nil {
		text, err := json.Marshal(failure.Error())
		if err != nil {
			text = []byte(`"error text cannot be encoded"`)
		}
		answer = map[string]json.RawMessage{"error": text}
	}
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	answer["id"] = id
	answer["ok"] = json.RawMessage(strconv.FormatBool(failure == nil))
	line, err := json.Marshal(answer)
	if err != nil {
		return []byte(`{"error":"answer cannot be encoded","id":null,"ok":false}`)
	}
	return line
}

// none is the parameters of an operation without any, and the answer that is only "ok".
type none struct{}
