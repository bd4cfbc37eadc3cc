//! Kubelet: registration, device-plugin services, pod-resources, checkpoint.
