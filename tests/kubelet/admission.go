package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

type admitParameters struct {
	Pod podSpec `json:"pod"`
}

// verdict is what the kubelet decided on one pod.
type verdict struct {
	UID         string            `json:"uid"`
	Admitted    bool              `json:"admitted"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message"`
	AdmissionUs int64             `json:"admission_us"`
	Containers  []containerAnswer `json:"containers"`
}

// containerAnswer is what one container would be made with, and the device ids behind it.
type containerAnswer struct {
	Name        string              `json:"name"`
	Envs        map[string]string   `json:"envs"`
	Devices     []deviceNode        `json:"devices"`
	Mounts      []mount             `json:"mounts"`
	Annotations map[string]string   `json:"annotations"`
	CDI         []string            `json:"cdi"`
	DeviceIDs   map[string][]string `json:"device_ids"`
	// Error is why the container could not be made; the pod is admitted all the same.
	Error string `json:"error,omitempty"`
}

type deviceNode struct {
	Host        string `json:"host"`
	Container   string `json:"container"`
	Permissions string `json:"permissions"`
}

type mount struct {
	Host      string `json:"host"`
	Container string `json:"container"`
	ReadOnly  bool   `json:"read_only"`
}

// admit takes a new pod through the kubelet's admission and then makes its containers.
func (k *kubelet) admit(p admitParameters) (verdict, error) {
	pod, err := p.Pod.pod()
	if err != nil {
		return verdict{}, err
	}
	life, result, err := k.admitNew(pod)
	if err != nil {
		return verdict{}, err
	}
	if !result.Admitted {
		return result, nil
	}
	started := true
	for _, container := range containersOf(pod) {
		answer, err := containerOptions(life.devices, pod, container)
		if err != nil {
			answer = emptyContainer(container.Name)
			answer.Error = err.Error()
			started = false
		}
		result.Containers = append(result.Containers, answer)
	}
	if started {
		k.pods.setStarted(pod.UID)
	}
	return result, nil
}

// admitNew runs the admission of one pod under the sync loop's lock.
func (k *kubelet) admitNew(pod *v1.Pod) (*incarnation, verdict, error) {
	k.admission.Lock()
	defer k.admission.Unlock()
	life, err := k.present()
	if err != nil {
		return nil, verdict{}, err
	}
	if err := k.pods.add(pod, true, false); err != nil {
		return nil, verdict{}, err
	}
	result := life.decide(pod, k.pods.active())
	if now, err := k.present(); err != nil || now != life {
		// The dead kubelet told nobody, so the next one is handed the pod again.
		return nil, verdict{}, fmt.Errorf("kubelet ended while it admitted pod %q; the pod stays known", pod.UID)
	}
	if !result.Admitted {
		k.pods.remove(string(pod.UID))
	}
	return life, result, nil
}

// readmitKnown hands the known pods over one after the other, as a started kubelet gets them, and
// then lets the sources be ready. It must be called with the admission lock held.
func (k *kubelet) readmitKnown(life *incarnation, readyAfter bool) beginningAnswer {
	answer := beginningAnswer{Pods: []verdict{}}
	for _, record := range k.pods.all() {
		pod := record.pod
		k.pods.setActive(pod.UID, true)
		result := life.decide(pod, k.pods.active())
		if !result.Admitted {
			k.pods.remove(string(pod.UID))
		}
		for _, container := range containersOf(pod) {
			known := emptyContainer(container.Name)
			known.DeviceIDs = deviceIDs(life.devices, pod, container.Name)
			result.Containers = append(result.Containers, known)
		}
		answer.Pods = append(answer.Pods, result)
	}
	if readyAfter {
		life.sources.ready.Store(true)
	}
	return answer
}

// decide asks the kubelet's two admit handlers that matter for devices, in the kubelet's order:
// resource allocation, then node fit.
func (life *incarnation) decide(pod *v1.Pod, active []*v1.Pod) verdict {
	others := []*v1.Pod{}
	for _, other := range active {
		if other.UID != pod.UID {
			others = append(others, other)
		}
	}
	attributes := &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others}
	fit := lifecycle.NewPredicateAdmitHandler(life.node, noPreemption{}, life.devices.UpdatePluginResources)

	began := time.Now()
	result := life.topology.Admit(attributes)
	if result.Admit {
		result = fit.Admit(attributes)
	}
	return verdict{
		UID: string(pod.UID), Admitted: result.Admit, Reason: result.Reason, Message: result.Message,
		AdmissionUs: time.Since(began).Microseconds(), Containers: []containerAnswer{},
	}
}

// node is this node as node fit sees it: with room for any pod, and with the devices that are
// allocatable now. The kubelet's own view of its node lags by up to its status period.
func (life *incarnation) node() (*v1.Node, error) {
	allocatable := v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("1000"),
		v1.ResourceMemory:           resource.MustParse("1Ti"),
		v1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		v1.ResourcePods:             resource.MustParse("10000"),
	}
	for name, devices := range life.devices.GetAllocatableDevices() {
		allocatable[v1.ResourceName(name)] = *resource.NewQuantity(int64(len(devices)), resource.DecimalSI)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Status:     v1.NodeStatus{Capacity: allocatable, Allocatable: allocatable},
	}, nil
}

// noPreemption is what the kubelet's preemption does for a pod that is not critical: nothing.
type noPreemption struct{}

func (noPreemption) HandleAdmissionFailure(_ context.Context, _ *v1.Pod, reasons []lifecycle.PredicateFailureReason) ([]lifecycle.PredicateFailureReason, error) {
	return reasons, nil
}

type runOptionsParameters struct {
	UID       string `json:"uid"`
	Container string `json:"container"`
}

// runOptions is the restart of one container. The kubelet does it in the pod's own goroutine, so
// it takes no admission lock.
func (k *kubelet) runOptions(p runOptionsParameters) (containerAnswer, error) {
	life, err := k.present()
	if err != nil {
		return containerAnswer{}, err
	}
	pod, known := k.pods.find(p.UID)
	if !known {
		return containerAnswer{}, fmt.Errorf("no pod with uid %q", p.UID)
	}
	for _, container := range containersOf(pod) {
		if container.Name == p.Container {
			return containerOptions(life.devices, pod, container)
		}
	}
	return containerAnswer{}, fmt.Errorf("pod %q has no container %q", p.UID, p.Container)
}

func containerOptions(devices *devicemanager.ManagerImpl, pod *v1.Pod, container v1.Container) (containerAnswer, error) {
	options, err := devices.GetDeviceRunContainerOptions(pod, &container)
	if err != nil {
		return containerAnswer{}, err
	}
	answer := emptyContainer(container.Name)
	answer.DeviceIDs = deviceIDs(devices, pod, container.Name)
	if options == nil {
		return answer, nil
	}
	for _, env := range options.Envs {
		answer.Envs[env.Name] = env.Value
	}
	for _, d := range options.Devices {
		answer.Devices = append(answer.Devices, deviceNode{Host: d.PathOnHost, Container: d.PathInContainer, Permissions: d.Permissions})
	}
	for _, m := range options.Mounts {
		answer.Mounts = append(answer.Mounts, mount{Host: m.HostPath, Container: m.ContainerPath, ReadOnly: m.ReadOnly})
	}
	for _, a := range options.Annotations {
		answer.Annotations[a.Name] = a.Value
	}
	for _, d := range options.CDIDevices {
		answer.CDI = append(answer.CDI, d.Name)
	}
	return answer, nil
}

// emptyContainer has empty lists where a missing field would be null.
func emptyContainer(name string) containerAnswer {
	return containerAnswer{
		Name: name, Envs: map[string]string{}, Devices: []deviceNode{}, Mounts: []mount{},
		Annotations: map[string]string{}, CDI: []string{}, DeviceIDs: map[string][]string{},
	}
}

// deviceIDs gives the ids one container holds, by resource.
func deviceIDs(devices *devicemanager.ManagerImpl, pod *v1.Pod, container string) map[string][]string {
	held := map[string][]string{}
	for name, instances := range devices.GetDevices(string(pod.UID), container) {
		held[name] = sortedIDs(instances)
	}
	return held
}

func sortedIDs(instances devicemanager.DeviceInstances) []string {
	ids := []string{}
	for id := range instances {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

type removeParameters struct {
	UID string `json:"uid"`
}

// remove ends a pod: its containers are gone and it is no longer active. The kubelet frees its
// devices some time later.
func (k *kubelet) remove(p removeParameters) (none, error) {
	if !k.pods.remove(p.UID) {
		return none{}, fmt.Errorf("no pod with uid %q", p.UID)
	}
	return none{}, nil
}
