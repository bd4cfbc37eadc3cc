package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// holds lets a test keep one Allocate in flight for as long as it likes, on the kubelet's side of
// the connection: the plugin has not got the request yet, or has answered already.
type holds struct {
	mutex sync.Mutex
	next  *hold
}

type hold struct {
	at      string
	taken   bool
	ids     []string
	reached chan struct{}
	release chan struct{}
}

const (
	atRequest = "request"
	atAnswer  = "answer"
)

type holdParameters struct {
	At string `json:"at"`
}

// holdAllocate makes the next Allocate stop before its request or after its answer.
func (k *kubelet) holdAllocate(p holdParameters) (none, error) {
	if p.At == "" {
		p.At = atAnswer
	}
	if p.At != atAnswer && p.At != atRequest {
		return none{}, fmt.Errorf("at is %q, not %q or %q", p.At, atRequest, atAnswer)
	}
	k.holds.mutex.Lock()
	defer k.holds.mutex.Unlock()
	if k.holds.next != nil {
		return none{}, errors.New("an Allocate is held already")
	}
	k.holds.next = &hold{at: p.At, reached: make(chan struct{}), release: make(chan struct{})}
	return none{}, nil
}

type waitHeldParameters struct {
	TimeoutMs int64 `json:"timeout_ms"`
}

type heldAnswer struct {
	DeviceIDs []string `json:"device_ids"`
}

// waitHeld returns when an Allocate has come to the hold.
func (k *kubelet) waitHeld(p waitHeldParameters) (heldAnswer, error) {
	k.holds.mutex.Lock()
	next := k.holds.next
	k.holds.mutex.Unlock()
	if next == nil {
		return heldAnswer{}, errors.New("no Allocate is to be held")
	}
	select {
	case <-next.reached:
		return heldAnswer{DeviceIDs: next.ids}, nil
	case <-time.After(time.Duration(p.TimeoutMs) * time.Millisecond):
		return heldAnswer{}, fmt.Errorf("no Allocate came within %d ms", p.TimeoutMs)
	}
}

// releaseAllocate lets the held Allocate go on, or takes the order back.
func (k *kubelet) releaseAllocate(none) (none, error) {
	k.holds.mutex.Lock()
	defer k.holds.mutex.Unlock()
	if k.holds.next == nil {
		return none{}, errors.New("no Allocate is to be held")
	}
	close(k.holds.next.release)
	k.holds.next = nil
	return none{}, nil
}

// pass stops the first Allocate that comes to the place of the hold until it is released or the
// kubelet life is over.
func (h *holds) pass(at string, ids []string, over <-chan struct{}) error {
	h.mutex.Lock()
	next := h.next
	if next == nil || next.at != at || next.taken {
		h.mutex.Unlock()
		return nil
	}
	next.taken = true
	next.ids = append([]string{}, ids...)
	sort.Strings(next.ids)
	close(next.reached)
	h.mutex.Unlock()
	select {
	case <-next.release:
		return nil
	case <-over:
		return status.Error(codes.Canceled, "kubelet is stopping")
	}
}

// heldPlugin is a connected plugin whose Allocate passes the holds.
type heldPlugin struct {
	plugin.DevicePlugin
	holds *holds
	over  <-chan struct{}
}

func (p heldPlugin) API() pluginapi.DevicePluginClient {
	return heldClient{DevicePluginClient: p.DevicePlugin.API(), holds: p.holds, over: p.over}
}

type heldClient struct {
	pluginapi.DevicePluginClient
	holds *holds
	over  <-chan struct{}
}

func (c heldClient) Allocate(ctx context.Context, request *pluginapi.AllocateRequest, options ...grpc.CallOption) (*pluginapi.AllocateResponse, error) {
	ids := request.GetContainerRequests()[0].GetDevicesIds()
	if err := c.holds.pass(atRequest, ids, c.over); err != nil {
		return nil, err
	}
	response, err := c.DevicePluginClient.Allocate(ctx, request, options...)
	if held := c.holds.pass(atAnswer, ids, c.over); held != nil {
		return nil, held
	}
	return response, err
}
