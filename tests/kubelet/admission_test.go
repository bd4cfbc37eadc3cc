package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func TestAdmittedContainerGetsWhatThePluginAnswered(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1", "c2")
	p.mustRegister()
	h.waitAllocatable(3)

	got := h.admit(asking("a", 2))
	if !got.Admitted || len(got.Containers) != 1 {
		t.Fatalf("verdict: %+v", got)
	}
	main := got.Containers[0]
	if main.Envs["CHIPS"] != "c0,c1" || len(main.Devices) != 2 || main.Devices[0] != (deviceNode{"/dev/c0", "/dev/c0", "rw"}) {
		t.Fatalf("container: %+v", main)
	}
	if !reflect.DeepEqual(main.DeviceIDs, map[string][]string{chips: {"c0", "c1"}}) {
		t.Fatalf("device ids: %v", main.DeviceIDs)
	}
	file := must[checkpointAnswer](h, "checkpoint", nil)
	if !file.Present || !file.ChecksumOK || len(file.Entries) != 1 || !strings.Contains(string(file.Entries[0].AllocResp), `"CHIPS":"c0,c1"`) {
		t.Fatalf("checkpoint: %+v", file)
	}
	listed := must[podResourcesAnswer](h, "pod_resources", nil)
	if len(listed.Pods) != 1 || len(listed.Pods[0].Containers[0].Devices) != 2 {
		t.Fatalf("pod-resources: %+v", listed)
	}
	again := must[containerAnswer](h, "run_options", fields{"uid": "uid-a", "container": "main"})
	if again.Envs["CHIPS"] != "c0,c1" || len(p.allocations()) != 1 {
		t.Fatalf("a container restart took another Allocate: %v", p.allocations())
	}
}

func TestOrdinaryInitContainersDevicesAreAllocatedAgainInTheSamePod(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1", "c2")
	p.mustRegister()
	h.waitAllocatable(3)

	pod := asking("a", 1)
	pod["init_containers"] = []fields{container("prepare", 2)}
	got := h.admit(pod)
	if !got.Admitted {
		t.Fatalf("verdict: %+v", got)
	}
	calls := p.allocations()
	// Observed: the init container gets c0 and c1, the app container one of these two again, which
	// one depends on the order of a Go map.
	if len(calls) != 2 || !reflect.DeepEqual(calls[0], []string{"c0", "c1"}) || (calls[1][0] != "c0" && calls[1][0] != "c1") {
		t.Fatalf("Allocate calls: %v", calls)
	}
}

func TestRestartableInitContainersDevicesStayItsOwn(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)

	pod := asking("a", 1)
	sidecar := container("sidecar", 1)
	sidecar["restartable"] = true
	pod["init_containers"] = []fields{sidecar}
	if got := h.admit(pod); !got.Admitted {
		t.Fatalf("verdict: %+v", got)
	}
	if calls := p.allocations(); !reflect.DeepEqual(calls, [][]string{{"c0"}, {"c1"}}) {
		t.Fatalf("Allocate calls: %v", calls)
	}
}

func TestErrorFromAllocateFailsThePodWithThePluginsText(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0")
	p.script(func([]string) (*pluginapi.ContainerAllocateResponse, error) {
		return nil, status.Error(codes.FailedPrecondition, "chip c0 is on fire")
	})
	p.mustRegister()
	h.waitAllocatable(1)

	got := h.admit(asking("a", 1))
	want := "Allocate failed due to rpc error: code = FailedPrecondition desc = chip c0 is on fire, which is unexpected"
	if got.Admitted || got.Reason != "UnexpectedAdmissionError" || got.Message != want {
		t.Fatalf("verdict: %+v", got)
	}
	p.script(nil)
	if got := h.admit(asking("b", 1)); !got.Admitted {
		t.Fatalf("the device of a failed Allocate was not free again: %+v", got)
	}
}

func TestOverAskNamesRequestedAndAvailable(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	newPlugin(t, dir, "p.sock", "c0").mustRegister()
	h.waitAllocatable(1)

	got := h.admit(asking("a", 2))
	want := "Allocate failed due to requested number of devices unavailable for example.com/chip. Requested: 2, Available: 1, which is unexpected"
	if got.Admitted || got.Reason != "UnexpectedAdmissionError" || got.Message != want {
		t.Fatalf("verdict: %+v", got)
	}
}

func TestSingleNUMANodePolicyRefusesChipsOfTwoNodes(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, fields{"topology_policy": "single-numa-node", "numa_nodes": 2})
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.update(func(devices []*pluginapi.Device) {
		for node, d := range devices {
			d.Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(node)}}}
		}
	})
	p.mustRegister()
	h.waitAllocatable(2)

	got := h.admit(asking("a", 2))
	if got.Admitted || got.Reason != "TopologyAffinityError" || len(p.allocations()) != 0 {
		t.Fatalf("verdict: %+v", got)
	}
	if got := h.admit(asking("b", 1)); !got.Admitted {
		t.Fatalf("verdict: %+v", got)
	}
}

func TestPreStartRunsBeforeEveryStartOfAContainer(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0")
	p.preStart = true
	p.mustRegister()
	h.waitAllocatable(1)

	h.admit(asking("a", 1))
	must[containerAnswer](h, "run_options", fields{"uid": "uid-a", "container": "main"})
	if count := p.prestartCount(); count != 2 {
		t.Fatalf("PreStartContainer calls: %d", count)
	}
}

// Kubelet frees devices of ended pods lazily. If it does so while an Allocate is in flight, it
// forgets the ids of that Allocate.
func TestListDuringAllocateMakesTheKubeletGiveOneIDToTwoPods(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1", "c2")
	entered, release := make(chan struct{}), make(chan struct{})
	p.script(func(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
		if len(ids) == 1 && ids[0] == "c1" {
			close(entered)
			<-release
		}
		return nil, nil
	})
	p.mustRegister()
	h.waitAllocatable(3)

	h.admit(asking("a", 1))
	inFlight := h.send("admit", fields{"pod": asking("b", 1)})
	<-entered
	// The admission of b has freed what it could before its Allocate, so a must end after that.
	must[none](h, "remove", fields{"uid": "uid-a"})
	listed := must[podResourcesAnswer](h, "pod_resources", nil)
	if len(listed.Pods) != 1 || listed.Pods[0].Name != "b" || len(listed.Pods[0].Containers[0].Devices) != 0 {
		t.Fatalf("pod in admission as listed: %+v", listed)
	}
	close(release)
	b := succeeded[verdict](h, h.await(inFlight))
	p.script(nil)
	c := h.admit(asking("c", 2))

	// Observed: c is given c1 while b holds it. Without the bug it would be c0 and c2.
	if !b.Admitted || !reflect.DeepEqual(b.Containers[0].DeviceIDs[chips], []string{"c1"}) {
		t.Fatalf("b: %+v", b)
	}
	if !c.Admitted || !reflect.DeepEqual(c.Containers[0].DeviceIDs[chips], []string{"c0", "c1"}) {
		t.Fatalf("c: %+v", c)
	}
}

func TestHeldAnswerIsKnownToThePluginAndNotYetToTheKubelet(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1", "c2")
	p.mustRegister()
	h.waitAllocatable(3)

	h.admit(asking("a", 1))
	must[none](h, "hold_allocate", nil)
	inFlight := h.send("admit", fields{"pod": asking("b", 1)})
	held := must[heldAnswer](h, "wait_held", fields{"timeout_ms": 5000})
	if !reflect.DeepEqual(held.DeviceIDs, []string{"c1"}) || len(p.allocations()) != 2 {
		t.Fatalf("held %v, Allocate calls %v", held, p.allocations())
	}
	must[none](h, "remove", fields{"uid": "uid-a"})
	must[podResourcesAnswer](h, "pod_resources", nil)
	must[none](h, "release_allocate", nil)
	b := succeeded[verdict](h, h.await(inFlight))
	c := h.admit(asking("c", 2))
	// Observed: as in the test above, c1 is given twice.
	if b.Containers[0].DeviceIDs[chips][0] != "c1" || c.Containers[0].DeviceIDs[chips][1] != "c1" {
		t.Fatalf("b: %+v\nc: %+v", b, c)
	}
}

func TestRequestsThatCannotBeServedFailWithAReason(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	if text := h.fails("capacity", nil); text != "kubelet is not running" {
		t.Fatal(text)
	}
	if text := h.fails("start", fields{"dirr": dir}); !strings.Contains(text, `unknown field "dirr"`) {
		t.Fatal(text)
	}
	if text := h.fails("dance", nil); text != `unknown op "dance"` {
		t.Fatal(text)
	}
	h.startIn(dir, nil)
	if text := h.fails("remove", fields{"uid": "nobody"}); text != `no pod with uid "nobody"` {
		t.Fatal(text)
	}
	// A resource the kubelet never heard of is nobody's business: the pod runs without it.
	if got := h.admit(asking("a", 1)); !got.Admitted || len(got.Containers[0].DeviceIDs) != 0 {
		t.Fatalf("verdict: %+v", got)
	}
	if text := h.fails("admit", fields{"pod": asking("a", 1)}); text != `pod uid "uid-a" is known already` {
		t.Fatal(text)
	}
	if _, err := os.Stat(filepath.Join(dir, "kubelet.sock")); err != nil {
		t.Fatal(err)
	}
}
