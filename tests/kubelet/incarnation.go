package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"unsafe"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"
)

// newManagerImpl is the kubelet's constructor behind NewManagerImpl, which would use the constant
// directory /var/lib/kubelet/device-plugins.
//
//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(socketPath string, topology []cadvisorapi.Node, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

// incarnation is one life of the kubelet: from its start to its end or restart.
type incarnation struct {
	devices      *devicemanager.ManagerImpl
	topology     topologymanager.Manager
	connections  *connections
	watcher      cache.PluginHandler
	sources      *sources
	podResources *podResourcesServer
}

// settings are what stays the same over restarts.
type settings struct {
	dir                string
	podResourcesSocket string
	topologyPolicy     string
	topologyScope      string
	numaNodes          int
}

// newIncarnation makes and starts the kubelet's parts in the order the kubelet does.
func newIncarnation(s settings, pods *podSet, h *holds, runtime runtimeState, sourcesReady bool) (*incarnation, error) {
	var nodes []cadvisorapi.Node
	for id := range s.numaNodes {
		nodes = append(nodes, cadvisorapi.Node{Id: id})
	}
	topology, err := topologymanager.NewManager(nodes, s.topologyPolicy, s.topologyScope, nil)
	if err != nil {
		return nil, fmt.Errorf("make topology manager: %w", err)
	}

	socket := filepath.Join(s.dir, "kubelet.sock")
	devices, err := newManagerImpl(socket, nodes, topology)
	if err != nil {
		return nil, fmt.Errorf("make device manager: %w", err)
	}
	topology.AddHintProvider(devices)
	seen := newConnections(devices, h)
	if err := listenThrough(devices, socket, seen); err != nil {
		return nil, err
	}

	life := &incarnation{devices: devices, topology: topology, connections: seen, sources: &sources{}}
	life.sources.ready.Store(sourcesReady)
	if s.podResourcesSocket != "" {
		life.podResources, err = servePodResources(s.podResourcesSocket, pods, devices)
		if err != nil {
			return nil, err
		}
	}
	if err := devices.Start(pods.active, life.sources, runtime.containers, runtime.running); err != nil {
		life.end()
		return nil, fmt.Errorf("start device manager: %w", err)
	}
	life.watcher = devices.GetWatcherHandler()
	return life, nil
}

// end stops all servers and returns when nothing of this life can touch the directory any more.
func (life *incarnation) end() {
	if life.podResources != nil {
		life.podResources.stop()
	}
	// Only the registration server's listener can fail to stop, and it is gone either way.
	_ = life.devices.Stop()
	life.connections.close()
}

// listenThrough puts a registration server into the device manager that is made as the manager's
// own one is, except that what it hands to the manager passes through seen.
func listenThrough(devices *devicemanager.ManagerImpl, socket string, seen *connections) error {
	server, err := plugin.NewServer(socket, devices, seen)
	if err != nil {
		return fmt.Errorf("make registration server: %w", err)
	}
	field := reflect.ValueOf(devices).Elem().FieldByName("server")
	if !field.IsValid() || !reflect.TypeOf(server).AssignableTo(field.Type()) {
		return fmt.Errorf("this kubelet version keeps its registration server elsewhere")
	}
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(server))
	return nil
}

// sources says whether the kubelet has heard of all pods of this node. Until then it frees no
// device and does not ask for devices of running containers.
type sources struct {
	ready atomic.Bool
}

func (s *sources) AddSource(string) {}

func (s *sources) AllReady() bool { return s.ready.Load() }

// runtimeState is what the container runtime told a starting kubelet.
type runtimeState struct {
	containers containermap.ContainerMap
	running    sets.Set[string]
}
