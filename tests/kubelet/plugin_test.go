package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const chips = "example.com/chip"

// scriptedPlugin is a device plugin that does what a test tells it.
type scriptedPlugin struct {
	pluginapi.UnimplementedDevicePluginServer
	t      *testing.T
	dir    string
	socket string
	server *grpc.Server

	preStart bool

	mutex sync.Mutex
	// allocate may give another answer than the default, or an error, or take its time.
	allocate  func(ids []string) (*pluginapi.ContainerAllocateResponse, error)
	devices   []*pluginapi.Device
	changed   chan struct{}
	allocated [][]string
	prestarts int
	streams   int
}

// newPlugin serves a plugin with the given healthy devices; it does not register it.
func newPlugin(t *testing.T, dir, socket string, ids ...string) *scriptedPlugin {
	t.Helper()
	p := &scriptedPlugin{t: t, dir: dir, socket: socket, changed: make(chan struct{})}
	for _, id := range ids {
		p.devices = append(p.devices, &pluginapi.Device{ID: id, Health: pluginapi.Healthy})
	}
	p.serve()
	t.Cleanup(func() { p.server.Stop() })
	return p
}

// serve listens on the socket, anew if the kubelet has removed it.
func (p *scriptedPlugin) serve() {
	p.t.Helper()
	path := filepath.Join(p.dir, p.socket)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.server = grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(p.server, p)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(p.server)
}

// register calls the kubelet and returns what it answered.
func (p *scriptedPlugin) register() error {
	connection, err := grpc.NewClient("unix:"+filepath.Join(p.dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(connection).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: p.socket, ResourceName: chips,
	})
	return err
}

func (p *scriptedPlugin) mustRegister() {
	p.t.Helper()
	if err := p.register(); err != nil {
		p.t.Fatalf("register: %v", err)
	}
}

// script sets what Allocate does from now on; nil is the default answer.
func (p *scriptedPlugin) script(allocate func(ids []string) (*pluginapi.ContainerAllocateResponse, error)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.allocate = allocate
}

// update replaces the device list and sends it.
func (p *scriptedPlugin) update(change func(devices []*pluginapi.Device)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	fresh := []*pluginapi.Device{}
	for _, d := range p.devices {
		fresh = append(fresh, &pluginapi.Device{ID: d.GetID(), Health: d.GetHealth(), Topology: d.GetTopology()})
	}
	change(fresh)
	p.devices = fresh
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *scriptedPlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true, PreStartRequired: p.preStart}, nil
}

func (p *scriptedPlugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	p.mutex.Lock()
	p.streams++
	p.mutex.Unlock()
	for {
		p.mutex.Lock()
		devices, changed := p.devices, p.changed
		p.mutex.Unlock()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// GetPreferredAllocation prefers the ids that sort first, so tests know which id comes.
func (p *scriptedPlugin) GetPreferredAllocation(_ context.Context, request *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, container := range request.GetContainerRequests() {
		chosen := append([]string{}, container.GetMustIncludeDeviceIDs()...)
		rest := append([]string{}, container.GetAvailableDeviceIDs()...)
		sort.Strings(rest)
		for _, id := range rest {
			if len(chosen) < int(container.GetAllocationSize()) && !strings.Contains(strings.Join(chosen, " "), id) {
				chosen = append(chosen, id)
			}
		}
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: chosen})
	}
	return response, nil
}

func (p *scriptedPlugin) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.GetContainerRequests() {
		ids := append([]string{}, container.GetDevicesIds()...)
		sort.Strings(ids)
		p.mutex.Lock()
		p.allocated = append(p.allocated, ids)
		allocate := p.allocate
		p.mutex.Unlock()
		answer := &pluginapi.ContainerAllocateResponse{Envs: map[string]string{"CHIPS": strings.Join(ids, ",")}}
		for _, id := range ids {
			answer.Devices = append(answer.Devices, &pluginapi.DeviceSpec{HostPath: "/dev/" + id, ContainerPath: "/dev/" + id, Permissions: "rw"})
		}
		if allocate != nil {
			scripted, err := allocate(ids)
			if err != nil {
				return nil, err
			}
			if scripted != nil {
				answer = scripted
			}
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

func (p *scriptedPlugin) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.prestarts++
	return &pluginapi.PreStartContainerResponse{}, nil
}

// allocations gives the ids of every Allocate so far.
func (p *scriptedPlugin) allocations() [][]string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([][]string{}, p.allocated...)
}

func (p *scriptedPlugin) streamCount() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.streams
}

func (p *scriptedPlugin) prestartCount() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.prestarts
}
