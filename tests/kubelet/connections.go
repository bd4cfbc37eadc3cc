package main

import (
	"fmt"
	"path/filepath"
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// connections stands between the kubelet's registration server and its device manager. While the
// kubelet lives it only counts, and holds an Allocate when a test says so. At the end of a kubelet
// life it does what the end of a process does: it closes every connection, those replaced by a
// newer registration too, and lets no late message of theirs reach the device manager and so the
// checkpoint.
type connections struct {
	devices plugin.ClientHandler
	holds   *holds
	over    chan struct{}

	mutex     sync.Mutex
	closed    bool
	opened    []plugin.DevicePlugin
	resources map[string]*resourceConnections
	receiving sync.WaitGroup
}

// resourceConnections is what was seen of one resource in one kubelet life.
type resourceConnections struct {
	connected bool
	endpoints []string
	updates   int
	last      []deviceState
}

type deviceState struct {
	ID     string  `json:"id"`
	Health string  `json:"health"`
	NUMA   []int64 `json:"numa"`
}

func newConnections(devices plugin.ClientHandler, h *holds) *connections {
	return &connections{
		devices: devices, holds: h, over: make(chan struct{}),
		resources: map[string]*resourceConnections{},
	}
}

// PluginConnected is called inside Register, after the dial back to the plugin.
func (c *connections) PluginConnected(resource string, p plugin.DevicePlugin) error {
	if !c.begin(p) {
		hangUp(p)
		return fmt.Errorf("kubelet is stopping")
	}
	defer c.receiving.Done()
	if err := c.devices.PluginConnected(resource, heldPlugin{p, c.holds, c.over}); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	seen := c.of(resource)
	seen.connected = true
	seen.endpoints = append(seen.endpoints, filepath.Base(p.SocketPath()))
	return nil
}

// PluginDisconnected is called when a connection was closed.
func (c *connections) PluginDisconnected(resource string) {
	if !c.begin() {
		return
	}
	defer c.receiving.Done()
	c.devices.PluginDisconnected(resource)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.of(resource).connected = false
}

// PluginListAndWatchReceiver is called with every device list.
func (c *connections) PluginListAndWatchReceiver(resource string, list *pluginapi.ListAndWatchResponse) {
	if !c.begin() {
		return
	}
	defer c.receiving.Done()
	c.note(resource, list)
	c.devices.PluginListAndWatchReceiver(resource, list)
}

// note counts a list before it is passed on, so that whoever sees its effect sees it counted.
func (c *connections) note(resource string, list *pluginapi.ListAndWatchResponse) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	seen := c.of(resource)
	seen.updates++
	seen.last = []deviceState{}
	for _, device := range list.GetDevices() {
		state := deviceState{ID: device.GetID(), Health: device.GetHealth(), NUMA: []int64{}}
		for _, node := range device.GetTopology().GetNodes() {
			state.NUMA = append(state.NUMA, node.GetID())
		}
		seen.last = append(seen.last, state)
	}
}

// snapshot gives a copy of what was seen of one resource.
func (c *connections) snapshot(resource string) resourceConnections {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	seen := *c.of(resource)
	seen.endpoints = append([]string{}, seen.endpoints...)
	seen.last = append([]deviceState{}, seen.last...)
	return seen
}

// close ends every connection and waits for messages already on their way to the device manager.
func (c *connections) close() {
	c.mutex.Lock()
	c.closed = true
	close(c.over)
	opened := c.opened
	c.opened = nil
	c.mutex.Unlock()
	for _, p := range opened {
		hangUp(p)
	}
	c.receiving.Wait()
}

// begin counts a message in and notes the connections it opened, unless this kubelet life is over.
func (c *connections) begin(opened ...plugin.DevicePlugin) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return false
	}
	c.receiving.Add(1)
	c.opened = append(c.opened, opened...)
	return true
}

// of must be called with the mutex held.
func (c *connections) of(resource string) *resourceConnections {
	seen, known := c.resources[resource]
	if !known {
		seen = &resourceConnections{}
		c.resources[resource] = seen
	}
	return seen
}

func hangUp(p plugin.DevicePlugin) {
	if client, closable := p.(plugin.Client); closable {
		// It only fails for a connection that is closed already.
		_ = client.Disconnect()
	}
}
