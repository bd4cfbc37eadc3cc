package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sort"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	criutil "k8s.io/cri-client/pkg/util"
	"k8s.io/klog/v2"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	podresourcesv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	apisgrpc "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// listTimeout is how long the operation pod_resources waits for its own List.
const listTimeout = 5 * time.Second

// podResourcesServer is the kubelet's pod-resources service on its socket.
type podResourcesServer struct {
	server *grpc.Server
	served sync.WaitGroup
}

// servePodResources does what the kubelet's ListAndServePodResources does, its rate limit included,
// but can be stopped.
func servePodResources(socket string, pods *podSet, devices *devicemanager.ManagerImpl) (*podResourcesServer, error) {
	ctx := context.Background()
	providers := podresources.PodResourcesProviders{
		Pods: activePods{pods}, Devices: deviceSource{devices}, Cpus: nothingElse{},
		Memory: nothingElse{}, DynamicResources: nothingElse{},
	}
	server := grpc.NewServer(apisgrpc.WithRateLimiter(ctx, "podresources", podresources.DefaultQPS, podresources.DefaultBurstTokens))
	podresourcesv1alpha1.RegisterPodResourcesListerServer(server, podresources.NewV1alpha1PodResourcesServer(providers))
	podresourcesapi.RegisterPodResourcesListerServer(server, podresources.NewV1PodResourcesServer(ctx, providers))
	listener, err := criutil.CreateListener("unix://" + socket)
	if err != nil {
		return nil, fmt.Errorf("listen for pod-resources: %w", err)
	}
	p := &podResourcesServer{server: server}
	p.served.Add(1)
	go func() {
		defer p.served.Done()
		if err := server.Serve(listener); err != nil && !errors.Is(err, net.ErrClosed) {
			klog.ErrorS(err, "pod-resources server ended")
		}
	}()
	return p, nil
}

func (p *podResourcesServer) stop() {
	p.server.Stop()
	p.served.Wait()
}

// activePods gives the pod-resources server the kubelet's pods.
type activePods struct{ pods *podSet }

func (a activePods) GetActivePods() []*v1.Pod { return a.pods.active() }

func (a activePods) GetPods() []*v1.Pod { return a.pods.active() }

func (a activePods) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range a.pods.active() {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

// deviceSource gives devices in the form in which the kubelet's container manager passes them on:
// one entry for each device id and NUMA node.
type deviceSource struct{ devices *devicemanager.ManagerImpl }

func (d deviceSource) UpdateAllocatedDevices() { d.devices.UpdateAllocatedDevices() }

func (d deviceSource) GetDevices(podUID, container string) []*podresourcesapi.ContainerDevices {
	return entries(d.devices.GetDevices(podUID, container))
}

func (d deviceSource) GetAllocatableDevices() []*podresourcesapi.ContainerDevices {
	return entries(d.devices.GetAllocatableDevices())
}

func entries(resources devicemanager.ResourceDeviceInstances) []*podresourcesapi.ContainerDevices {
	var list []*podresourcesapi.ContainerDevices
	for name, instances := range resources {
		for id, device := range instances {
			if device.GetTopology() == nil {
				list = append(list, &podresourcesapi.ContainerDevices{ResourceName: name, DeviceIds: []string{id}})
				continue
			}
			for _, node := range device.GetTopology().GetNodes() {
				list = append(list, &podresourcesapi.ContainerDevices{
					ResourceName: name, DeviceIds: []string{id},
					Topology: &podresourcesapi.TopologyInfo{Nodes: []*podresourcesapi.NUMANode{{ID: node.GetID()}}},
				})
			}
		}
	}
	return list
}

// nothingElse is the CPU, memory and DRA state of a node that has none of it to give exclusively.
type nothingElse struct{}

func (nothingElse) GetCPUs(string, string) []int64 { return nil }

func (nothingElse) GetAllocatableCPUs() []int64 { return nil }

func (nothingElse) GetMemory(string, string) []*podresourcesapi.ContainerMemory { return nil }

func (nothingElse) GetAllocatableMemory() []*podresourcesapi.ContainerMemory { return nil }

func (nothingElse) GetDynamicResources(*v1.Pod, *v1.Container) []*podresourcesapi.DynamicResource {
	return nil
}

type podResourcesAnswer struct {
	Pods []listedPod `json:"pods"`
}

type listedPod struct {
	Name       string            `json:"name"`
	Namespace  string            `json:"namespace"`
	Containers []listedContainer `json:"containers"`
}

type listedContainer struct {
	Name    string         `json:"name"`
	Devices []listedDevice `json:"devices"`
}

type listedDevice struct {
	Resource string   `json:"resource"`
	IDs      []string `json:"ids"`
	NUMA     []int64  `json:"numa"`
}

// podResources lists over the served socket, as any client does.
func (k *kubelet) podResources(none) (podResourcesAnswer, error) {
	k.mutex.Lock()
	socket := k.settings.podResourcesSocket
	k.mutex.Unlock()
	if socket == "" {
		return podResourcesAnswer{}, errors.New("started without pod_resources_socket")
	}
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return podResourcesAnswer{}, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	list, err := podresourcesapi.NewPodResourcesListerClient(connection).List(ctx, &podresourcesapi.ListPodResourcesRequest{})
	if err != nil {
		return podResourcesAnswer{}, err
	}
	answer := podResourcesAnswer{Pods: []listedPod{}}
	for _, pod := range list.GetPodResources() {
		listed := listedPod{Name: pod.GetName(), Namespace: pod.GetNamespace(), Containers: []listedContainer{}}
		for _, container := range pod.GetContainers() {
			listed.Containers = append(listed.Containers, listedContainer{
				Name: container.GetName(), Devices: listedDevices(container.GetDevices()),
			})
		}
		answer.Pods = append(answer.Pods, listed)
	}
	return answer, nil
}

func listedDevices(devices []*podresourcesapi.ContainerDevices) []listedDevice {
	listed := []listedDevice{}
	for _, device := range devices {
		entry := listedDevice{Resource: device.GetResourceName(), IDs: device.GetDeviceIds(), NUMA: []int64{}}
		for _, node := range device.GetTopology().GetNodes() {
			entry.NUMA = append(entry.NUMA, node.GetID())
		}
		listed = append(listed, entry)
	}
	sort.Slice(listed, func(a, b int) bool {
		return fmt.Sprint(listed[a]) < fmt.Sprint(listed[b])
	})
	return listed
}
