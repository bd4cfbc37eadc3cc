package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"
)

const pollPeriod = 2 * time.Millisecond

type capacityAnswer struct {
	Capacity    map[string]int64 `json:"capacity"`
	Allocatable map[string]int64 `json:"allocatable"`
	Deleted     []string         `json:"deleted"`
}

// capacity asks as the kubelet does before it writes its node status. Asking drops resources whose
// plugin is gone for too long.
func (k *kubelet) capacity(none) (capacityAnswer, error) {
	life, err := k.present()
	if err != nil {
		return capacityAnswer{}, err
	}
	capacity, allocatable, deleted := life.devices.GetCapacity()
	sort.Strings(deleted)
	return capacityAnswer{
		Capacity: counts(capacity), Allocatable: counts(allocatable), Deleted: append([]string{}, deleted...),
	}, nil
}

func counts(list v1.ResourceList) map[string]int64 {
	numbers := map[string]int64{}
	for name, quantity := range list {
		numbers[string(name)] = quantity.Value()
	}
	return numbers
}

type waitParameters struct {
	Resource  string `json:"resource"`
	Count     int    `json:"count"`
	TimeoutMs int64  `json:"timeout_ms"`
}

type waitAnswer struct {
	ElapsedMs float64 `json:"elapsed_ms"`
}

// waitAllocatable polls, without the side effect of capacity, over kubelet restarts too.
func (k *kubelet) waitAllocatable(p waitParameters) (waitAnswer, error) {
	began := time.Now()
	for {
		found := "kubelet is not running"
		if life, err := k.present(); err == nil {
			count := len(life.devices.GetAllocatableDevices()[p.Resource])
			if count == p.Count {
				return waitAnswer{ElapsedMs: float64(time.Since(began).Microseconds()) / 1000}, nil
			}
			found = strconv.Itoa(count)
		}
		if time.Since(began) > time.Duration(p.TimeoutMs)*time.Millisecond {
			return waitAnswer{}, fmt.Errorf("%s: %d allocatable expected within %d ms, found: %s", p.Resource, p.Count, p.TimeoutMs, found)
		}
		time.Sleep(pollPeriod)
	}
}

type allocatableAnswer struct {
	Resources map[string][]string           `json:"resources"`
	NUMA      map[string]map[string][]int64 `json:"numa"`
}

// allocatableIDs gives the healthy device ids, free or not.
func (k *kubelet) allocatableIDs(none) (allocatableAnswer, error) {
	life, err := k.present()
	if err != nil {
		return allocatableAnswer{}, err
	}
	answer := allocatableAnswer{Resources: map[string][]string{}, NUMA: map[string]map[string][]int64{}}
	for name, instances := range life.devices.GetAllocatableDevices() {
		answer.Resources[name] = sortedIDs(instances)
		answer.NUMA[name] = map[string][]int64{}
		for id, device := range instances {
			nodes := []int64{}
			for _, node := range device.GetTopology().GetNodes() {
				nodes = append(nodes, node.GetID())
			}
			answer.NUMA[name][id] = nodes
		}
	}
	return answer, nil
}

type checkpointAnswer struct {
	Present    bool                `json:"present"`
	ChecksumOK bool                `json:"checksum_ok"`
	Entries    []checkpointEntry   `json:"entries"`
	Registered map[string][]string `json:"registered"`
}

type checkpointEntry struct {
	PodUID    string              `json:"pod_uid"`
	Container string              `json:"container"`
	Resource  string              `json:"resource"`
	DeviceIDs map[string][]string `json:"device_ids"`
	AllocResp json.RawMessage     `json:"alloc_resp"`
}

// checkpoint reads the kubelet's file from disk and decodes it with the kubelet's own code.
func (k *kubelet) checkpoint(none) (checkpointAnswer, error) {
	k.mutex.Lock()
	path := filepath.Join(k.settings.dir, checkpointName)
	k.mutex.Unlock()
	answer := checkpointAnswer{Entries: []checkpointEntry{}, Registered: map[string][]string{}}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return answer, nil
	}
	if err != nil {
		return answer, err
	}
	file := checkpoint.New(nil, nil)
	if err := file.UnmarshalCheckpoint(content); err != nil {
		return answer, fmt.Errorf("decode checkpoint: %w", err)
	}
	answer.Present = true
	answer.ChecksumOK = file.VerifyChecksum() == nil
	held, registered := file.GetData()
	for name, ids := range registered {
		answer.Registered[name] = append([]string{}, ids...)
		sort.Strings(answer.Registered[name])
	}
	for _, entry := range held {
		decoded, err := decodeEntry(entry)
		if err != nil {
			return answer, err
		}
		answer.Entries = append(answer.Entries, decoded)
	}
	sort.Slice(answer.Entries, func(a, b int) bool {
		return answer.Entries[a].order() < answer.Entries[b].order()
	})
	return answer, nil
}

func (e checkpointEntry) order() string { return e.PodUID + "/" + e.Container + "/" + e.Resource }

func decodeEntry(entry checkpoint.PodDevicesEntry) (checkpointEntry, error) {
	decoded := checkpointEntry{
		PodUID: entry.PodUID, Container: entry.ContainerName, Resource: entry.ResourceName,
		DeviceIDs: map[string][]string{},
	}
	for node, ids := range entry.DeviceIDs {
		sorted := append([]string{}, ids...)
		sort.Strings(sorted)
		decoded.DeviceIDs[strconv.FormatInt(node, 10)] = sorted
	}
	var response pluginapi.ContainerAllocateResponse
	if err := proto.Unmarshal(entry.AllocResp, &response); err != nil {
		return decoded, fmt.Errorf("decode answer of pod %s: %w", entry.PodUID, err)
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&response)
	decoded.AllocResp = text
	return decoded, err
}

type resourceParameters struct {
	Resource string `json:"resource"`
}

// endStream makes the kubelet hang up on a plugin through the code that runs when the stream of an
// older registration of the same resource ends.
func (k *kubelet) endStream(p resourceParameters) (none, error) {
	life, err := k.present()
	if err != nil {
		return none{}, err
	}
	if !life.connections.snapshot(p.Resource).connected {
		return none{}, fmt.Errorf("no plugin is connected for %s", p.Resource)
	}
	life.watcher.DeRegisterPlugin(p.Resource, "")
	return none{}, nil
}

type listUpdatesAnswer struct {
	Updates       int           `json:"updates"`
	Registrations int           `json:"registrations"`
	Endpoints     []string      `json:"endpoints"`
	Connected     bool          `json:"connected"`
	Last          []deviceState `json:"last"`
}

// listUpdates tells what this kubelet life got from the plugins of one resource.
func (k *kubelet) listUpdates(p resourceParameters) (listUpdatesAnswer, error) {
	life, err := k.present()
	if err != nil {
		return listUpdatesAnswer{}, err
	}
	seen := life.connections.snapshot(p.Resource)
	return listUpdatesAnswer{
		Updates: seen.updates, Registrations: len(seen.endpoints), Endpoints: seen.endpoints,
		Connected: seen.connected, Last: seen.last,
	}, nil
}

type podsAnswer struct {
	Pods []knownPod `json:"pods"`
}

type knownPod struct {
	UID       string `json:"uid"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Active    bool   `json:"active"`
	Started   bool   `json:"started"`
}

// listPods gives the pods that were neither removed nor rejected.
func (k *kubelet) listPods(none) (podsAnswer, error) {
	answer := podsAnswer{Pods: []knownPod{}}
	for _, record := range k.pods.all() {
		answer.Pods = append(answer.Pods, knownPod{
			UID: string(record.pod.UID), Name: record.pod.Name, Namespace: record.pod.Namespace,
			Active: record.active, Started: record.started,
		})
	}
	return answer, nil
}
