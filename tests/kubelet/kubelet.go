package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const checkpointName = "kubelet_internal_checkpoint"

var errStopped = errors.New("kubelet is not running")

// kubelet is the node's agent over all its lives: the pods it was given and the present life.
type kubelet struct {
	pods  podSet
	holds holds

	// lifecycle lets one start, stop or restart run at a time.
	lifecycle sync.Mutex
	// admission is the kubelet's sync loop: one pod is admitted at a time.
	admission sync.Mutex

	mutex    sync.Mutex
	settings settings
	life     *incarnation
}

func newKubelet() *kubelet { return &kubelet{} }

// beginning says how a kubelet life begins. It is part of start and restart.
type beginning struct {
	KeepCheckpoint    *bool `json:"keep_checkpoint"`
	Running           *bool `json:"running"`
	InitRunning       bool  `json:"init_running"`
	SourcesReady      bool  `json:"sources_ready"`
	SourcesReadyAfter *bool `json:"sources_ready_after"`
	Readmit           *bool `json:"readmit"`
}

type startParameters struct {
	beginning
	Dir                string    `json:"dir"`
	PodResourcesSocket string    `json:"pod_resources_socket"`
	TopologyPolicy     string    `json:"topology_policy"`
	TopologyScope      string    `json:"topology_scope"`
	NUMANodes          int       `json:"numa_nodes"`
	Pods               []podSpec `json:"pods"`
}

type beginningAnswer struct {
	Pods []verdict `json:"pods"`
}

// start begins the first life in this process. Pods given are those a kubelet before had.
func (k *kubelet) start(p startParameters) (beginningAnswer, error) {
	k.lifecycle.Lock()
	defer k.lifecycle.Unlock()
	if k.settings.dir != "" {
		return beginningAnswer{}, errors.New("started already; use restart")
	}
	if !filepath.IsAbs(p.Dir) {
		return beginningAnswer{}, fmt.Errorf("dir %q is not an absolute path", p.Dir)
	}
	s := settings{
		dir: p.Dir, podResourcesSocket: p.PodResourcesSocket,
		topologyPolicy: p.TopologyPolicy, topologyScope: p.TopologyScope, numaNodes: p.NUMANodes,
	}
	if s.topologyPolicy == "" {
		s.topologyPolicy = "none"
	}
	if s.topologyScope == "" {
		s.topologyScope = "container"
	}
	if s.numaNodes == 0 {
		s.numaNodes = 1
	}
	for _, spec := range p.Pods {
		pod, err := spec.pod()
		if err != nil {
			return beginningAnswer{}, err
		}
		if err := k.pods.add(pod, false, isNot(spec.Running, false)); err != nil {
			return beginningAnswer{}, err
		}
	}
	k.mutex.Lock()
	k.settings = s
	k.mutex.Unlock()
	return k.begin(p.beginning)
}

// restart ends the present life, if there is one, and begins the next on the same directory.
func (k *kubelet) restart(p beginning) (beginningAnswer, error) {
	k.lifecycle.Lock()
	defer k.lifecycle.Unlock()
	if k.settings.dir == "" {
		return beginningAnswer{}, errors.New("not started yet; use start")
	}
	k.endLife()
	return k.begin(p)
}

// stop ends the present life; the pods stay, as containers do without a kubelet.
func (k *kubelet) stop(none) (none, error) {
	k.lifecycle.Lock()
	defer k.lifecycle.Unlock()
	if !k.endLife() {
		return none{}, errStopped
	}
	return none{}, nil
}

// endLife first ends the plugin connections, which makes an Allocate in flight fail, and then waits
// for the admission that made it.
func (k *kubelet) endLife() bool {
	k.mutex.Lock()
	life := k.life
	k.life = nil
	k.mutex.Unlock()
	if life != nil {
		life.end()
	}
	k.admission.Lock()
	k.pods.setActive("", false)
	k.admission.Unlock()
	return life != nil
}

func (k *kubelet) begin(b beginning) (beginningAnswer, error) {
	k.admission.Lock()
	defer k.admission.Unlock()
	if !isNot(b.KeepCheckpoint, false) {
		err := os.Remove(filepath.Join(k.settings.dir, checkpointName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return beginningAnswer{}, err
		}
	}
	// A kubelet whose sources are ready has been told of all its pods.
	if b.SourcesReady {
		k.pods.setActive("", true)
	}
	runtime := k.pods.runtimeState(isNot(b.Running, false), b.InitRunning)
	life, err := newIncarnation(k.settings, &k.pods, &k.holds, runtime, b.SourcesReady)
	if err != nil {
		return beginningAnswer{}, err
	}
	k.mutex.Lock()
	k.life = life
	k.mutex.Unlock()
	if !isNot(b.Readmit, false) {
		return beginningAnswer{Pods: []verdict{}}, nil
	}
	return k.readmitKnown(life, isNot(b.SourcesReadyAfter, false)), nil
}

type readmitParameters struct {
	SourcesReadyAfter *bool `json:"sources_ready_after"`
}

// readmit hands all known pods to a life that began with readmit false.
func (k *kubelet) readmit(p readmitParameters) (beginningAnswer, error) {
	k.admission.Lock()
	defer k.admission.Unlock()
	life, err := k.present()
	if err != nil {
		return beginningAnswer{}, err
	}
	return k.readmitKnown(life, isNot(p.SourcesReadyAfter, false)), nil
}

type sourcesReadyParameters struct {
	Ready bool `json:"ready"`
}

func (k *kubelet) setSourcesReady(p sourcesReadyParameters) (none, error) {
	life, err := k.present()
	if err != nil {
		return none{}, err
	}
	life.sources.ready.Store(p.Ready)
	return none{}, nil
}

// present gives the present life.
func (k *kubelet) present() (*incarnation, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.life == nil {
		return nil, errStopped
	}
	return k.life, nil
}

// isNot reads a switch that may be absent: true unless it was given with this value.
func isNot(given *bool, value bool) bool {
	return given == nil || *given != value
}
