package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func TestEndOfTheStreamMakesEveryDeviceUnallocatable(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)

	p.server.Stop()
	h.waitAllocatable(0)
	got := must[capacityAnswer](h, "capacity", nil)
	if got.Capacity[chips] != 2 || got.Allocatable[chips] != 0 || len(got.Deleted) != 0 {
		t.Fatalf("capacity: %+v", got)
	}
	failed := h.admit(asking("a", 1))
	if failed.Message != "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices example.com/chip, which is unexpected" {
		t.Fatalf("verdict: %+v", failed)
	}
}

func TestKubeletHangsUpWithoutTouchingAFile(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)

	eventually(t, "the first list is in the checkpoint", func() bool {
		return must[checkpointAnswer](h, "checkpoint", nil).Present
	})
	before := filesIn(t, dir)
	must[none](h, "end_stream", fields{"resource": chips})
	h.waitAllocatable(0)
	if after := filesIn(t, dir); !reflect.DeepEqual(before, after) {
		t.Fatalf("files before %v, after %v", before, after)
	}
	if text := h.fails("end_stream", fields{"resource": chips}); text != "no plugin is connected for example.com/chip" {
		t.Fatal(text)
	}
	h.registerAgain(p, 2)
	seen := must[listUpdatesAnswer](h, "list_updates", fields{"resource": chips})
	if seen.Registrations < 2 || seen.Updates < 2 || len(seen.Last) != 2 {
		t.Fatalf("seen: %+v", seen)
	}
}

func TestEndOfAnOlderStreamHangsUpOnTheNewerRegistration(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	old := newPlugin(t, dir, "old.sock", "c0", "c1")
	old.mustRegister()
	h.waitAllocatable(2)
	fresh := newPlugin(t, dir, "new.sock", "c0", "c1")
	fresh.mustRegister()
	eventually(t, "the newer stream is open", func() bool { return fresh.streamCount() == 1 })

	old.server.Stop()
	// Observed: the newer plugin, though alive, is disconnected and stays so.
	h.waitAllocatable(0)
	h.registerAgain(fresh, 2)
}

func TestKubeletRestartWithRunningContainersAsksNothingOfThePlugin(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)
	h.admit(asking("a", 1))

	got := must[beginningAnswer](h, "restart", nil)
	if len(got.Pods) != 1 || !got.Pods[0].Admitted || !reflect.DeepEqual(got.Pods[0].Containers[0].DeviceIDs[chips], []string{"c0"}) {
		t.Fatalf("re-admitted: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "p.sock")); !os.IsNotExist(err) {
		t.Fatalf("plugin socket was not wiped: %v", err)
	}
	capacity := must[capacityAnswer](h, "capacity", nil)
	if count, known := capacity.Capacity[chips]; !known || count != 0 {
		t.Fatalf("capacity: %+v", capacity)
	}
	p.server.Stop()
	p.serve()
	p.mustRegister()
	h.waitAllocatable(2)
	if b := h.admit(asking("b", 1)); !reflect.DeepEqual(b.Containers[0].DeviceIDs[chips], []string{"c1"}) {
		t.Fatalf("b: %+v", b)
	}
	if calls := p.allocations(); len(calls) != 2 {
		t.Fatalf("Allocate calls: %v", calls)
	}
}

func TestKubeletRestartWithEndedContainersFailsPodsBeforeThePluginIsBack(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)
	h.admit(asking("a", 1))

	got := must[beginningAnswer](h, "restart", fields{"running": false})
	if len(got.Pods) != 1 || got.Pods[0].Admitted || !strings.Contains(got.Pods[0].Message, "no healthy devices present") {
		t.Fatalf("re-admitted: %+v", got)
	}
	if known := must[podsAnswer](h, "pods", nil); len(known.Pods) != 0 {
		t.Fatalf("pods: %+v", known)
	}
}

func TestKubeletRestartFailsRunningPodsWhoseInitContainerHadDevices(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)
	pod := asking("a", 1)
	pod["init_containers"] = []fields{container("prepare", 1)}
	h.admit(pod)

	// Observed: the ended init container is taken for one of a rebooted node.
	got := must[beginningAnswer](h, "restart", nil)
	if len(got.Pods) != 1 || got.Pods[0].Admitted {
		t.Fatalf("re-admitted: %+v", got)
	}
}

func TestKubeletRestartWithoutCheckpointForgetsWhoHoldsWhat(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)
	h.admit(asking("a", 1))

	got := must[beginningAnswer](h, "restart", fields{"keep_checkpoint": false})
	// Observed: the running pod is admitted, and nobody knows its device.
	if len(got.Pods) != 1 || !got.Pods[0].Admitted || len(got.Pods[0].Containers[0].DeviceIDs) != 0 {
		t.Fatalf("re-admitted: %+v", got)
	}
	if file := must[checkpointAnswer](h, "checkpoint", nil); file.Present {
		t.Fatalf("checkpoint: %+v", file)
	}
	p.server.Stop()
	p.serve()
	p.mustRegister()
	h.waitAllocatable(2)
	// Observed: the device a still uses is given away.
	if b := h.admit(asking("b", 1)); !reflect.DeepEqual(b.Containers[0].DeviceIDs[chips], []string{"c0"}) {
		t.Fatalf("b: %+v", b)
	}
}

func TestListRightAfterAKubeletStartDoesNotShowPodsThatRun(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0")
	p.mustRegister()
	h.waitAllocatable(1)
	h.admit(asking("a", 1))

	must[beginningAnswer](h, "restart", fields{"readmit": false})
	if listed := must[podResourcesAnswer](h, "pod_resources", nil); len(listed.Pods) != 0 {
		t.Fatalf("pod-resources: %+v", listed)
	}
	if got := must[beginningAnswer](h, "readmit", nil); len(got.Pods) != 1 || !got.Pods[0].Admitted {
		t.Fatalf("re-admitted: %+v", got)
	}
	if listed := must[podResourcesAnswer](h, "pod_resources", nil); len(listed.Pods) != 1 {
		t.Fatalf("pod-resources: %+v", listed)
	}
}

func TestKilledProcessIsFollowedByOneThatIsToldThePods(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	p.mustRegister()
	h.waitAllocatable(2)
	h.admit(asking("a", 1))
	h.kill()

	next := newHarness(t)
	got := next.startIn(dir, fields{"pods": []fields{asking("a", 1)}})
	if len(got.Pods) != 1 || !got.Pods[0].Admitted || !reflect.DeepEqual(got.Pods[0].Containers[0].DeviceIDs[chips], []string{"c0"}) {
		t.Fatalf("re-admitted: %+v", got)
	}
	p.server.Stop()
	p.serve()
	p.mustRegister()
	next.waitAllocatable(2)
	if b := next.admit(asking("b", 1)); !reflect.DeepEqual(b.Containers[0].DeviceIDs[chips], []string{"c1"}) {
		t.Fatalf("b: %+v", b)
	}
}

func TestRestartDuringAllocateHandsThePodToTheNextLife(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0", "c1")
	entered, release := make(chan struct{}), make(chan struct{})
	p.script(func([]string) (*pluginapi.ContainerAllocateResponse, error) {
		close(entered)
		<-release
		return nil, nil
	})
	p.mustRegister()
	h.waitAllocatable(2)

	inFlight := h.send("admit", fields{"pod": asking("a", 1)})
	<-entered
	must[beginningAnswer](h, "restart", fields{"readmit": false})
	if a := h.await(inFlight); a.OK || !strings.Contains(a.Error, "the pod stays known") {
		t.Fatalf("admit: %s", a.line)
	}
	close(release)
	p.script(nil)
	p.server.Stop()
	p.serve()
	p.mustRegister()
	h.waitAllocatable(2)
	got := must[beginningAnswer](h, "readmit", nil)
	if len(got.Pods) != 1 || !got.Pods[0].Admitted || len(got.Pods[0].Containers[0].DeviceIDs[chips]) != 1 {
		t.Fatalf("re-admitted: %+v", got)
	}
}

func TestHeldAllocateEndsWithTheKubelet(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	h.startIn(dir, nil)
	p := newPlugin(t, dir, "p.sock", "c0")
	p.mustRegister()
	h.waitAllocatable(1)

	must[none](h, "hold_allocate", fields{"at": "request"})
	inFlight := h.send("admit", fields{"pod": asking("a", 1)})
	must[heldAnswer](h, "wait_held", fields{"timeout_ms": 5000})
	must[none](h, "stop", nil)
	if a := h.await(inFlight); a.OK || len(p.allocations()) != 0 {
		t.Fatalf("admit: %s, Allocate calls %v", a.line, p.allocations())
	}
}

func TestStartRemovesSocketsAndNothingElse(t *testing.T) {
	dir, h := socketDir(t), newHarness(t)
	if err := os.WriteFile(filepath.Join(dir, "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	newPlugin(t, dir, "p.sock", "c0")
	h.startIn(dir, nil)
	// Observed: this version leaves plain files alone; older ones removed them too.
	if got := filesIn(t, dir); !reflect.DeepEqual(got, []string{"kubelet.sock", "note", "pr"}) {
		t.Fatalf("files: %v", got)
	}
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
