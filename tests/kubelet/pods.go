package main

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
)

// podSpec is a pod as a request names it.
type podSpec struct {
	Name           string          `json:"name"`
	Namespace      string          `json:"namespace"`
	UID            string          `json:"uid"`
	InitContainers []containerSpec `json:"init_containers"`
	Containers     []containerSpec `json:"containers"`
	// Running says of a pod handed to a new process whether its containers run; true if absent.
	Running *bool `json:"running"`
}

type containerSpec struct {
	Name        string          `json:"name"`
	Limits      v1.ResourceList `json:"limits"`
	Restartable bool            `json:"restartable"`
}

// pod gives the pod as the API server would have defaulted it: requests equal limits.
func (s podSpec) pod() (*v1.Pod, error) {
	if s.Name == "" || s.UID == "" || len(s.Containers) == 0 {
		return nil, fmt.Errorf("a pod needs a name, a uid and at least one container")
	}
	if s.Namespace == "" {
		s.Namespace = metav1.NamespaceDefault
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: s.Name, Namespace: s.Namespace, UID: types.UID(s.UID),
	}}
	for _, c := range s.InitContainers {
		container := c.container()
		if c.Restartable {
			always := v1.ContainerRestartPolicyAlways
			container.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
	}
	for _, c := range s.Containers {
		if c.Restartable {
			return nil, fmt.Errorf("container %q: only an init container can be restartable", c.Name)
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c.container())
	}
	return pod, nil
}

func (c containerSpec) container() v1.Container {
	return v1.Container{Name: c.Name, Resources: v1.ResourceRequirements{
		Limits: c.Limits, Requests: c.Limits.DeepCopy(),
	}}
}

// containersOf gives the containers in the order of admission.
func containersOf(pod *v1.Pod) []v1.Container {
	return append(append([]v1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...)
}

// podSet holds the pods of this node that were not removed and not rejected, in order of arrival.
// A restarted kubelet knows none of them until they were handed to it again; these are not active.
type podSet struct {
	mutex   sync.Mutex
	records []*podRecord
}

type podRecord struct {
	pod *v1.Pod
	// active is whether the present kubelet life was told of the pod.
	active bool
	// started is whether the pod's containers were made in a kubelet life before.
	started bool
}

// add makes a pod active, as the kubelet does before it admits it.
func (s *podSet) add(pod *v1.Pod, active, started bool) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, record := range s.records {
		if record.pod.UID == pod.UID {
			return fmt.Errorf("pod uid %q is known already", pod.UID)
		}
	}
	s.records = append(s.records, &podRecord{pod: pod, active: active, started: started})
	return nil
}

func (s *podSet) remove(uid string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, record := range s.records {
		if string(record.pod.UID) == uid {
			s.records = append(s.records[:i:i], s.records[i+1:]...)
			return true
		}
	}
	return false
}

func (s *podSet) setStarted(uid types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, record := range s.records {
		if record.pod.UID == uid {
			record.started = true
		}
	}
}

// setActive tells the present kubelet life of one pod, or with an empty uid sets all of them.
func (s *podSet) setActive(uid types.UID, active bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, record := range s.records {
		if uid == "" || record.pod.UID == uid {
			record.active = active
		}
	}
}

// active gives what the kubelet calls its active pods.
func (s *podSet) active() []*v1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pods := []*v1.Pod{}
	for _, record := range s.records {
		if record.active {
			pods = append(pods, record.pod)
		}
	}
	return pods
}

func (s *podSet) all() []podRecord {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	records := []podRecord{}
	for _, record := range s.records {
		records = append(records, *record)
	}
	return records
}

func (s *podSet) find(uid string) (*v1.Pod, bool) {
	for _, record := range s.all() {
		if string(record.pod.UID) == uid {
			return record.pod, true
		}
	}
	return nil, false
}

// runtimeState tells a starting kubelet which containers exist and run. Ordinary init containers of
// a running pod exist but have ended, unless initRunning says otherwise.
func (s *podSet) runtimeState(running, initRunning bool) runtimeState {
	state := runtimeState{containers: containermap.NewContainerMap(), running: sets.New[string]()}
	for _, record := range s.all() {
		if !record.started {
			continue
		}
		uid := string(record.pod.UID)
		note := func(container v1.Container, runs bool) {
			id := uid + "/" + container.Name
			state.containers.Add(uid, container.Name, id)
			if runs {
				state.running.Insert(id)
			}
		}
		for _, container := range record.pod.Spec.InitContainers {
			note(container, running && (initRunning || container.RestartPolicy != nil))
		}
		for _, container := range record.pod.Spec.Containers {
			note(container, running)
		}
	}
	return state
}
